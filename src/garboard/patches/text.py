"""The text form by which the reference orders keys and scalars (Go's `%v`)."""

from garboard.documents import Json


def go_text(value: Json) -> str:
    """Return `value` as Go's `%v` prints it, as far as strategic merge ever compares such texts."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _go_float(value)
    return str(value)


def _go_float(value: float) -> str:
    """`%v` of a float64: shortest digits, with an exponent below 1e-4 and from 1e21 up."""
    if value != 0 and not 1e-4 <= abs(value) < 1e21:
        mantissa, _, exponent = f"{value!r}".partition("e")
        if not exponent:
            mantissa, _, exponent = f"{value:.17e}".partition("e")
            mantissa = repr(float(mantissa))
        sign = "-" if exponent.startswith("-") else "+"
        return f"{mantissa.removesuffix('.0')}e{sign}{exponent.lstrip('+-').zfill(2)}"
    if value == int(value):
        return str(int(value)) if value or str(value)[0] != "-" else "-0"
    text = repr(value)
    return text if "e" not in text else f"{value:f}".rstrip("0")
