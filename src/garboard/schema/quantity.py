"""Resource quantities (`500m`, `1Gi`, `1e3`) in the form that Kubernetes writes back.

A quantity is a whole number times a power of ten. Kubernetes keeps the notation it read (decimal, binary or exponent)
and shortens the number, except that it hands back some texts unchanged (`1.500`, `+5`, `005`); so does this module.
"""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

_Notation = Literal["decimal", "binary", "exponent"]

# Looser than the documented grammar, as the reference reader is: `.`, `5.` and a bare suffix are numbers to it.
_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>[eEinumkKMGTP]*[+-]?[0-9]*)"
)
_EXPONENT = re.compile(r"[eE][+-]?[0-9]+")

_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_BY_POWER = {power: suffix for suffix, power in _DECIMAL_SUFFIXES.items()}
_BINARY_BY_POWER = {power: suffix for suffix, power in _BINARY_SUFFIXES.items()}

_MOST_DIGITS = 18  # what the reference still keeps in 64 bits; longer numbers take its slow path, with other rules
_MAX = 2**63 - 1
_SMALLEST_POWER = -9


class _Amount(NamedTuple):
    """number * 10**power; the power may be huge, so it is never multiplied out unchecked."""

    number: int
    power: int


@dataclass(frozen=True, slots=True)
class _Parsed:
    text: str
    sign: int
    whole: str
    fraction: str
    number_text: str
    notation: _Notation
    power: int  # of ten, or of two for the binary notation


def canonical_quantity(text: str) -> str:
    """Return the quantity as Kubernetes writes it after reading `text`; raise ValueError when it is none."""
    if not text:
        raise ValueError("a quantity is empty")
    if text == "0":
        return text
    parsed = _parse(text)
    fast = _fast_amount(parsed)
    if fast is not None:
        return text if _is_kept(parsed, fast) else _write(fast, parsed.notation)
    return _write_slow(parsed)


def _parse(text: str) -> _Parsed:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError("a quantity is a number with an optional suffix, such as 500m or 1Gi")
    suffix = found["suffix"]
    notation: _Notation
    if suffix in _DECIMAL_SUFFIXES:
        notation, power = "decimal", _DECIMAL_SUFFIXES[suffix]
    elif suffix in _BINARY_SUFFIXES:
        notation, power = "binary", _BINARY_SUFFIXES[suffix]
    elif _EXPONENT.fullmatch(suffix) and -_MAX <= int(suffix[1:]) <= _MAX:
        notation, power = "exponent", _wrap_int32(int(suffix[1:]))
    else:
        raise ValueError(
            "a quantity's suffix is one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3"
        )
    return _Parsed(
        text=text,
        sign=-1 if found["sign"] == "-" else 1,
        whole=found["whole"] or "0",
        fraction=found["fraction"] or "",
        number_text=text[: found.start("suffix")],
        notation=notation,
        power=power,
    )


def _fast_amount(parsed: _Parsed) -> _Amount | None:
    """Return the amount if the reference would hold it in 64 bits, where it neither rounds nor caps."""
    digits = parsed.whole + parsed.fraction
    if parsed.notation == "binary":
        room = 15 - len(parsed.whole) - parsed.power * 3 // 10 - 1
        if parsed.fraction or room < 0:
            return None
        return _Amount(parsed.sign * int(digits) << parsed.power, 0)
    power = _wrap_int32(parsed.power - len(parsed.fraction))
    if len(digits) > _MOST_DIGITS or power < _SMALLEST_POWER:
        return None
    return _Amount(parsed.sign * int(digits), power)


def _is_kept(parsed: _Parsed, amount: _Amount) -> bool:
    """Return whether the reference takes the text for canonical and returns it unchanged."""
    digits = parsed.whole + parsed.fraction
    if parsed.notation == "binary":
        return int(digits) & 7 != 0
    return amount.power % 3 == 0 and not digits.endswith("000") and not digits.startswith("0")


def _write_slow(parsed: _Parsed) -> str:
    if not any(letter.isdigit() for letter in parsed.number_text):
        raise ValueError("a quantity has no digits")
    number = int(parsed.whole + parsed.fraction)
    if parsed.notation == "binary":
        amount = _round_up(_Amount(number << parsed.power, -len(parsed.fraction)))
        amount = min(amount, _Amount(_MAX, 0), key=_nanos)
    else:
        amount = _round_up(_Amount(number, parsed.power - len(parsed.fraction)))
    notation = parsed.notation
    if notation == "binary" and _nanos(amount) < _nanos(_Amount(1, 0)):
        notation = "decimal"
    return _write(_Amount(parsed.sign * amount.number, amount.power), notation)


def _round_up(amount: _Amount) -> _Amount:
    """Round a positive amount up to whole nano units, so that none is rounded to zero."""
    excess = _SMALLEST_POWER - amount.power
    if amount.number == 0 or excess <= 0:
        return amount
    if excess > len(str(amount.number)):  # far below one nano; 10**excess might not fit in memory
        return _Amount(1, _SMALLEST_POWER)
    return _Amount(-(-amount.number // 10**excess), _SMALLEST_POWER)


def _nanos(amount: _Amount) -> int:
    """Return a binary amount, whose power lies between nano and zero, in nano units."""
    return int(amount.number * 10 ** (amount.power - _SMALLEST_POWER))


def _write(amount: _Amount, notation: _Notation) -> str:
    if amount.number == 0:
        return "0"
    if notation == "binary":
        return _write_binary(amount)
    number, power = _without_factors(amount.number, 10)
    power += amount.power
    spare = power % 3
    number, power = number * 10**spare, power - spare
    if notation == "exponent":
        return f"{number}e{power}" if power else str(number)
    # Past exa the reference knows no suffix and writes none, which loses the power; documents meet the same fate here.
    return f"{number}{_DECIMAL_BY_POWER.get(power, '')}"


def _write_binary(amount: _Amount) -> str:
    unit = 10**-amount.power
    whole, rest = divmod(amount.number, unit)
    if rest or abs(whole) < 1024:
        return _write(amount, "decimal")
    number, times = _without_factors(whole, 1024)
    return f"{number}{_BINARY_BY_POWER.get(times * 10, '')}"


def _without_factors(number: int, factor: int) -> tuple[int, int]:
    times = 0
    while number % factor == 0:
        number //= factor
        times += 1
    return number, times


def _wrap_int32(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31
