"""Signatures as real tools have them, with pydantic, attrs, msgspec and FastAPI: what arrives, what comes back, and what is refused."""

import json
import unittest

from harness import connected, environment, run, scratch
from test_frameworks import FILES

REFUSED = object()
# Function, arguments, and its result. Results say what has arrived.
CASES = [
    ("strip_c", {"x": "  ab "}, "ab"),
    ("strip_c", {"x": "   a  "}, REFUSED),
    ("lower_c", {"x": "ABc"}, "abc"),
    ("constr_c", {"x": " ab "}, "AB"),
    ("root_model", {"x": ["a"]}, ["a"]),
    ("root_model", {"x": [1]}, REFUSED),
    ("root_model2", {"x": [1]}, [1]),
    ("r_deque", {}, [1, 2]),
    ("r_set", {}, [1, 2, 3]),
    ("r_frozen", {}, ["a", "b"]),
    ("r_setlist", {}, {"a": [1, 2]}),
    ("td", {"x": {"name": "a"}}, {"name": "a"}),
    ("td", {"x": {"name": "a", "cuont": 1}}, REFUSED),
    ("forbid", {"x": {"a": 1, "b": 2}}, REFUSED),
    ("ignore", {"x": {"a": 1, "b": 2}}, 1),
    ("jsonvalue", {"x": {"a": [1, None]}}, {"a": [1, None]}),
    ("nested", {"x": {"inner": {"n": 3}}}, 3),
    ("alias_enum", {"x": "r"}, "RED"),
    ("guard", {"x": 3}, "int"),
    ("dec_lim", {"x": "1.25"}, "1.25"),
    ("dec_lim", {"x": "0.5"}, REFUSED),
    ("dec_lim", {"x": "1.255"}, REFUSED),
    ("dec", {"x": "NaN"}, REFUSED),
    ("field_default", {}, 5),
    ("field_default2", {}, 7),
    ("zone", {"x": "Europe/Paris"}, "Europe/Paris"),
    ("zone", {"x": "Mars/X"}, REFUSED),
    ("frac", {"x": "1/3"}, "1/3"),
    ("cplx", {"x": "1+2j"}, "(1+2j)"),
    ("ip4i", {"x": "10.0.0.1/24"}, "10.0.0.1/24"),
    ("ip6i", {"x": "::1/64"}, "::1/64"),
    ("url", {"x": "http://a.b/c"}, "http://a.b/c"),
    ("patb", {"x": "a+"}, "bytes"),
    ("pats", {"x": "a+"}, "a+"),
    ("pats", {"x": "("}, REFUSED),
    ("leak", {}, {"a": 1}),
    ("leak_list", {}, [{"a": 1}]),
    ("nt", {}, "None"),
    ("nt", {"x": [1, "b"]}, "NT(a=1, b='b')"),
    ("box", {"x": {"item": 3}}, "int"),
    ("box", {"x": {"item": "a"}}, REFUSED),
    ("page", {}, {"items": [1], "total": 1}),
    ("node", {"x": {"v": 1, "kids": [{"v": 2}]}}, 3),
    ("dcfield", {"x": {"a": 3}}, 3),
    ("dcfield", {"x": {"a": 0}}, REFUSED),
    ("pred", {"x": "ab"}, "ab"),
    ("pred", {"x": "AB"}, REFUSED),
    ("after", {"x": 1}, 2),
    ("aliased", {"theX": 3}, 3),
    ("custom", {"x": "ab"}, "AB"),
    ("omit", {"x": [1, "a", 2]}, [1, 2]),
    ("vtuple", {"x": ["a", 1, 2, True]}, ["a", 1, 2, True]),
    ("const", {}, 10),
    ("att", {"x": {"a": 1}}, "1q"),
    ("att", {"x": {"b": "z"}}, REFUSED),
    ("mss", {"x": {"a": 1}}, "1q"),
    ("mss", {"x": {"a": "s"}}, REFUSED),
    ("opt_dt", {"x": "2026-01-02T03:04:05Z"}, "datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)"),
    ("td2", {"x": "PT90S"}, "0:01:30"),
    ("uid", {"x": "12345678-1234-5678-1234-567812345678"}, "12345678-1234-5678-1234-567812345678"),
    ("lit", {"x": 1}, "1"),
    ("dictint", {"x": {"1": "a"}}, {"1": "a"}),
    ("seqd", {"x": ["2026-01-02"]}, ["2026-01-02"]),
    ("byt", {"x": "YWJj"}, 3),
    ("nested_union", {"x": ["a", None]}, ["a", None]),
    ("secret", {"x": "p"}, "p"),
    ("email", {"x": 0}, REFUSED),
    ("pets", {"x": [{"name": "a", "breed": "b"}, {"name": "a", "lives": 1}, {"name": "a"}]}, ["Dog", "Cat", "Cat"]),
    ("kinds", {"x": {"value": "12"}}, "'12'"),
    ("kinds", {"x": {"value": 12}}, "12.0"),
    ("pos_or_date", {"x": "2026-01-02"}, "datetime.date(2026, 1, 2)"),
    ("pos_or_date", {"x": "soon"}, REFUSED),
    ("pos_or_date", {"x": 0}, REFUSED),
    ("quoted", {"x": {"name": "a", "count": 2}}, "Dogs"),
    ("strictly", {"x": {"when": "2026-01-02", "ids": [1]}}, "datetime.date(2026, 1, 2) {1}"),
    ("strict_data", {"x": {"when": "2026-01-02"}}, {"when": "2026-01-02", "year": 2026}),
    ("dates_of", {"x": {"a": "2026-01-02", "b": "2026-01-02T03:04:05"}}, ["date", "datetime"]),
    ("leak_seq", {}, [{"a": 1}]),
    ("leak_map", {}, {"x": [{"a": 1}]}),
    ("leak_pair", {}, [1, {"a": 1}]),
    ("leak_either", {}, {"a": 1}),
    ("leak_noted", {}, {"a": 1}),
    ("leak_iterator", {}, [{"a": 1}]),
    ("leak_field", {}, {"base": {"a": 1}, "n": 1}),
    ("cut_either", {}, [{"name": "d", "bark": 1}]),
    ("cut_within", {}, {"animal": {"name": "a"}, "other": {"animal": {"name": "b"}, "both": [],
                        "left": {"animal": {"name": "c"}, "other": None}}}),
    ("upload", {"x": {"data": "aGk=", "limit": None}}, "Upload(data=b'hi', limit=None)"),
    ("plus", {"x": {"a": 1}}, 101),
    ("money", {"x": 5}, ["Money", 5]),
    ("iterators", {}, {"a": [1], "b": ["2"], "c": [3]}),
    ("numbers_later", {}, [1]),
    ("fq", {}, 5),
    ("fq", {"x": 0}, REFUSED),
    ("fb", {}, 3),
    ("fb", {"x": 0}, REFUSED),
]


class Signatures(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.tools = scratch(self) / "tools"
        self.tools.mkdir()
        (self.tools / "signatures.py").write_bytes((FILES / "signatures.py").read_bytes())

    def test_what_a_declared_model_leaves_out_is_named(self):
        for name, dropped in (("leak", ["Sub.secret"]), ("leak_list", ["Sub.secret"]), ("root_model", None)):
            arguments = ["x:=[\"a\"]"] if name == "root_model" else []
            outcome = json.loads(run("call", "--json", f"signatures.{name}", *arguments, "--tools", self.tools, env=environment()).stdout)
            self.assertEqual((outcome["success"], outcome["metadata"].get("dropped")), (True, dropped), outcome)

    async def test_each(self):
        async with connected(self.tools) as session:
            for again in (False, True):  # the second time with the schemas that the worker has completed
                for name, arguments, expected in CASES:
                    with self.subTest(name, arguments=arguments, again=again):
                        answer = await session.call(f"signatures_{name}", **arguments)
                        if expected is REFUSED:
                            self.assertTrue(answer.text.startswith("INVALID_PARAMS"), answer.text)
                        else:
                            self.assertFalse(answer.failed, answer.text)
                            self.assertEqual(answer.value, expected)


if __name__ == "__main__":
    unittest.main()
