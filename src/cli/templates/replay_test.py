"""The call %CALL% again, as `hostler replay --as-test` wrote it."""

import json
import subprocess
from pathlib import Path

TOOLS = %TOOLS%
ARGUMENTS = %ARGUMENTS%


def test_%WORD%():
    command = ["hostler", "call", %TOOL%, "--input", ARGUMENTS, "--json", "--standalone"]
    if TOOLS:
        command += ["--tools", TOOLS]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    outcome = json.loads(done.stdout)
%EXPECTED%
