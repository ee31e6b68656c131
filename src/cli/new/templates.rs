//! What files to start from hold.

/// A tool that works, passes `check`, and shows what a file may say.
pub(super) const TOOL: &str = r#"# /// script
# requires-python = ">=3.9"
# dependencies = []            # what it imports, such as "httpx>=0.27"; installed by itself
#
# [tool.hostler]               # all optional; `hostler show TOOL` names them
# effects = "pure"             # what repeating a call does: "pure", "idempotent" or "once"
# ///
"""Say what this file is for, in one line."""


def greet(name: str, times: int = 1) -> str:
    """Greet somebody. The first line is what a model chooses this tool by.

    Args:
        name: Whom to greet.
        times: How often.
    """
    return " ".join([f"Good morning, {name}!"] * times)
"#;

/// A program that says what it is and answers one call. A Python file with another ending would be read as a tool file.
pub(super) const EXECUTABLE: &str = r#"#!/usr/bin/env python3
"""Run once for each call: JSON in on standard input, one JSON value out on standard output, all else on standard error."""
import json
import sys

SCHEMA = {
    "description": "Greet somebody. A model chooses this tool by what stands here.",
    "parameters": {
        "name": {"type": "string", "description": "Whom to greet.", "required": True},
        "times": {"type": "integer", "description": "How often.", "default": 1},
    },
    "returns": {"type": "object", "properties": {"greeting": {"type": "string"}}},
    "effects": "pure",  # what repeating a call does: "pure", "idempotent" or "once"
}


def main(name, times=1):
    return {"greeting": " ".join([f"Good morning, {name}!"] * times)}


if "--schema" in sys.argv[1:]:
    print(json.dumps(SCHEMA))
else:
    # What went wrong for the caller is a result too: {"error": "…"}. Any other exit status than 0 says that the tool failed.
    print(json.dumps(main(**json.load(sys.stdin))))
"#;

/// The same for Node. Its ending says that it is an ES module, wherever it lies.
pub(super) const NODE: &str = r#"#!/usr/bin/env node
// Run once for each call: JSON in on standard input, one JSON value out on standard output, all else on standard error.
import { readFileSync } from "node:fs";

const schema = {
  description: "Greet somebody. A model chooses this tool by what stands here.",
  parameters: {
    name: { type: "string", description: "Whom to greet.", required: true },
    times: { type: "integer", description: "How often.", default: 1 },
  },
  returns: { type: "object", properties: { greeting: { type: "string" } } },
  effects: "pure", // what repeating a call does: "pure", "idempotent" or "once"
};

async function main({ name, times = 1 }) {
  return { greeting: Array(times).fill(`Good morning, ${name}!`).join(" ") };
}

if (process.argv.includes("--schema")) {
  console.log(JSON.stringify(schema));
} else {
  // What went wrong for the caller is a result too: { error: "…" }. Any other exit status than 0 says that the tool failed.
  console.log(JSON.stringify(await main(JSON.parse(readFileSync(0, "utf8")))));
}
"#;

/// The shortest useful configuration, with the rest to be uncommented.
pub(super) const CONFIG: &str = r#"# hostler.toml: `hostler show TOOL` names every setting of a tool and the line that decided it, `hostler check` finds mistakes.

# Folders of tools, from this file on.
tools = ["tools"]

# Tools that are part of hostler; `hostler builtin` lists them. Those here only look, and only from this folder on.
[builtin]
enable = ["read_file", "list_directory", "glob", "grep"]
roots = ["."]

# For every tool; a table [tool.NAME] is for one file, [tool."pack.function"] for one function.
[tool]
# timeout = "5m"               # how long one call may run
# idle_timeout = "10m"         # how long an idle worker stays
# max_memory = "2GB"           # the most memory a worker may hold

# MCP clients start servers with hardly any environment: what uv needs to reach its index stands here.
[environment.env]
# HTTPS_PROXY = "http://proxy.example:3128"
# SSL_CERT_FILE = "/etc/ssl/certs/ca-certificates.crt"

# Where the secrets are that tools declare.
[secrets]
# BRAVE_API_KEY = { file = "~/.config/hostler/brave.key" }
"#;
