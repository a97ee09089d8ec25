"""How people name a field: `spec.containers[name=kube-apiserver].command[--profiling]`, or a JSON pointer.

In brackets stands an index, a `key=value` pair, a quoted map key, or a word. A word finds the list element that is that
word, the flag of that name (`--profiling` finds `--profiling=false`), or the map whose merge key holds it.
"""

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

from garboard.documents import DocumentPath, Json
from garboard.errors import BadUsage

_TOKEN = re.compile(r"""\.?(?P<name>[^.\[\]"]+)|\[(?P<index>\d+)\]|\["(?P<quoted>[^"]*)"\]|\[(?P<word>[^\[\]]+)\]""")
_WORD = re.compile(r"""--?[^\[\]"=]+|[A-Za-z][^\[\]"=]*""")  # what stands in brackets for an element that is this word


@dataclass(frozen=True, slots=True)
class Pick:
    """A list element by its content: the value of `key` (or of the element itself); `nth` of those that match."""

    value: str
    key: str = ""
    nth: int = 0

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.key else self.value


@dataclass(frozen=True, slots=True)
class Nameless:
    """A list element without any identifying key or value: the `nth` of those."""

    nth: int


Segment: TypeAlias = "str | int | Pick | Nameless"


@dataclass(frozen=True, slots=True)
class FieldPath:
    segments: tuple[Segment, ...]

    @classmethod
    def parse(cls, text: str) -> "FieldPath":
        if text.startswith("/"):
            tokens = [token.replace("~1", "/").replace("~0", "~") for token in text.split("/")[1:]]
            return cls(tuple(int(token) if token.isdigit() else token for token in tokens))
        segments: list[Segment] = []
        end = 0
        while end < len(text):
            found = _TOKEN.match(text, end)
            if found is None:
                raise BadUsage(
                    f"{text!r} is not a field path: cannot read {text[end:]!r}",
                    hint='write it as spec.containers[0].image, metadata.labels["a.b/c"] or /spec/containers/0/image',
                )
            segments.append(_segment(found))
            end = found.end()
        return cls(tuple(segments))

    @classmethod
    def identifying(cls, path: DocumentPath, document: Json) -> "FieldPath":
        """Return a concrete path with list elements identified by content, so that it survives reordering."""
        return cls(path).pinned(document)

    def pinned(self, document: Json) -> "FieldPath":
        """Return this with the list elements that it names by index in `document` identified by content."""
        segments: list[Segment] = []
        for given in self.segments:
            step = step_to(document, given)
            if step is None:
                break
            is_by_index = isinstance(given, int) and isinstance(document, list)
            segments.append(_pick_in(document, given) if is_by_index else given)  # type: ignore[arg-type]
            document = document[step]  # type: ignore[index]
        return FieldPath((*segments, *self.segments[len(segments) :]))

    def resolve(self, document: Json) -> DocumentPath | None:
        """Return the concrete path in `document`, or None if it has no such field."""
        path: list[str | int] = []
        for segment in self.segments:
            step = step_to(document, segment)
            if step is None:
                return None
            path.append(step)
            assert isinstance(document, dict | list)
            document = document[step]  # type: ignore[index]
        return tuple(path)


def _segment(found: re.Match[str]) -> Segment:
    if found["index"] is not None:
        return int(found["index"])
    if found["word"] is not None:
        key, equals, value = found["word"].partition("=")
        # `--flag=value` names the element itself; `name=web` names the element whose name is web.
        return Pick(value, key) if equals and not key.startswith("-") else Pick(found["word"])
    return str(found["quoted"] if found["name"] is None else found["name"])


def step_to(document: Json, segment: Segment) -> str | int | None:
    """Return the key or index of what a segment names in a map or list, or None if it is not there."""
    if isinstance(document, dict):
        key = str(segment)
        return key if key in document else None
    if not isinstance(document, list):
        return None
    if isinstance(segment, int):
        return segment if segment < len(document) else None
    if isinstance(segment, Nameless):
        found = (index for index, element in enumerate(document) if _pick(element) is None)
        return next(islice(found, segment.nth, None), None)
    pick = segment if isinstance(segment, Pick) else Pick(segment)
    picked = (index for index, element in enumerate(document) if _is_picked(element, pick))
    return next(islice(picked, pick.nth, None), None)


def _is_picked(element: Json, pick: Pick) -> bool:
    if isinstance(element, dict):
        if pick.key:
            return pick.key in element and _as_text(element[pick.key]) == pick.value
        return any(key in element and _as_text(element[key]) == pick.value for key in IDENTIFYING_KEYS)
    text = _as_text(element)
    return text == pick.value or (pick.value.startswith("-") and text.partition("=")[0] == pick.value)


# The merge keys that strategic merge uses; where an element has several, the first is what its list is merged by.
IDENTIFYING_KEYS = (
    "mountPath",
    "devicePath",
    "containerPort",
    "topologyKey",
    "port",
    "uid",
    "ip",
    "name",
    "type",
    "key",
)


def element_name(element: Json) -> str:
    """Return the word that finds an element of a list, or nothing if it has none."""
    pick = _pick(element)
    return pick.value if pick else ""


def _as_text(value: Json) -> str:
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def show_path(path: DocumentPath, document: Json) -> str:
    """Return a path for people: list elements by their key where they have one, by index otherwise."""
    text = ""
    for step in path:
        if isinstance(step, str):
            text += f'["{step}"]' if re.search(r'[.\[\]"]', step) or not step else f".{step}"
        elif isinstance(document, list):
            text += f"[{_element_name(document, step)}]"
        document = document[step] if isinstance(document, dict | list) else None  # type: ignore[index]
    return text.removeprefix(".") or "."


def _element_name(elements: list[Json], index: int) -> str:
    """Return what to write in brackets for an element: text that finds it again when it is parsed, or its index."""
    pick = _pick_in(elements, index)
    is_clear = isinstance(pick, Pick) and not pick.nth and (pick.key or _WORD.fullmatch(pick.value))
    return str(pick) if is_clear and not re.search(r"[\[\]]", str(pick)) else str(index)


def _pick_in(elements: list[Json], index: int) -> Segment:
    """Return a segment for an element that does not depend on its position."""
    pick = _pick(elements[index])
    if pick is None:
        return Nameless(sum(_pick(element) is None for element in elements[:index]))
    return replace(pick, nth=sum(_is_picked(element, pick) for element in elements[:index]))


def _pick(element: Json) -> Pick | None:
    if isinstance(element, dict):
        for key in IDENTIFYING_KEYS:
            value = element.get(key)
            if isinstance(value, str | int):
                return Pick(_as_text(value), key)
        return None
    if isinstance(element, list):
        return None
    text = _as_text(element)
    # A flag is the same flag when its value changes.
    return Pick(text.partition("=")[0] if text.startswith("-") else text)
