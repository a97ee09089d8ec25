"""JSON text to YAML text in one step, as `JSONToYAML` of sigs.k8s.io/yaml does it."""

from yaml.events import ScalarEvent

from garboard.documents.json_value import Json
from garboard.documents.numbers import SpelledFloat
from garboard.documents.place import Place
from garboard.documents.yaml_read import build_tree
from garboard.documents.yaml_scalars import resolve
from garboard.documents.yaml_tree import TreeBuilder
from garboard.documents.yaml_write import write_yaml


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
