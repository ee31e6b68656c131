"""Arguments as the annotated types. A plan is made once a function; None means nothing to do."""

import sys

# Annotations, as objects or as text, under which every JSON value passes as it came.
_PLAIN = frozenset((str, int, bool, list, dict, object, None, type(None)))
_PLAIN_TEXT = frozenset((
    "str", "int", "bool", "list", "dict", "object", "None", "Any", "typing.Any",
    "list[str]", "list[int]", "list[dict]", "dict[str, str]", "dict[str, Any]", "dict[str, int]",
    "str | None", "int | None", "bool | None", "Optional[str]", "Optional[int]", "Optional[bool]",
))


class Mismatch(Exception):
    """An argument that is not what its annotation says: where, and what was expected."""

    def __init__(self, path, expected, value=None, shown=True):
        super().__init__("%s: expected %s%s" % (path, expected, ", got " + show(value) if shown else ""))


def show(value):
    from .encode import encode

    try:
        text = encode(value)
    except Exception:
        text = type(value).__name__
    if len(text) <= 60:
        return text
    from .cuts import head

    return head(text, 57) + "…"


class Plan:
    __slots__ = ("converters", "positional", "defaults", "extra", "named", "described", "aliases")

    def apply(self, kwargs):
        if self.aliases:
            kwargs = {self.aliases.get(name, name): value for name, value in kwargs.items()}
        converted = {}
        for name, value in kwargs.items():
            convert = self.converters.get(name) if name in self.named else self.extra
            converted[name] = value if convert is None else convert(value, name)
        for name, field in self.described.items():
            if name not in converted:
                if field.is_required():
                    raise Mismatch(name, "a value: it is required", shown=False)
                converted[name] = field.get_default(call_default_factory=True)
        args = []
        if self.positional:
            last = max((i for i, name in enumerate(self.positional) if name in converted), default=-1)
            for name in self.positional[:last + 1]:
                if name in converted:
                    args.append(converted.pop(name))
                elif name in self.defaults:
                    args.append(self.defaults[name])
                else:
                    raise Mismatch(name, "a value: it is required", shown=False)
        return args, converted


def plan_of(function, namespace):
    inner = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    if code is None:
        return None
    annotations = annotations_of(inner)
    positional = code.co_varnames[:code.co_posonlyargcount]
    wanted = {
        name: hint for name, hint in annotations.items()
        if name != "return" and not (isinstance(hint, str) and hint in _PLAIN_TEXT or _hashable(hint) and hint in _PLAIN)
    }
    described = _described(inner, code)
    if not wanted and not positional and not described:
        return None
    return _make(inner, code, positional, wanted, described, getattr(inner, "__globals__", namespace))


def _described(inner, code):
    """Parameters whose default is pydantic's `Field(...)`: it describes them, and holds what they are if not given."""
    defaults = inner.__defaults__ or ()
    pairs = [*zip(code.co_varnames[code.co_argcount - len(defaults):], defaults), *(inner.__kwdefaults__ or {}).items()]
    return {name: value for name, value in pairs if is_description(value)}


def is_description(value):
    """Whether it is pydantic's `Field(…)`."""
    return hasattr(type(value), "get_default") and hasattr(value, "is_required")


def _make(inner, code, positional, wanted, described, namespace):
    from .types import Builder

    builder = Builder(namespace)
    notes = _notes(wanted, builder)
    aliases = {alias_of(note): name for name, note in {**notes, **described}.items() if alias_of(note)}
    have_default = {*code.co_varnames[code.co_argcount - len(inner.__defaults__ or ()):code.co_argcount], *(inner.__kwdefaults__ or {})}
    # `Annotated[int, Field(default=5)]`
    described.update((name, note) for name, note in notes.items() if name not in have_default and not note.is_required())
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[:count]
    keyword = code.co_varnames[count + bool(code.co_flags & 0x4)] if code.co_flags & 0x8 else None
    converters = {}
    extra = None
    defaults = dict(zip(reversed(code.co_varnames[:code.co_argcount]), reversed(inner.__defaults__ or ())))
    every_default = {**defaults, **(inner.__kwdefaults__ or {})}
    for name, hint in wanted.items():
        if name == keyword:
            options = builder.unpacked(hint)
            if options is not None:
                converters.update((option, each) for option, each in options.items() if each is not None)
                names += tuple(options)
                continue
        convert = builder.build(hint)
        if convert is None:
            continue
        if name == keyword:
            extra = convert
        elif every_default.get(name, convert) is None:
            converters[name] = or_none(convert)  # `x: Path = None` means it
        else:
            converters[name] = convert
    if not converters and extra is None and not positional and not described and not aliases:
        return None
    plan = Plan()
    plan.described, plan.aliases = described, aliases
    plan.converters, plan.extra, plan.named = converters, extra, frozenset(names)
    plan.positional, plan.defaults = positional, defaults
    return plan


def _notes(wanted, builder):
    """By parameter, the `Field(…)` in its `Annotated`."""
    found = {}
    for name, hint in wanted.items():
        for note in getattr(builder.resolve(hint), "__metadata__", ()):
            if is_description(note):
                found[name] = note
    return found


def alias_of(note):
    alias = getattr(note, "validation_alias", None) or getattr(note, "alias", None)
    choices = getattr(alias, "choices", None) or (alias,)
    return next((choice for choice in choices if isinstance(choice, str)), None)


def or_none(convert):
    return lambda value, path: None if value is None else convert(value, path)


def annotations_of(function):
    try:
        return function.__annotations__
    except NameError:  # 3.14: a name that only a type checker imports
        import annotationlib

        return annotationlib.get_annotations(function, format=annotationlib.Format.FORWARDREF)
    except AttributeError:
        return {}


def _hashable(hint):
    try:
        hash(hint)
    except TypeError:
        return False
    return True
