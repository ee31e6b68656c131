// A client without packages: JSON lines over child_process, whose streams are sockets. Asks the server as it is and the
// server with each value of an environment variable in turn, and prints the p50 of each round in microseconds:
// [[plain, with the first value, …], …].
//
// node node_client.mjs VARIABLE VALUE,VALUE… ROUNDS CALLS SERVER ARGUMENT…
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";

const [variable, values, rounds, calls, program, ...words] = process.argv.slice(2);

class Server {
  constructor(env) {
    this.process = spawn(program, words, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "inherit"] });
    this.process.on("exit", (code) => this.waiting?.reject(new Error(`the server left with ${code}`)));
    this.rest = "";
    this.id = 0;
    this.process.stdout.setEncoding("utf8");
    this.process.stdout.on("data", (text) => this.take(text));
  }

  take(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    for (const line of lines.filter(Boolean)) {
      const answer = JSON.parse(line);
      if (answer.id === this.id) this.waiting?.resolve(answer);
    }
  }

  request(method, params) {
    const id = ++this.id;
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.process.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    });
  }

  async greet() {
    const clientInfo = { name: "budgets", version: "1" };
    await this.request("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    this.process.stdin.write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }) + "\n");
    await this.p50(1);
    return this;
  }

  async p50(count) {
    const times = [];
    for (let call = 0; call < count; call++) {
      const [a, b] = [randomInt(2 ** 40), randomInt(2 ** 40)];
      const began = process.hrtime.bigint();
      const answer = await this.request("tools/call", { name: "sums_add", arguments: { a, b } });
      times.push(Number(process.hrtime.bigint() - began) / 1000);
      const sum = answer.result?.structuredContent?.result;
      if (sum !== a + b) throw new Error(`wrong: ${a} + ${b} is not ${JSON.stringify(answer)}`);
    }
    return times.sort((left, right) => left - right)[times.length >> 1];
  }
}

const servers = [await new Server({}).greet()];
for (const value of values.split(",")) servers.push(await new Server({ [variable]: value }).greet());
const told = [];
for (let round = 0; round < Number(rounds); round++) {
  const times = [];
  for (const server of servers) times.push(await server.p50(Number(calls)));
  told.push(times);
}
console.log(JSON.stringify(told));
for (const server of servers) {
  server.waiting = undefined;
  server.process.stdin.end();
}
