"""JSON text to YAML text in one step, as `JSONToYAML` and `Marshal` of sigs.k8s.io/yaml do it."""

import re

from yaml.events import ScalarEvent

from garboard.documents.json_text import write_json
from garboard.documents.json_value import Json
from garboard.documents.numbers import SpelledFloat
from garboard.documents.place import Place
from garboard.documents.yaml_read import build_tree
from garboard.documents.yaml_scalars import resolve
from garboard.documents.yaml_tree import TreeBuilder
from garboard.documents.yaml_write import write_yaml

# How the YAML writer spells what JSON text may hold as it is and the YAML reader then stumbles over.
_ODD_CHARACTER = re.compile(r"\\(?:N|x[789]|uFFF)")


class _SpellingBuilder(TreeBuilder):
    """Builds a tree in which a number written as a float is one, also `1e6`."""

    def _value(self, event: ScalarEvent) -> Json:
        number = resolve(event.value)
        return SpelledFloat(number) if isinstance(number, float) else super()._value(event)


def json_to_yaml(data: bytes | str, *, source: str) -> str:
    """Return JSON text as YAML. The text is read by the YAML reader, so what that refuses is refused here.

    Unlike `write_yaml` of a tree, this keeps the kind of a number as it is spelled: `1e6` is written `1e+06`.
    """
    return write_yaml(build_tree(data, Place(source), _SpellingBuilder)[0])


def marshal_yaml(document: Json, *, source: str) -> str:
    """Return a document as YAML by way of JSON text, as Go programs do: a next line becomes a space, DEL is refused."""
    text = write_yaml(document)
    return json_to_yaml(write_json(document), source=source) if _ODD_CHARACTER.search(text) else text
