"""Numbers spelled as Go spells them, in JSON, in YAML and in YAML keys."""

import math
import struct
from decimal import Decimal

INT64 = range(-(2**63), 2**63)
UINT64 = range(2**64)


class SpelledFloat(float):
    """A float written to YAML as it is; others take the detour over JSON text, where `1e6` becomes an integer."""


def settle(number: float) -> int | float:
    """Return what a float is after a trip through Go's JSON text, where `1.0` is `1` and 64-bit integers are exact."""
    if not number.is_integer() or abs(number) >= 1e21:
        return number
    # The shortest digits padded with zeros, not the exact binary value: 2**63 is printed as 9223372036854776000.
    whole = int(Decimal(repr(number)))
    return whole if whole in INT64 or whole in UINT64 else number


def json_text(number: float) -> str:
    """Spell a finite float as Go's `encoding/json` does."""
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    if 1e-6 <= abs(number) < 1e21:
        text = format(Decimal(repr(number)), "f")
        return text.removesuffix(".0")
    return _exponent(number, 64, short=True)


def yaml_text(number: float) -> str:
    """Spell a float as go-yaml does: the shortest digits, with an exponent below 1e-4 and from 1e6 up if not short."""
    return _general(number, 64)


def key_text(number: float) -> str:
    """Spell a float used as a YAML key: sigs.k8s.io/yaml rounds it to 32 bits."""
    try:
        single: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        single = math.copysign(math.inf, number)
    return _general(single, 32)


def _general(number: float, bits: int) -> str:
    if math.isnan(number):
        return ".nan"
    if math.isinf(number):
        return ".inf" if number > 0 else "-.inf"
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    sign, digits, exponent = Decimal(_shortest(number, bits)).normalize().as_tuple()
    point = len(digits) + int(exponent) - 1
    if -4 <= point < 6:
        return format(Decimal((sign, digits, int(exponent))), "f")
    return _exponent(number, bits, short=False)


def _exponent(number: float, bits: int, *, short: bool) -> str:
    sign, digits, exponent = Decimal(_shortest(number, bits)).normalize().as_tuple()
    power = len(digits) + int(exponent) - 1
    text = "".join(map(str, digits))
    mantissa = text if len(text) == 1 else f"{text[0]}.{text[1:]}"
    # encoding/json drops the zero of e-07 but prints e+21 in full; powers below 21 never come here with a plus.
    spelled = f"{abs(power)}" if short and power < 0 else f"{abs(power):02d}"
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{spelled}"


def _shortest(number: float, bits: int) -> str:
    if bits == 64:
        return repr(number)
    for precision in range(9):
        text = f"{number:.{precision}e}"
        if struct.pack("f", float(text)) == struct.pack("f", number):
            return text
    return repr(number)
