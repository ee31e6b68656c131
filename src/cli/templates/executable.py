#!/usr/bin/env python3
"""Runs once per call: JSON arguments on standard input, one JSON value on standard output, messages on standard error."""
import json
import sys

SCHEMA = {
    "description": "Greet somebody. A model chooses the tool by this text.",
    "parameters": {
        "name": {"type": "string", "description": "Whom to greet.", "required": True},
        "times": {"type": "integer", "description": "How often.", "default": 1},
    },
    "returns": {"type": "object", "properties": {"greeting": {"type": "string"}}},
    "effects": "pure",  # the effect of repeating a call: "pure", "idempotent" or "once"
}


def main(name, times=1):
    return {"greeting": " ".join([f"Good morning, {name}!"] * times)}


if "--schema" in sys.argv[1:]:
    print(json.dumps(SCHEMA))
else:
    # Report an expected failure as a result: {"error": "…"}. An exit status other than 0 means that the tool itself failed.
    print(json.dumps(main(**json.load(sys.stdin))))
