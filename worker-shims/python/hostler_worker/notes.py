"""Notes in `Annotated` that decide what a value becomes, so that pydantic has to convert it: what they say is more than hostler has
checked by the schema. Only for files that import pydantic."""

_TRANSFORMS = ("strip_whitespace", "to_lower", "to_upper", "max_digits", "decimal_places", "allow_inf_nan", "coerce_numbers_to_str")
_CHECKS = ("Predicate", "Not", "Timezone", "IsFinite", "IsNotFinite", "IsNan", "IsNotNan", "IsInfinite")
_LIMITS = ("ge", "gt", "le", "lt", "multiple_of")
# Types whose limits the schema states, and hostler has checked.
_CHECKED = (int, float, str, bool, bytes, list, dict, set, frozenset, tuple)


def decides(note, kind):
    """`kind` is the type that it is a note of."""
    if hasattr(note, "__get_pydantic_core_schema__"):
        return True
    if any(getattr(note, name, None) for name in _TRANSFORMS):
        return True
    if type(note).__module__.partition(".")[0] == "annotated_types" and type(note).__name__ in _CHECKS:
        return True
    if any(decides(one, kind) for one in getattr(note, "metadata", None) or () if one is not note):  # Field(…)
        return True
    if hasattr(note, "__metadata__"):  # an alias of annotated_types
        return any(decides(one, kind) for one in note.__metadata__)
    plain = getattr(kind, "__origin__", kind)
    is_checked = isinstance(plain, type) and issubclass(plain, _CHECKED) or not isinstance(plain, type)
    return not is_checked and any(getattr(note, name, None) is not None for name in _LIMITS)
