// Clients of the two TypeScript SDKs: v1, and v2 in the later era or, as v2-legacy, in the earlier one.

export async function connect(which, command, args, { elicit, sample, roots, log }, env = process.env) {
  const about = { name: `typescript-${which}`, version: "1" };
  const options = { capabilities: { elicitation: {}, sampling: {}, roots: {} } };
  if (which === "v1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const types = await import("@modelcontextprotocol/sdk/types.js");
    const client = new Client(about, options);
    client.setRequestHandler(types.ElicitRequestSchema, elicit);
    client.setRequestHandler(types.CreateMessageRequestSchema, sample);
    client.setRequestHandler(types.ListRootsRequestSchema, roots);
    client.setNotificationHandler(types.LoggingMessageNotificationSchema, log);
    await client.connect(new StdioClientTransport({ command, args, env }));
    return client;
  }
  const { Client } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const mode = which === "v2-legacy" ? "legacy" : "auto";
  const client = new Client(about, { ...options, versionNegotiation: { mode } });
  client.setRequestHandler("elicitation/create", elicit);
  client.setRequestHandler("sampling/createMessage", sample);
  client.setRequestHandler("roots/list", roots);
  client.setNotificationHandler("notifications/message", log);
  await client.connect(new StdioClientTransport({ command, args, env }));
  return client;
}
