"""Two schemas of one function on the same values: which of them admits more, and where."""

from formats import validator
from values import ODD, Maker, distinct

MOST = 180  # made values for one parameter; steps away from them and odd ones come on top
WIDER, NARROWER = "wider", "narrower"


class Comparison:
    """What came of a subject's values."""

    def __init__(self, subject, theirs, rng):
        self.ours, self.theirs = subject.ours, theirs
        self.rng = rng
        self.admits_ours, self.admits_theirs = validator(self.ours), validator(theirs)
        self.count = 0
        self.found = {}  # (parameter, direction) -> the first arguments seen

    def run(self):
        made = {name: self._values(name) for name in self._names()}
        base = {name: self._one(name, made[name]) for name in self.theirs.get("required", []) if name in made}
        for name, values in made.items():
            for value in values:
                self._try(name, {**base, name: value})
            self._try(name, {other: value for other, value in base.items() if other != name})
        for further in (1, "a", None):
            self._try("**", {**base, "further_": further})
        return self

    def _names(self):
        return dict.fromkeys([*self.ours["properties"], *self.theirs.get("properties", {})])

    def _try(self, place, arguments):
        self.count += 1
        ours, theirs = self.admits_ours.is_valid(arguments), self.admits_theirs.is_valid(arguments)
        if ours != theirs:
            self.found.setdefault((place, WIDER if ours else NARROWER), arguments)

    def _values(self, name):
        made = []
        for document in (self.ours, self.theirs):
            made += Maker(document, self.rng).values(document.get("properties", {}).get(name, {}))
        made = distinct(made)
        if len(made) > MOST:
            made = self.rng.sample(made, MOST)
        mutated = Maker({}, self.rng).mutated
        return distinct([*made, *(mutated(value) for value in made[: MOST // 3]), *ODD])

    def _one(self, name, values):
        """A value that both take, so that the other parameters can be tried."""

        def fits(document):
            part = {"$defs": document.get("$defs", {}), **document.get("properties", {}).get(name, {})}
            return validator(part, trusted=True).is_valid

        ours, theirs = fits(self.ours), fits(self.theirs)
        return next((value for value in values if ours(value) and theirs(value)), None)
