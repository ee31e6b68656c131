"""What a tool asks the client: its user, its language model, its folders."""

from harness import ShimTest

SOURCE = r"""
    import enum, hostler
    from dataclasses import dataclass, field
    from typing import Literal, Optional, TypedDict
    class Size(enum.Enum):
        SMALL = "s"
        LARGE = "l"
    @dataclass
    class Order:
        name: str
        count: int = 1
        size: Size = Size.SMALL
        note: Optional[str] = None
    class Person(TypedDict):
        age: int
    @dataclass
    class Deep:
        order: Order
    KINDS = {"order": Order, "person": Person, "deep": Deep, "text": str, "choice": Literal["a", "b"], "size": Size,
             "schema": {"type": "object", "properties": {"x": {"type": "number"}}}, "none": None}
    def ask(kind: str):
        answer = hostler.elicit("Well?", KINDS[kind])
        return [answer.action, bool(answer), repr(answer.data)]
    def named(): return hostler.elicit("Well?", key="name").action
    def look(): return hostler.llm("What is it?", images=[b"\x89PNG\r\n\x1a\n"], temperature=0.5, key="seen")
    def where(): return [[root.uri, root.name, root.path] for root in hostler.roots()]
    def without():
        try: hostler.elicit("Well?")
        except hostler.NotSupported as error: return error.capability
"""
HOST = ["llm", "elicit", "roots"]


class Client(ShimTest):
    def exchange(self, worker, function, kwargs, **answer):
        worker.begin(function, kwargs)
        request = worker.read()
        worker.write({"id": request["id"], **answer})
        return request, worker.read()

    def test_types_become_forms_and_their_content_becomes_the_type(self):
        worker = self.worker(SOURCE, host=HOST)
        order = {"type": "object", "properties": {
            "name": {"type": "string"}, "count": {"type": "integer", "default": 1},
            "size": {"type": "string", "enum": ["s", "l"], "default": "s"}, "note": {"type": "string"}}, "required": ["name"]}
        one = lambda schema: {"type": "object", "properties": {"value": schema}, "required": ["value"]}
        for kind, schema, content, value in (
            ("order", order, {"name": "n", "count": 2, "size": "l"}, "Order(name='n', count=2, size=<Size.LARGE: 'l'>, note=None)"),
            ("person", {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}, {"age": 3}, "{'age': 3}"),
            ("text", one({"type": "string"}), {"value": "x"}, "'x'"),
            ("choice", one({"type": "string", "enum": ["a", "b"]}), {"value": "b"}, "'b'"),
            ("size", one({"type": "string", "enum": ["s", "l"]}), {"value": "l"}, "<Size.LARGE: 'l'>"),
            ("schema", {"type": "object", "properties": {"x": {"type": "number"}}}, {"x": 1.5}, "{'x': 1.5}"),
            ("none", {"type": "object", "properties": {}}, {}, "None"),
        ):
            with self.subTest(kind):
                request, answer = self.exchange(worker, "ask", {"kind": kind}, result={"action": "accept", "content": content})
                self.assertEqual(request["method"], "host.elicit")
                self.assertEqual((request["params"]["message"], request["params"]["schema"]), ("Well?", schema))
                self.assertEqual(answer["result"], ["accept", True, value])

    def test_declined_and_cancelled_are_values(self):
        worker = self.worker(SOURCE, host=HOST)
        for action in ("decline", "cancel"):
            _, answer = self.exchange(worker, "ask", {"kind": "order"}, result={"action": action})
            self.assertEqual(answer["result"], [action, False, "None"])

    def test_content_that_does_not_fit_is_an_error_with_its_place(self):
        worker = self.worker(SOURCE, host=HOST)
        _, answer = self.exchange(worker, "ask", {"kind": "order"}, result={"action": "accept", "content": {"name": "n", "size": "xl"}})
        self.fault(answer, -32000, "answer.size")

    def test_what_no_form_can_ask_for_is_refused_before_the_question(self):
        worker = self.worker(SOURCE, host=HOST)
        self.fault(worker.call("ask", {"kind": "deep"}), -32000, "'order'")

    def test_models_see_images_and_questions_have_names(self):
        worker = self.worker(SOURCE, host=HOST)
        request, _ = self.exchange(worker, "look", {}, result="a dot")
        params = {key: request["params"][key] for key in ("prompt", "images", "temperature", "key")}
        self.assertEqual(params, {"prompt": "What is it?", "temperature": 0.5, "key": "seen",
                                  "images": [{"data": "iVBORw0KGgo=", "mime_type": "image/png"}]})
        request, _ = self.exchange(worker, "named", {}, result={"action": "accept"})
        self.assertEqual(request["params"]["key"], "name")

    def test_folders(self):
        worker = self.worker(SOURCE, host=HOST)
        roots = [{"uri": "file:///a%20b/c", "name": "mine"}, {"uri": "https://example.org"}]
        _, answer = self.exchange(worker, "where", {}, result=roots)
        self.assertEqual(answer["result"], [["file:///a%20b/c", "mine", "/a b/c"], ["https://example.org", None, None]])

    def test_a_client_that_cannot_be_asked(self):
        worker = self.worker(SOURCE, host=HOST)
        error = {"code": -32020, "message": "it has no forms", "data": {"code": "NOT_SUPPORTED", "capability": "elicitation"}}
        _, answer = self.exchange(worker, "without", {}, error=error)
        self.assertEqual(answer["result"], "elicitation")
        _, answer = self.exchange(worker, "ask", {"kind": "none"}, error=error)
        data = self.fault(answer, -32000, "it has no forms")["data"]
        self.assertEqual((data["client"], data["capability"]), ("NOT_SUPPORTED", "elicitation"))

    def test_what_the_operator_forbids(self):
        worker = self.worker(SOURCE, host=[])
        self.fault(worker.call("named"), -32000, "client_access = false")
