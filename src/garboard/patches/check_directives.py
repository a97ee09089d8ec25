"""Checking the directives of strategic merge: `$patch`, `$retainKeys`, and `$directive/FIELD`, which names a list."""

from dataclasses import dataclass

from garboard.documents import DocumentPath, Json
from garboard.patches.findings import PatchFindings
from garboard.patches.strategic_fields import DIRECTIVE, RETAIN_KEYS, SET_ORDER, WITH_FIELD
from garboard.schema import FieldType, StructType, suggest


def field_of(key: str) -> str | None:
    """Return FIELD of `$directive/FIELD`, or nothing for another directive."""
    prefix, slash, field = key.partition("/")
    return field if slash and prefix in WITH_FIELD else None


@dataclass(frozen=True, slots=True)
class DirectiveCheck:
    findings: PatchFindings

    def leaked(self, key: str, at: DocumentPath) -> None:
        self.findings.error(
            "leaked-directive",
            f"the directive {key!r} has no meaning here and would stay in the result as data",
            at,
            "directives act in strategic patches only, and not inside lists that are replaced whole",
        )

    def in_struct(self, key: str, value: Json, holder: dict[str, Json], shape: StructType, at: DocumentPath) -> None:
        """Check a directive in a map of known fields; the field it names is known to be one of them."""
        if key == DIRECTIVE:
            self._patch(value, holder, at)
        elif key == RETAIN_KEYS:
            self._retain_keys(value, holder, at)
            for index, name in enumerate(value if isinstance(value, list) else ()):
                if isinstance(name, str) and name not in shape.fields:
                    near = suggest(name, shape.fields)
                    hint = f"did you mean {near!r}?" if near else None
                    self.findings.error("unknown-field", f"$retainKeys names {name!r}, no field", (*at, index), hint)
        else:
            self._about_a_list(key, value, shape, at)

    def in_plain_map(self, key: str, value: Json, holder: dict[str, Json], at: DocumentPath) -> None:
        """Check a directive among members that are not fields, such as labels."""
        if key == DIRECTIVE:
            self._patch(value, holder, at)
        elif key == RETAIN_KEYS:
            self._retain_keys(value, holder, at)
        else:
            self._malformed(f"{key!r} cannot act here: the members of this map are not fields", at)

    def in_element(self, element: dict[str, Json], merge_key: str, at: DocumentPath) -> None:
        """Warn about what stands beside `$patch` in an element of a merged list: it is ignored."""
        if element.get(DIRECTIVE) not in ("delete", "replace"):
            return
        kept = (DIRECTIVE, merge_key) if element[DIRECTIVE] == "delete" else (DIRECTIVE,)
        self._ignored([key for key in element if key not in kept], element[DIRECTIVE], at)

    def _patch(self, value: Json, holder: dict[str, Json], at: DocumentPath) -> None:
        if value not in ("replace", "delete"):
            self.findings.error(
                "bad-directive",
                f"$patch is {value!r}, which is neither 'replace' nor 'delete'",
                at,
                "leave $patch out to merge" if value == "merge" else None,
            )
        elif value == "delete" and not isinstance(at[-2] if len(at) > 1 else None, int):
            self._ignored([key for key in holder if key != DIRECTIVE], value, at[:-1])

    def _ignored(self, keys: list[str], directive: Json, at: DocumentPath) -> None:
        for key in keys:
            message = f"{key!r} is ignored because `$patch: {directive}` stands beside it"
            self.findings.warning("ignored-content", message, (*at, key))

    def _retain_keys(self, value: Json, holder: dict[str, Json], at: DocumentPath) -> None:
        if not isinstance(value, list):
            self._malformed("$retainKeys must be a list", at)
            return
        for key, member in holder.items():
            if member is not None and key != RETAIN_KEYS and not key.startswith(WITH_FIELD) and key not in value:
                self._malformed(f"the patch sets {key!r}, which its $retainKeys does not list", (*at[:-1], key))

    def _about_a_list(self, key: str, value: Json, shape: StructType, at: DocumentPath) -> None:
        named = field_of(key)
        if named is None:
            self._malformed(f"{key!r} must name its field, as in {key.partition('/')[0]}/FIELD", at)
            return
        field = shape.fields[named]
        if field.kind != "list" or field.of is None:
            self._malformed(f"{key!r} is for lists, and {named!r} is none", at)
        elif key.startswith(SET_ORDER):
            self._order(value, field, at)
        elif field.of.kind != "scalar":
            self._malformed(
                f"{key!r} is for lists of plain values; use `$patch: delete` in an element of {named!r}", at
            )
        elif value is not None and not isinstance(value, list):
            self._malformed(f"{key!r} must be a list of the values to delete", at)

    def _order(self, value: Json, field: FieldType, at: DocumentPath) -> None:
        if not isinstance(value, list):
            self._malformed("an order must be a list", at)
            return
        for index, element in enumerate(value if field.merge_key else ()):
            if not isinstance(element, dict) or field.merge_key not in element:
                message = f"each element of the order must be a map with {field.merge_key!r}"
                self._malformed(message, (*at, index))

    def _malformed(self, message: str, at: DocumentPath) -> None:
        self.findings.error("bad-directive-format", message, at)
