"""A field of a document with its path: what the rules look at. Anything may stand anywhere, and nothing raises."""

from collections.abc import Iterator

from garboard.documents import DocumentPath, Json
from garboard.rules.findings import ResultFinding
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class DocumentField:
    """A value and where it stands; null counts as absent, as it does for Kubernetes."""

    value: Json
    path: DocumentPath = ()

    def __getitem__(self, name: str) -> "DocumentField":
        member = self.value.get(name) if isinstance(self.value, dict) else None
        return DocumentField(member, (*self.path, name))

    def at(self, *names: str) -> "DocumentField":
        """Return the field that several names lead to."""
        found = self
        for name in names:
            found = found[name]
        return found

    def elements(self) -> "list[DocumentField]":
        """Return the elements of a list; a null is an element without members."""
        values = self.value if isinstance(self.value, list) else []
        return [DocumentField({} if each is None else each, (*self.path, index)) for index, each in enumerate(values)]

    def members(self) -> "Iterator[tuple[str, DocumentField]]":
        """Yield the names and fields of a map, without those that are null."""
        for name, member in self.value.items() if isinstance(self.value, dict) else ():
            if member is not None:
                yield name, DocumentField(member, (*self.path, name))

    @property
    def is_given(self) -> bool:
        return self.value is not None

    @property
    def text(self) -> str:
        """The text, empty if there is none."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def number(self) -> int | None:
        """The whole number, if it is one; 80.0 is 80 by the time that Go decodes it."""
        if isinstance(self.value, bool):
            return None
        if isinstance(self.value, float) and self.value.is_integer():
            return int(self.value)
        return self.value if isinstance(self.value, int) else None

    @property
    def words(self) -> tuple[str, ...]:
        """The elements of a list of texts."""
        return tuple(each.text for each in self.elements())

    @property
    def is_true(self) -> bool:
        return self.value is True

    @property
    def is_false(self) -> bool:
        return self.value is False

    def finding(self, code: str, message: str, hint: str | None = None) -> ResultFinding:
        """Return a finding about this field; the message begins with its name."""
        names = [step for step in self.path if isinstance(step, str)]
        return ResultFinding(code, self.path, f"{names[-1]}: {message}" if names else message, hint)
