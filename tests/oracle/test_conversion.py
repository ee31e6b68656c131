"""What the schemas admit, handed to the worker's own code: it arrives as annotated, and results keep what was promised."""

import copy
import json
import sys
import unittest
from functools import cache

import corpus
import expected
from compare import Comparison
from formats import validator
from worker import Mismatch, Worker

EXACT = 2**53


def whole(value):
    """As hostler sends numbers: 2.0 as 2. Here everywhere, there where the schema says integer."""
    if isinstance(value, float) and value.is_integer():
        if abs(value) >= EXACT:
            raise OverflowError  # hostler refuses those
        return int(value)
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return {name: whole(item) for name, item in value.items()}
    return value


@cache
def admitted(subject):
    """Arguments that the schema admits: (the parameter in question, arguments)."""
    return list(_admitted(subject))


def _admitted(subject):
    comparison = Comparison(subject, subject.ours, subject.chance("worker"))
    made = {name: comparison._values(name) for name in comparison._names()}
    base = {name: comparison._one(name, made[name]) for name in subject.ours.get("required", [])}
    for name, values in [*made.items(), (None, [None])]:
        for value in values:
            arguments = {**base, **({name: value} if name else {})}
            if comparison.admits_ours.is_valid(arguments):
                try:
                    yield name, whole(arguments)
                except OverflowError:
                    continue


@cache
def converted():
    """Every admitted set of arguments once through every function: what went wrong, and what came out."""
    wrong, results, count = {}, [], 0
    for subject in corpus.live():
        worker = Worker(subject)
        for name, arguments in admitted(subject):
            count += 1
            try:
                args, kwargs = worker.convert(copy.deepcopy(arguments))
            except Mismatch as error:
                wrong.setdefault(f"{subject.name} {name} refused", error)
                continue
            for mistyped in worker.mistyped(args, kwargs):
                wrong.setdefault(f"{subject.name} {mistyped} mistyped", arguments)
            results.append((subject, worker, arguments, worker.result(args, kwargs)))
    return wrong, results, count


class Conversion(unittest.TestCase):
    def test_what_the_schema_admits_arrives_as_annotated(self):
        wrong, results, count = converted()
        print(f"   {count} sets of arguments converted, {len(results)} calls", file=sys.stderr)
        self.assertGreater(len(results), 4_000)
        expected.compare(self, "worker", wrong)

    def test_results_are_what_the_output_schema_promises(self):
        promised = 0
        checks = {subject.name: validator(subject.promised) for subject in corpus.live() if subject.promised}
        for subject, _, arguments, result in converted()[1]:
            if subject.name not in checks:
                continue
            promised += 1
            structured = result if isinstance(result, dict) else {"result": result}
            error = next(checks[subject.name].iter_errors(structured), None)
            self.assertIsNone(error, f"{subject.name}({arguments}) gives {structured}: {error}")
        self.assertGreater(promised, 3_000)
        print(f"   {promised} results kept their promise, {len(checks)} functions make one", file=sys.stderr)

    def test_where_nothing_is_promised(self):
        silent = {subject.name: None for subject in corpus.live()
                  if subject.promised is None and "return" in Worker(subject).hints}
        expected.compare(self, "no output schema", silent)

    def test_there_and_back_nothing_changes(self):
        """What came out goes in again, where a function gives back what it is given, and comes out the same."""
        again, wrong = 0, {}
        for subject, worker, arguments, result in converted()[1]:
            names = list(subject.ours["properties"])
            if len(names) != 1 or not corpus.gives_back(subject):
                continue
            once = {names[0]: result}
            if not validator(subject.ours).is_valid(once):
                wrong.setdefault(f"{subject.name} written otherwise", result)
                continue
            again += 1
            args, kwargs = worker.convert(copy.deepcopy(once))
            twice = worker.result(args, kwargs)
            if json.dumps(twice) != json.dumps(result):
                wrong.setdefault(f"{subject.name} changed", (result, twice))
        print(f"   {again} round trips", file=sys.stderr)
        self.assertGreater(again, 3_000)
        expected.compare(self, "round trip", wrong)


if __name__ == "__main__":
    unittest.main()
