"""Schemas that hostler reads from the text against those that pydantic and FastMCP derive from the live functions."""

import sys
import unittest

import corpus
import expected
from compare import Comparison
from lenses import through

TWINS = {"alias_type", "recursive_list", "recursive_alias", "type_variable", "list_of_variables"}


class Schemas(unittest.TestCase):
    def against(self, oracle, derive):
        found, unreadable, count = {}, {}, 0
        for subject in corpus.live():
            try:
                theirs = derive(subject)
            except Exception as error:
                unreadable[subject.name] = error
                continue
            comparison = Comparison(subject, theirs, subject.chance(oracle)).run()
            count += comparison.count
            places = {f"{subject.name} {place} {way}": example for (place, way), example in comparison.found.items()}
            found.update(places)
            self.nothing_hides_behind(subject, oracle, places, theirs)
        print(f"   {oracle}: {len(corpus.live()) - len(unreadable)} functions, {count} arguments compared, "
              f"{len(found)} differences, all listed", file=sys.stderr)
        self.assertGreater(count, 18_000)
        expected.compare(self, f"{oracle} cannot read", unreadable)
        expected.compare(self, oracle, found)

    def nothing_hides_behind(self, subject, oracle, places, theirs):
        """Where every reason of a function is exact, our schema without them is the oracle's."""
        reasons = {expected.EXPECTED[oracle].get(place, "not listed") for place in places}
        document = through(reasons, subject.ours) if reasons else None
        if document is not None:
            rewritten = corpus.Subject(subject.name, {"input_schema": document, "output_schema": None}, subject.function)
            comparison = Comparison(rewritten, theirs, subject.chance(oracle)).run()
            self.assertEqual(comparison.found, {}, f"{subject.name} differs by more than {', '.join(reasons)}")

    def test_pydantic_admits_the_same_values(self):
        self.against("pydantic", corpus.pydantic_schema)

    def test_fastmcp_admits_the_same_values(self):
        self.against("fastmcp", corpus.fastmcp_schema)

    def test_defaults_and_texts_are_those_of_pydantic(self):
        found = {}
        for subject in corpus.live():
            try:
                theirs = corpus.pydantic_schema(subject)
            except Exception:
                continue
            documents = [("", subject.ours, theirs)]
            for name, definition in theirs.get("$defs", {}).items():
                ours = subject.ours.get("$defs", {})
                documents.append((f"{name}.", ours.get(name) or ours.get(f"{name}-in-model", {}), definition))
            for where, one, other in documents:
                for name, property in other.get("properties", {}).items():
                    ours = one.get("properties", {}).get(name, {})
                    for key in ("default", "description"):
                        if ours.get(key, ...) != property.get(key, ...):
                            found[f"{subject.name} {where}{name} {key}"] = (ours.get(key, "none"), property.get(key, "none"))
        expected.compare(self, "defaults and texts", found)

    def test_newer_syntax_means_what_the_older_means(self):
        schemas = {subject.name: (subject.ours, subject.promised) for subject in corpus.subjects()}
        for twin in TWINS:
            with self.subTest(twin):
                self.assertEqual(schemas[f"newer.{twin}"], schemas[f"names.{twin}"])

    def test_every_reason_is_explained_and_used(self):
        parts = {name: part for name, part in expected.EXPECTED.items()}
        used = {reason for part in parts.values() for reason in part.values()}
        self.assertEqual(used, expected.explained())

    def test_the_corpus_is_as_large_as_was_asked(self):
        self.assertGreaterEqual(len(corpus.live()), 80)


if __name__ == "__main__":
    unittest.main()
