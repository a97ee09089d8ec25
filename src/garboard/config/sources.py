"""The documents of a configuration file: split, identified by kind, each with the positions of its fields."""

from garboard.config.problems import InvalidConfiguration
from garboard.documents import DocumentPath, Json, Position, cut_documents, locate, read_yaml
from garboard.errors import BadDocument
from garboard.values import dataclass

KUBEADM_GROUP = "kubeadm.k8s.io"


@dataclass(frozen=True, slots=True)
class GroupVersionKind:
    """API group, version and kind of a document; printed in the two formats of Go."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_kubeadm(self) -> bool:
        return self.group == KUBEADM_GROUP

    @property
    def as_go_literal(self) -> str:
        return f'schema.GroupVersionKind{{Group:"{self.group}", Version:"{self.version}", Kind:"{self.kind}"}}'

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """One document of a file: its text, and its number and first line in the file."""

    file: str
    index: int
    line: int
    text: str

    def position(self, path: DocumentPath) -> Position | None:
        """Return the position of `path` in the file, or of its nearest parent that is set there."""
        positions = locate(self.text, line=self.line)
        found = (positions.key(path[:length]) or positions.value(path[:length]) for length in range(len(path), 0, -1))
        return next((each for each in found if each is not None), None)

    def where(self, path: DocumentPath) -> str:
        """Return ` (line N)` for the end of a message; nothing if `path` is not written in this document."""
        position = self.position(path)
        return f" (line {position.line})" if position else ""


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    gvk: GroupVersionKind
    tree: dict[str, Json]
    source: ConfigSource


def read_documents(data: bytes | str, *, file: str) -> tuple[ConfigDocument, ...]:
    """Read every document of a configuration file; a kind may occur once."""
    pieces = [*enumerate(cut_documents(data, source=file))]
    if all(_is_blank(piece.text) for _, piece in pieces):
        return ()
    documents = tuple(_read_document(ConfigSource(file, index, piece.line, piece.text)) for index, piece in pieces)
    kinds = [document.gvk.kind for document in documents]
    twice = [kind for index, kind in enumerate(kinds) if kind in kinds[:index]]
    if twice:
        raise InvalidConfiguration(
            file, (f'invalid configuration: kind "{kind}" is specified twice in YAML file' for kind in twice)
        )
    return documents


def _is_blank(text: str) -> bool:
    """Tell whether a text says nothing: blank lines, comments and the marks between documents."""
    return all(not line.strip() or line.lstrip().startswith("#") or line == "---" for line in text.splitlines())


def _read_document(source: ConfigSource) -> ConfigDocument:
    tree = read_yaml(source.text, source=source.file, line=source.line)
    members = tree if isinstance(tree, dict) else {}
    gvk = _identify(members.get("apiVersion"), members.get("kind"))
    if isinstance(tree, dict) and gvk.group and gvk.version and gvk.kind:
        return ConfigDocument(gvk, tree, source)
    raise BadDocument(
        f"{source.file}:{source.line}: invalid configuration for GroupVersionKind {gvk}: "
        "kind and apiVersion is mandatory information that must be specified",
        hint="begin every document with apiVersion and kind, and leave no empty ones between the --- lines",
    )


def _identify(api_version: Json, kind: Json) -> GroupVersionKind:
    text = api_version if isinstance(api_version, str) else ""
    group, _, version = text.rpartition("/")
    return GroupVersionKind(group, version, kind if isinstance(kind, str) else "")
