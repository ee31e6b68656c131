"""The corpus served for real: what the schema admits is answered with what was promised, and nothing else is let through."""

import sys
import unittest

from jsonschema.validators import Draft202012Validator

import corpus
import expected
from compare import Comparison
from test_conversion import admitted

sys.path.insert(0, str(corpus.ROOT / "tests" / "e2e"))

from harness import connected, environment  # noqa: E402

OF_EACH = 6


class Served(unittest.IsolatedAsyncioTestCase):
    async def test_the_corpus_over_mcp(self):
        """The client itself holds every result against the output schema that it was told."""
        calls = {"good": 0, "bad": 0}
        async with connected(corpus.CORPUS, env=environment()) as hostler:
            listed = await hostler.tools()
            for subject in corpus.live():
                with self.subTest(subject.name):
                    tool = listed[subject.name.replace(".", "_")]
                    self.assertEqual(tool.input_schema, subject.ours)
                    self.assertEqual(tool.output_schema, subject.promised)
                    await self.good(hostler, subject, calls)
                    await self.bad(hostler, subject, calls)
        print(f"   {calls['good']} calls answered, {calls['bad']} refused", file=sys.stderr)
        self.assertGreater(min(calls.values()), 600)

    async def good(self, hostler, subject, calls):
        rng = subject.chance("session")
        every = [one for one in admitted(subject) if is_exact(one[1])]
        for name, arguments in rng.sample(every, min(OF_EACH, len(every))):
            answer = await hostler.call(subject.name, **as_numbers(arguments))
            if answer.failed and f"{subject.name} {name} refused" in expected.EXPECTED["worker"]:
                continue
            self.assertFalse(answer.failed, f"{subject.name}({arguments}): {answer.text}")
            calls["good"] += 1

    async def bad(self, hostler, subject, calls):
        comparison = Comparison(subject, subject.ours, subject.chance("session"))
        made = {name: comparison._values(name) for name in comparison._names()}
        base = {name: comparison._one(name, made[name]) for name in subject.ours.get("required", [])}
        wrong = [{**base, name: value} for name, values in made.items() for value in values]
        admits = Draft202012Validator(subject.ours).is_valid  # a format is the worker's to judge, and pydantic is lenient
        wrong = [arguments for arguments in wrong if not admits(arguments)]
        for arguments in comparison.rng.sample(wrong, min(OF_EACH, len(wrong))):
            answer = await hostler.call(subject.name, **arguments)
            self.assertEqual(answer.code, "INVALID_PARAMS", f"{subject.name}({arguments}): {answer.text[:200]}")
            calls["bad"] += 1


def is_exact(value):
    """Integers beyond 64 bits are refused with a word of advice, here as everywhere."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return all(map(is_exact, inner)) and not (isinstance(value, int) and abs(value) >= 2**63)


def as_numbers(arguments):
    """Some whole numbers with a point, as many clients send them."""
    def pointed(value):
        return float(value) if type(value) is int and abs(value) < 1000 and value % 2 else value

    return {name: pointed(value) for name, value in arguments.items()}


if __name__ == "__main__":
    unittest.main()
