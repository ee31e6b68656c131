"""Values for a schema, from a seed: some that fit, some at its boundaries, some that miss."""

import copy

TEXTS = [
    "", "a", "ab", "abc", "abcd", "abcde", "AB", "a b", "b", "x", "1", "-1", "1.5", "true", "null", "é", "red", "RED", "cat", "ab-12", "ab-", "zz",
    "2026-01-31", "2026-13-01", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "12:30:00", "25:00:00", "PT90S", "P1DT2H", "-PT5S", "P",
    "00000000-0000-0000-0000-000000000001", "9f1b6a52-3f0a-4f6e-8a53-0c2f7a1d9e11", "1.10", "aGk=", "a/b", "https://example.org/x", "127.0.0.1", "::1", "[a", "nan",
]
NUMBERS = [0, 1, -1, 2, 3, 5, 9, 10, 11, 0.5, 1.5, -0.5, 2.0, 2.5, 100, 2**31, 2**53 + 1, 2**70, 1e300]
OTHERS = [None, True, False, [], [1], ["a"], [1, "a"], [1, 2], [None], {}, {"a": 1}, {"x": 1}, {"x": "a"}, {"1": "a"}, {"red": 1}, {"a b": "c"}]
ODD = [*TEXTS, *NUMBERS, *OTHERS]
DEEPEST = 4


class Maker:
    """Makes values for the schemas of one document."""

    def __init__(self, document, rng):
        self.document = document
        self.rng = rng

    def resolve(self, schema):
        while isinstance(schema, dict) and "$ref" in schema:
            schema = self.document["$defs"][schema["$ref"].removeprefix("#/$defs/").replace("~1", "/")]
        return schema

    def values(self, schema, depth=0):
        """Several values: most fit, those next to a boundary need not."""
        schema = self.resolve(schema)
        if schema is True or not schema or depth > DEEPEST:
            return self.rng.sample(ODD, 6)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return [value for branch in schema[key] for value in self.values(branch, depth)]
        if "allOf" in schema:
            return self.values(schema["allOf"][0], depth)
        if "const" in schema:
            return [schema["const"]]
        if "enum" in schema:
            return list(schema["enum"])
        kind = schema.get("type")
        make = getattr(self, "_" + kind, None) if isinstance(kind, str) else None
        return make(schema, depth) if make else self.rng.sample(ODD, 6)

    def _string(self, schema, depth):
        found = list(TEXTS)
        for limit in ("minLength", "maxLength"):
            if limit in schema:
                found += ["k" * max(0, schema[limit] + step) for step in (-1, 0, 1)]
        return found

    def _integer(self, schema, depth):
        found = [0, 1, -1, 2.0, 2**53 + 1, 2**70, -(2**63)]
        for limit in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
            if limit in schema:
                found += [schema[limit] + step for step in (-1, 0, 1, 0.5)]
        return found

    def _number(self, schema, depth):
        return [*self._integer(schema, depth), 0.25, -1e-9, 1e300]

    def _boolean(self, schema, depth):
        return [True, False]

    def _null(self, schema, depth):
        return [None]

    def _array(self, schema, depth):
        first = [self.values(item, depth + 1) for item in schema.get("prefixItems", [])]
        rest = self.values(schema.get("items", {}), depth + 1)
        lengths = {len(first), len(first) + 1, len(first) - 1, len(first) + 2, 0, 1}
        for limit in ("minItems", "maxItems"):
            if limit in schema:
                lengths |= {schema[limit] + step for step in (-1, 0, 1)}
        found = []
        for length in sorted(length for length in lengths if length >= 0):
            for _ in range(3):
                found.append([self.rng.choice(first[at] if at < len(first) else rest) for at in range(length)])
        for value in self.rng.sample(rest, min(len(rest), 6)):
            found.append([*(self.rng.choice(one) for one in first), value])
        return [*found, [1, 1], ["a", "a"]]

    def _object(self, schema, depth):
        fields = {name: self.values(inner, depth + 1) for name, inner in schema.get("properties", {}).items()}
        required = [name for name in schema.get("required", []) if name in fields]

        def some(names):
            return {name: copy.deepcopy(self.rng.choice(fields[name])) for name in names}

        found = [some(fields) for _ in range(6)] + [some(required) for _ in range(4)]
        found += [some([name for name in fields if name != left_out]) for left_out in fields]
        for name in fields:  # one at a time, the others as good as can be had
            found += [{**some(required), name: value} for value in fields[name][:12]]
            found.append({**some(required), name: self.rng.choice(ODD)})
        further = schema.get("additionalProperties", True)
        names = self.values(schema["propertyNames"], depth + 1) if "propertyNames" in schema else []
        names = [*(str(name) for name in names[:6]), "a", "1", "k-1", "red"]
        inner = self.values(further, depth + 1) if isinstance(further, dict) else [1, "a", None]
        for name in names:
            found.append({**some(required), name: self.rng.choice(inner)})
        found += [{**some(required), "k": value} for value in inner[:8]]
        found.append({**some(required), **{str(at): self.rng.choice(inner) for at in range(3)}})
        return found

    def mutated(self, value):
        """A value a step away."""
        value = copy.deepcopy(value)
        if isinstance(value, list) and value and self.rng.random() < 0.8:
            at = self.rng.randrange(len(value))
            value[at] = self.mutated(value[at])
            return value
        if isinstance(value, dict) and value and self.rng.random() < 0.8:
            name = self.rng.choice(sorted(value))
            match self.rng.randrange(3):
                case 0:
                    del value[name]
                case 1:
                    value[name] = self.mutated(value[name])
                case _:
                    value[name + "_"] = value.pop(name)
            return value
        return copy.deepcopy(self.rng.choice(ODD))


def distinct(values):
    """Each value once. 1, 1.0 and True are told apart."""
    seen, kept = set(), []
    for value in values:
        key = repr(value)
        if key not in seen:
            seen.add(key)
            kept.append(value)
    return kept
