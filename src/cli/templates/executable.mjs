#!/usr/bin/env node
// Runs once per call: JSON arguments on standard input, one JSON value on standard output, messages on standard error.
import { readFileSync } from "node:fs";

const schema = {
  description: "Greet somebody. A model chooses the tool by this text.",
  parameters: {
    name: { type: "string", description: "Whom to greet.", required: true },
    times: { type: "integer", description: "How often.", default: 1 },
  },
  returns: { type: "object", properties: { greeting: { type: "string" } } },
  effects: "pure", // the effect of repeating a call: "pure", "idempotent" or "once"
};

async function main({ name, times = 1 }) {
  return { greeting: Array(times).fill(`Good morning, ${name}!`).join(" ") };
}

if (process.argv.includes("--schema")) {
  console.log(JSON.stringify(schema));
} else {
  // Report an expected failure as a result: { error: "…" }. An exit status other than 0 means that the tool itself failed.
  console.log(JSON.stringify(await main(JSON.parse(readFileSync(0, "utf8")))));
}
