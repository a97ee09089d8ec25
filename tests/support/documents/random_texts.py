"""Random documents and texts with a taste for the corners of YAML and JSON."""

from random import Random

from garboard.documents import Json
from tests.support.documents.vectors import vectors


def _listed(text: str, separator: str | None = None) -> list[str]:
    return text.split(separator)


_TOKENS = _listed(
    "a¦b¦1¦y¦~¦: ¦:¦- ¦-¦? ¦?¦, ¦,¦[¦]¦{¦}¦\n¦\n¦\n  ¦\n ¦\n- ¦&a ¦*a¦*a ¦<<: ¦!!str ¦!x ¦\"¦\"x\"¦'¦'y'¦>\n  ¦|\n  "
    '¦# c\n¦ #¦---\n¦...\n¦%YAML 1.1\n¦\t¦ ¦  ¦@¦`¦%¦\\¦"\\x41"¦"\\/"'
    "¦\r\n¦\u2028¦\x85¦\ufeff¦é¦😀¦\x7f¦null¦a: b¦=¦&b¦!!¦a#b¦|-\n¦|2\n",
    "¦",
)
_WORDS = _listed(
    "y Y yes Yes true on off ~ null Null .inf -.inf .nan << = 0b1 0b-1 0b+1 -0b1 0B1 0o7 0o8 08 0x 0xff 0XFF "
    "-0x8000000000000000 0xffffffffffffffff 0x1ffffffffffffffff 9223372036854775807 9223372036854775808 "
    "-9223372036854775809 18446744073709551615 18446744073709551616 +18446744073709551615 1e20 1e19 1e21 1e-6 1e-7 "
    "123456789.5 -0 -0.0 +0 .5_0 .5e1_0 ._5 . .. - + 1e400 1e308 5e-324 1e-400 1_2.5 1_e5 0_8 0x_f 1.e5 2.5e6 1e6 "
    "0.1 3.4e38 3.5e38 16777217.0 2001-12-14 2001-2-30 2001-12-14T21:59:43Z 2001-12-14 aGVsbG8= aGVsbG8 //8="
)
_TAGS = ["", "", "", *(f"!!{name} " for name in ("str", "int", "float", "bool", "null", "timestamp", "binary", "foo"))]
_TAGS += ["!custom ", "! ", "&a ", "&a !!str "]
_PIECES = _listed(
    "a¦b¦word¦é¦中¦\u2028¦\u2029¦\x85¦\t¦\n¦\n\n¦ ¦  ¦ ¦ ¦: ¦:¦ #¦#¦- ¦-¦? ¦?¦\"¦'¦\\¦\x07¦\x1b¦😀¦\ufeff¦\xa0¦{{ .x }}"
    "¦0¦1¦10¦.¦_¦yes¦null¦~¦=¦<<¦---¦...¦%¦@¦`¦!¦&¦*¦>¦[¦]¦{¦}¦,¦\r¦\r\n¦\ufffd¦2001-01-01¦1:30",
    "¦",
)
_LINES = _listed(
    'a: 1\n¦b: 2\n¦---\n¦--- # c\n¦---x\n¦...\n¦# c\n¦\n¦  \n¦{"a":1}¦{"b":2}\n¦[1]¦null¦\t\n¦{a: 1}\n¦\r\n¦---\r\n'
    "¦ ---\n¦x¦\xa0¦}¦{¦c: 18446744073709551615\n¦- 1\n",
    "¦",
)
_JSON_ATOMS = _listed(
    r'"a" "\u00e9" "\ud800" "\ud83d\ude00" "\uDE00x" 1 -1 0 -0 -0.0 1.0 1e3 1E+2 1e400 01 1. 9223372036854775807 '
    r'9223372036854775808 -9223372036854775808 1e-7 1e21 0.1 true false null True NaN "\/" "<>&" "\b\f\n\"\\" 5e-324'
)


def scalar_text(random: Random) -> str:
    """Return a one-line document around a scalar or key that is nearly a number, a date or a word."""
    if random.random() < 0.5:
        word = random.choice(_WORDS)
    else:
        word = "".join(random.choices("0123456789+-._eExXoObBTtZ:aAfF ,", k=random.randint(1, 9)))
    quote = random.choice(("", "", "", "'", '"'))
    scalar = random.choice(_TAGS) + quote + word + quote
    return random.choice((f"a: {scalar}\n", f"{scalar}: 1\n", f"[{scalar}, {scalar}]"))


def token_text(random: Random) -> str:
    """Return a few YAML tokens in no particular order."""
    return "".join(random.choices(_TOKENS, k=random.randint(1, 9)))


def damaged_text(random: Random) -> str:
    """Return a vector with a few characters lost, added or repeated."""
    text: str = random.choice(vectors("yaml-read"))["yaml"]
    for _ in range(random.randint(1, 3)):
        place = random.randint(0, len(text))
        addition = random.choice((random.choice(_TOKENS), "", text[place - 9 : place]))
        text = text[:place] + addition + text[place + random.randint(0, 1) :]
    return text


def stream_text(random: Random) -> str:
    """Return lines of YAML and JSON with separators between them."""
    return "".join(random.choices(_LINES, k=random.randint(1, 7)))


def json_text(random: Random, depth: int = 0) -> str:
    """Return JSON, often with something in it that is none."""
    if depth > 3 or random.random() < 0.5:
        return random.choice(_JSON_ATOMS)
    members = [json_text(random, depth + 1) for _ in range(random.randint(0, 3))]
    if random.random() < 0.5:
        return f"[{','.join(members)}]"
    return "{" + ",".join(f'"{random.choice("abc")}": {member}' for member in members) + "}"


def document(random: Random, depth: int = 0) -> Json:
    """Return a tree full of strings that are awkward to write."""
    if depth > 4 or random.random() < 0.5:
        return _text(random) if random.random() < 0.7 else random.choice((None, True, False, _number(random)))
    if random.random() < 0.5:
        return [document(random, depth + 1) for _ in range(random.randint(0, 4))]
    return {_text(random): document(random, depth + 1) for _ in range(random.randint(0, 4))}


def _text(random: Random) -> str:
    kind = random.random()
    if kind < 0.15:
        return " ".join(random.choices(("word", "a", "longerword", "x:", "#y", '"q"', "it's", "é", "\t", "  z"), k=25))
    if kind < 0.3:
        return random.choice(_WORDS)
    if kind < 0.33:
        return "k" * random.randint(120, 135)
    return "".join(random.choices(_PIECES, k=random.randint(0, 8)))


def _number(random: Random) -> int | float:
    if random.random() < 0.5:
        return random.randint(-(2**63), 2**64 - 1) >> random.randint(0, 60)
    return round(random.uniform(-1e3, 1e3), random.randint(0, 5)) * 10.0 ** random.randint(-12, 12)
