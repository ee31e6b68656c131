# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# task_after = "300ms"
# ///
"""What the conformance suite calls, by the names that it gives."""

import base64
import json
import pathlib
import threading
import time

import hostler

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
WAV = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")


def _form(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


NAME = _form(name={"type": "string"})


def simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


def image_content():
    """Return an image."""
    return hostler.Image(PNG)


def audio_content():
    """Return a sound."""
    return hostler.Audio(WAV, "audio/wav")


def embedded_resource():
    """Return a text file."""
    return hostler.File(b"This is an embedded resource content.", "text/plain")


def multiple_content_types():
    """Return blocks of several kinds."""
    return ["Multiple content types test:", hostler.Image(PNG), hostler.File(b'{"test":"data","value":123}', "application/json")]


def tool_with_logging() -> str:
    """Log three times."""
    hostler.log("Tool execution started")
    time.sleep(0.05)
    hostler.log("Tool processing data")
    time.sleep(0.05)
    hostler.log("Tool execution completed")
    return "Logged three times."


def tool_with_progress() -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        hostler.progress(done, 100)
        time.sleep(0.05)
    return "Progressed three times."


def error_handling() -> str:
    """Fail."""
    raise RuntimeError("This tool intentionally returns an error for testing")


def sampling(prompt: str) -> str:
    """Ask the client's language model."""
    return "LLM response: " + hostler.llm(prompt, max_tokens=100)


def elicitation(message: str) -> str:
    """Ask the user."""
    wanted = _form(username={"type": "string", "description": "User's response"},
                  email={"type": "string", "description": "User's email address"})
    answer = hostler.elicit(message, wanted)
    return f"User response: action={answer.action}, content={json.dumps(answer.data)}"


def elicitation_sep1034_defaults() -> str:
    """Ask with defaults."""
    wanted = {"type": "object", "required": [], "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }}
    answer = hostler.elicit("Please check these values.", wanted)
    return f"Elicitation completed: action={answer.action}, content={json.dumps(answer.data)}"


def elicitation_sep1330_enums() -> str:
    """Ask for choices of every kind."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
    chosen = [{"const": f"value{n}", "title": f"{word} Choice"} for n, word in enumerate(("First", "Second", "Third"), 1)]
    wanted = {"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                       "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": chosen}},
    }}
    answer = hostler.elicit("Please choose.", wanted)
    return f"Elicitation completed: action={answer.action}, content={json.dumps(answer.data)}"


def input_required_result_elicitation() -> str:
    """Ask for a name."""
    answer = hostler.elicit("What is your name?", NAME, key="user_name")
    return f"Hello, {answer.data['name']}!" if answer else "Hello!"


def input_required_result_sampling() -> str:
    """Ask the model for a capital."""
    return hostler.llm("What is the capital of France?", max_tokens=100, key="capital_question")


def input_required_result_list_roots() -> str:
    """Ask for folders."""
    return ", ".join(root.uri for root in hostler.roots(key="client_roots"))


def input_required_result_request_state() -> str:
    """Ask for consent."""
    hostler.elicit("Please confirm", _form(ok={"type": "boolean"}), key="confirm")
    return "state-ok"


def input_required_result_tampered_state() -> str:
    """Ask for consent."""
    return hostler.elicit("Please confirm", _form(ok={"type": "boolean"}), key="confirm").action


def input_required_result_multiple_inputs() -> str:
    """Ask for three things at once."""
    said = {}
    asks = {
        "user_name": lambda key: hostler.elicit("What is your name?", NAME, key=key).data["name"],
        "greeting": lambda key: hostler.llm("Generate a greeting", max_tokens=50, key=key),
        "client_roots": lambda key: [root.uri for root in hostler.roots(key=key)],
    }

    def ask(key):
        said[key] = asks[key](key)

    threads = [threading.Thread(target=ask, args=(key,)) for key in asks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return json.dumps(said)


def input_required_result_multi_round() -> str:
    """Ask twice, one after the other."""
    name = hostler.elicit("Step 1: What is your name?", NAME, key="step1").data["name"]
    color = hostler.elicit("Step 2: What is your favorite color?", _form(color={"type": "string"}), key="step2").data["color"]
    return f"{name} likes {color}."


def input_required_result_capabilities() -> str:
    """Ask whatever the client can be asked."""
    try:
        return hostler.elicit("What is your name?", NAME).action
    except hostler.NotSupported:
        return hostler.llm("What is the capital of France?", max_tokens=100)


def missing_capability() -> str:
    """Need a language model."""
    return hostler.llm("Hello")


def streaming_elicitation() -> str:
    """Ask for a name."""
    return hostler.elicit("What is your name?", NAME).action


def logging_tool() -> str:
    """Log once."""
    hostler.log("one line")
    return "logged"


def trigger_tool_change() -> str:
    """Add a tool."""
    late = pathlib.Path(__file__).with_name(f"late{time.time_ns()}.py")
    late.write_text("def tool() -> int:\n    \"\"\"Return one.\"\"\"\n    return 1\n")
    return late.name


@hostler.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@hostler.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return PNG


@hostler.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text that clients may watch."""
    return "Nothing happened."


@hostler.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> dict[str, object]:
    """Data by id."""
    return {"id": id, "templateTest": True, "data": "Data for ID: " + id}


@hostler.prompt
def simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@hostler.prompt
def prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@hostler.prompt
def prompt_with_embedded_resource(resourceUri: str):
    """A prompt with a file."""
    return [hostler.File(b"Embedded resource content for testing.", "text/plain"), "Please process the embedded resource above."]


@hostler.prompt
def prompt_with_image():
    """A prompt with an image."""
    return [hostler.Image(PNG), "Please analyze the image above."]


@hostler.prompt
def input_required_result_prompt() -> str:
    """A prompt that asks its user."""
    wanted = _form(context={"type": "string"})
    return "Use this: " + hostler.elicit("What context should the prompt use?", wanted, key="user_context").data["context"]


def trigger_prompt_change() -> str:
    """Add a prompt."""
    late = pathlib.Path(__file__).with_name(f"late{time.time_ns()}.py")
    late.write_text("import hostler\n\n@hostler.prompt\ndef prompt() -> str:\n    \"\"\"A late prompt.\"\"\"\n    return 'late'\n")
    return late.name


def tool_with_task() -> str:
    """Ask for a name, then take a while: the call becomes a task."""
    name = hostler.elicit("Who is it?", NAME, key="user_name").data["name"]
    time.sleep(1)
    return f"Done for {name}."
