"""What live types tell of themselves against what hostler reads of the same types from the text."""

import inspect
import sys
import typing
import unittest

import corpus
import worker  # noqa: F401  puts the shim on the path
from compare import Comparison
from expected import is_read

from hostler_worker.describe import GIVEN, RETURNED, Writer, nullable

PARAMETERS = "live classes other than pydantic's leave their parameters open, and so does what is in quotes in pydantic's"
# "narrower": the text tells more than the live type; "wider": the live type tells more. Each with the reason.
DIFFERENCES = {
    "containers.enum_keys x narrower": "keys that are members of an enumeration are left open",
    "containers.open_ended x narrower": "a tuple with an open end is a list",
    "containers.open_ended_star x narrower": "a tuple with an open end is a list",
    "names.recursive_list x narrower": "an alias in quotes is lost where it mentions itself",
    "newer.recursive_list x narrower": "an alias that mentions itself is left open",
    **{f"newer.{name} x narrower": PARAMETERS for name in (
        "alias_of_alias", "alias_with_argument", "alias_with_default", "alias_with_default_of_another", "dataclass_with_default",
        "dataclass_without_default", "model_of_itself", "model_that_inherits", "model_with_default", "row_of_scores")},
    "plain.nothing x narrower": "an annotation of None is none to the live function",
    "formats.uuid4 x narrower": "the version of a UUID is a note, which is not read",
    "choices.computed_enum x wider": "computed members are known to the live enumeration",
    "generics.tidy tidy wider": "the live model has the limits that hold once the text is changed",
    **{f"generics.{name} narrower": PARAMETERS for name in (
        "alias choice", "box_of_int box", "box_of_texts box", "boxed_box box", "cell cell", "chosen box", "entry entry",
        "many boxes", "many by", "number_cell cell", "point point", "quoted box")},
}
RESULTS = {
    "containers.enum_keys narrower": DIFFERENCES["containers.enum_keys x narrower"],
    "containers.open_ended narrower": DIFFERENCES["containers.open_ended x narrower"],
    "containers.open_ended_star narrower": DIFFERENCES["containers.open_ended_star x narrower"],
    "generics.box_of_int narrower": PARAMETERS,
    **{f"newer.{name} narrower": PARAMETERS for name in ("alias_with_default", "model_of_itself", "model_that_inherits", "model_with_default")},
    "formats.uuid4 wider": "the live type is a UUID, which is written as one",
}


class Live(unittest.TestCase):
    def test_live_types_admit_the_arguments_that_the_text_admits(self):
        found, count = {}, 0
        for subject in corpus.live():
            theirs = given(subject)
            comparison = Comparison(subject, theirs, subject.chance("live")).run()
            count += comparison.count
            found.update({f"{subject.name} {place} {way}": example for (place, way), example in comparison.found.items()})
        print(f"   live types: {count} arguments compared, {len(found)} differences, all listed", file=sys.stderr)
        self.assertGreater(count, 15_000)
        self.assertEqual(set(found), set(filter(is_read, DIFFERENCES)), found)


    def test_live_types_tell_the_results_that_the_text_tells(self):
        found, count = {}, 0
        for subject in corpus.live():
            hint = inspect.signature(inspect.unwrap(subject.function)).return_annotation
            if subject.promised is None or hint is inspect.Signature.empty:
                continue
            writer = Writer(RETURNED, inspect.unwrap(subject.function).__globals__)
            told = writer.whole(hint)
            if not told:
                continue
            document = subject.promised
            if list(document.get("properties", {})) != ["result"]:
                plain = {key: value for key, value in document.items() if key != "$defs"}
                document = {"properties": {"result": plain}, "required": ["result"], "$defs": document.get("$defs", {})}
            one = corpus.Subject(subject.name, {"input_schema": document, "output_schema": None}, subject.function)
            comparison = Comparison(one, {**document, "properties": {"result": told}, "$defs": writer.definitions}, one.chance("told")).run()
            count += comparison.count
            found.update({f"{subject.name} {way}": example for (_, way), example in comparison.found.items()})
        print(f"   live types: {count} results compared, {len(found)} differences, all listed", file=sys.stderr)
        self.assertGreater(count, 5_000)
        self.assertEqual(set(found), set(filter(is_read, RESULTS)), found)


def given(subject):
    """Our schema of a function with every property of it as the live annotation tells it."""
    inner = inspect.unwrap(subject.function)
    writer = Writer(GIVEN, inner.__globals__)
    properties = {}
    for name, parameter in inspect.signature(inner).parameters.items():
        if name not in subject.ours["properties"]:
            continue
        default = parameter.default
        if parameter.annotation is parameter.empty or hasattr(default, "is_required"):
            properties[name] = subject.ours["properties"][name]
            continue
        schema = writer.whole(parameter.annotation)
        properties[name] = nullable(schema) if default is None else schema
    left = {name: schema for name, schema in subject.ours["properties"].items() if name not in properties}
    definitions = {**subject.ours.get("$defs", {}), **writer.definitions}
    return {**subject.ours, "properties": {**properties, **left}, "$defs": definitions}


if __name__ == "__main__":
    unittest.main()
