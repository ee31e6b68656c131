# /// script
# requires-python = ">=3.9"
# dependencies = ["pint>=0.24"]
#
# [tool.hostler]
# effects = "pure"
# ///
"""Convert and reckon with physical units."""

from __future__ import annotations

import pint

# Built once a worker; it takes longer than a thousand conversions.
_registry = pint.UnitRegistry(autoconvert_offset_to_baseunit=True)


def _plain(quantity) -> dict:
    return {"value": float(quantity.magnitude), "unit": f"{quantity.units:~P}" or "1", "text": f"{quantity:.6g~P}".strip()}


def convert(value: float, unit: str, to: str) -> dict:
    """Convert a value from one unit to another.

    Args:
        value: The number.
        unit: Its unit, such as `mile`, `km/h`, `degF`, `kWh`.
        to: The wanted unit.
    """
    try:
        return _plain(_registry.Quantity(value, unit).to(to))
    except (pint.UndefinedUnitError, pint.DimensionalityError) as error:
        raise ValueError(str(error)) from None


def evaluate(expression: str, to: str = "") -> dict:
    """Reckon with quantities: `3 m * 2 cm`, `100 km / (50 min)`.

    Args:
        expression: Numbers, units and operators.
        to: The wanted unit; base units when left out.
    """
    try:
        quantity = _registry.Quantity(_registry.parse_expression(expression))
        return _plain(quantity.to(to) if to else quantity.to_base_units())
    except (pint.UndefinedUnitError, pint.DimensionalityError) as error:
        raise ValueError(str(error)) from None


def compatible(unit: str) -> list[str]:
    """Units of the same kind, to which `convert` can go.

    Args:
        unit: A unit such as `litre`.
    """
    return sorted(str(other) for other in _registry.get_compatible_units(unit))
