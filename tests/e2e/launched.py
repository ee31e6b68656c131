"""Tools whose processes are started by a command of the operator's."""

import json
import os

from harness import Calling, config_file, environment, scratch, write_tool

TOOL = """
import os, signal, time
import helper

def look() -> dict:
    return {"pid": os.getpid(), "parent": os.getppid(), "env": sorted(os.environ), "helper": helper.WORD,
            "all": [name for name in os.listdir("/proc") if name.isdigit()]}

def spin(path: str) -> int:
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    while True:
        pass

def die(signal: int) -> None:
    os.kill(os.getpid(), signal)

def pid() -> int:
    return os.getpid()
"""
PROGRAM = """#!/bin/sh
if [ "$1" = --schema ]; then echo '{"description": "Look.", "parameters": {"type": "object", "properties": {}}}'; exit; fi
printf '{"parent": %s, "key": "%s", "home": "%s"}' $PPID "$KEY" "$HOME"
"""


class Launched(Calling):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "far", TOOL)
        write_tool(self.tools, "helper", 'WORD = "beside"\n', header="")
        program = self.tools / "program.sh"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.env = environment(HOME=str(self.folder / "home"), PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}")

    def set(self, launcher, more=""):
        """The tools with a launcher. Its lines are those of each tool's table."""
        table = f'launcher = {json.dumps(launcher)}\nenv = {{ KEY = "value" }}\n{more}'
        tables = "".join(f"[tool.{name}]\n{table}" for name in ("far", "program", "bash"))
        return config_file(self.folder, f'tools = ["tools"]\n[builtin]\nenable = ["bash"]\nroots = ["tools"]\n{tables}')
