"""The one alias for a value that is JSON by nature: documents, and the few free-form fields of the model."""

from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
