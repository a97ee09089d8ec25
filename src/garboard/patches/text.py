"""The text form by which the reference orders keys and scalars (Go's `%v`)."""

from garboard.documents import Json
from garboard.documents.numbers import yaml_text


def go_text(value: Json) -> str:
    """Return `value` as Go's `%v` prints it, as far as strategic merge ever compares such texts."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    # go-yaml spells floats with `%g`, which is what `%v` means for them.
    return yaml_text(value) if isinstance(value, float) else str(value)
