"""The numbers of a document after it has been written as JSON and read again, as Kubernetes does before it patches."""

from garboard.documents import Json
from garboard.documents.numbers import INT64, settle


def as_decoded(value: Json) -> Json:
    """Return `value`, changed in place, with integers beyond 64 bits as floats and integral floats as integers."""
    if isinstance(value, dict):
        for key, member in value.items():
            if isinstance(member, dict | list | float | int):
                value[key] = as_decoded(member)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            if isinstance(member, dict | list | float | int):
                value[index] = as_decoded(member)
    elif isinstance(value, float):
        settled = settle(value)
        return settled if isinstance(settled, int) and settled in INT64 else value
    elif isinstance(value, int) and value not in INT64:
        return float(value)
    return value
