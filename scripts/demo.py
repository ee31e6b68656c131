"""An MCP client of fifty lines: what Claude or an editor does with hostler, with the times it takes."""

import json
import statistics
import subprocess
import sys
import time


class Client:
    """Speaks MCP over a server's standard input and output."""

    def __init__(self, command):
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last_id = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}}
        self.ask("initialize", hello)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.server.stdin.write(json.dumps(message).encode() + b"\n")
        self.server.stdin.flush()

    def ask(self, method, params):
        self.last_id += 1
        self.send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        while True:
            line = self.server.stdout.readline()
            if not line:
                sys.exit("hostler ended; its words are above")
            message = json.loads(line)
            if message.get("id") == self.last_id and "method" not in message:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']['message']}")
                return message["result"]
            note = message.get("params", {}).get("message")
            if note:
                print(f"    … {note}")

    def call(self, tool, arguments):
        began = time.perf_counter()
        meta = {"progressToken": self.last_id + 1}
        result = self.ask("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})
        took = time.perf_counter() - began
        if result.get("isError"):
            sys.exit(result["content"][0]["text"])
        return result["content"][0]["text"], took

    def close(self):
        self.server.stdin.close()
        return self.server.wait()


def say(text=""):
    print(text, flush=True)


def show(what, answer, seconds):
    time_text = f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"
    say(f"  {what:<34} {time_text:>9}   {' '.join(answer.split())[:70]}")


def main():
    hostler = sys.argv[1]
    say("\nhostler serve --tools examples/tools")
    began = time.perf_counter()
    client = Client([hostler, "serve", "--standalone", "--tools", "examples/tools"])
    tools = client.ask("tools/list", {})["tools"]
    took = (time.perf_counter() - began) * 1e3
    packs = {tool["title"].split(".")[0] for tool in tools}
    say(f"  {len(tools)} tools from {len(packs)} plain Python files, listed {took:.0f} ms after the start\n")

    say("The same tool, called three ways:")
    miles = {"value": 26.2, "unit": "mile", "to": "km"}
    show("first call ever (builds, starts)", *client.call("units_convert", miles))
    show("second call (warm)", *client.call("units_convert", miles))
    times = [client.call("units_convert", {**miles, "value": n})[1] for n in range(1000)]
    show("median of 1,000 warm calls", f"{len(times)} answers", statistics.median(times))

    say("\nAnd others, each in an environment of its own:")
    page = {"path": "examples/data/article.html"}
    show("webpage.text", *client.call("webpage_text", page))
    show("webpage.text, warm", *client.call("webpage_text", page))
    sql = "SELECT city, count(*) AS orders FROM orders GROUP BY city ORDER BY orders DESC LIMIT 3"
    query = {"sql": sql, "files": ["examples/data/orders.csv"]}
    show("tables.query", *client.call("tables_query", query))
    show("tables.query, warm", *client.call("tables_query", query))
    status = client.close()

    client = Client([hostler, "serve", "--standalone", "--tools", "examples/tools"])
    say("\nAfter a restart the environments are there, and only the worker starts:")
    show("units.convert, cold", *client.call("units_convert", miles))
    show("units.convert, warm", *client.call("units_convert", miles))
    say()
    sys.exit(client.close() or status)


if __name__ == "__main__":
    main()
