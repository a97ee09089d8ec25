"""What an installer has written, as a value: files by name, and what is no file. Each file is parsed at most once.

A tree is not changed: customizing it gives another one, which shares everything that is the same.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from garboard.documents import Json, cut_documents, read_json, read_yaml, write_json, write_yaml
from garboard.errors import BadDocument
from garboard.fleet.customize.glob import find_paths
from garboard.fleet.documents import MAX_OBJECT_BYTES
from garboard.patches import Patch, Selection, SourceText
from garboard.values import dataclass

MANIFEST_ENDINGS: Final = (".yaml", ".yml", ".json")
# Of the installer itself: keys and kubeconfigs, its programs, and what it remembers between its steps.
_PROTECTED_FOLDERS: Final = frozenset(("auth", "tls", "bin", "terraform"))
_PROTECTED_FILES: Final = frozenset(("metadata.json", "install-config.yaml"))


@dataclass(frozen=True, slots=True)
class Irregular:
    """Something in the tree that is no file to be read, in words: a symbolic link, a device, permission denied."""

    what: str
    is_link: bool = False


TreeEntry: TypeAlias = bytes | Irregular


class LeavesTree(Exception):
    """A path that leads through a link."""


@dataclass(frozen=True, slots=True)
class ManifestDocument:
    """One document of a file: its value, the text that it was read from, and the patches that were applied since."""

    value: Json
    source: SourceText
    patches: tuple[Patch, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """A document in the tree: its file, and its number there from zero."""

    file: str
    index: int


def is_protected(path: str) -> bool:
    """Tell whether a file belongs to the installer itself and is no manifest."""
    first, slash, _ = path.partition("/")
    if any(part.startswith(".") for part in path.split("/")):
        return True
    if slash:
        return first in _PROTECTED_FOLDERS
    return path in _PROTECTED_FILES or not path.endswith(MANIFEST_ENDINGS)


class _Files:
    """The files as they were read, their folders, and what was found in them so far."""

    def __init__(self, entries: Mapping[str, TreeEntry]) -> None:
        self.entries = dict(entries)
        names: dict[str, set[str]] = {"": set()}
        for path in self.entries:
            folder, _, name = path.rpartition("/")
            names.setdefault(folder, set()).add(name)
            while folder:
                folder, _, name = folder.rpartition("/")
                names.setdefault(folder, set()).add(name)
        self.folders = {folder: sorted(found, key=str.encode) for folder, found in names.items()}
        self.parsed: dict[str, tuple[ManifestDocument, ...]] = {}
        self.found: dict[str, tuple[str, ...]] = {}
        self.selected: dict[Selection, tuple[DocumentPlace, ...]] = {}

    def names_in(self, folder: str) -> Sequence[str] | None:
        entry = self.entries.get(folder)
        if isinstance(entry, Irregular) and entry.is_link:
            raise LeavesTree(folder)
        return self.folders.get(folder)

    def has(self, path: str) -> bool:
        parts = path.split("/")
        for end in range(1, len(parts)):
            self.names_in("/".join(parts[:end]))  # a link on the way is refused
        return path in self.entries or path in self.folders or path == "."


class ManifestTree:
    """Files by name, of which some documents have been patched."""

    def __init__(self, files: _Files, patched: Mapping[str, tuple[ManifestDocument, ...]]) -> None:
        self._files = files
        self._patched = patched

    @classmethod
    def of(cls, entries: Mapping[str, TreeEntry]) -> "ManifestTree":
        """Return the tree of what was read."""
        return cls(_Files(entries), {})

    def with_patched(self, documents: Mapping[str, tuple[ManifestDocument, ...]]) -> "ManifestTree":
        """Return the tree with the documents of some files replaced."""
        return ManifestTree(self._files, {**self._patched, **documents})

    @property
    def names(self) -> Iterable[str]:
        return self._files.entries.keys()

    @property
    def patched_names(self) -> tuple[str, ...]:
        """The files that patches were applied to, sorted."""
        return tuple(sorted(self._patched))

    def entry(self, path: str) -> TreeEntry | None:
        """Return what is at a path; None for a folder, and where nothing is."""
        return self._files.entries.get(path)

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Return the paths that a clean pattern matches, folders among them; a link on the way raises `LeavesTree`."""
        found = self._files.found.get(pattern)
        if found is None:
            found = self._files.found[pattern] = tuple(find_paths(pattern, self._files))
        return found

    def documents(self, path: str) -> tuple[ManifestDocument, ...]:
        """Return the documents of a file as they are now; a file that cannot be read is refused."""
        patched = self._patched.get(path)
        return patched if patched is not None else self._read(path)

    def _read(self, path: str) -> tuple[ManifestDocument, ...]:
        found = self._files.parsed.get(path)
        if found is None:
            entry = self._files.entries[path]
            assert isinstance(entry, bytes)
            found = self._files.parsed[path] = tuple(_documents(path, entry))
        return found

    def select(self, selection: Selection) -> tuple[DocumentPlace, ...]:
        """Return the documents whose content is selected, in manifests of the installer and nowhere else."""
        unpatched = self._files.selected.get(selection)
        if unpatched is None:
            unpatched = tuple(self._selected(selection, self._manifests(), self._read))
            self._files.selected[selection] = unpatched
        if not self._patched:
            return unpatched
        kept = [place for place in unpatched if place.file not in self._patched]
        return tuple(sorted([*kept, *self._selected(selection, self._patched, self.documents)], key=_in_order))

    def _manifests(self) -> list[str]:
        return sorted(
            path
            for path, entry in self._files.entries.items()
            if isinstance(entry, bytes) and path.endswith(MANIFEST_ENDINGS) and not is_protected(path)
        )

    def _selected(
        self, selection: Selection, files: Iterable[str], read: Callable[[str], tuple[ManifestDocument, ...]]
    ) -> Iterator[DocumentPlace]:
        for file in files:
            for index, document in enumerate(read(file)):
                if selection.matches(document.value):
                    yield DocumentPlace(file, index)

    def content(self, path: str) -> TreeEntry:
        """Return a file as it is to be written: its own bytes unless a patch was applied to it."""
        documents = self._patched.get(path)
        if documents is None:
            return self._files.entries[path]
        if path.endswith(".json"):
            return "".join(write_json(each.value).rstrip("\n") + "\n" for each in documents).encode()
        return "---\n".join(_document_text(each) for each in documents).encode()


def _in_order(place: DocumentPlace) -> tuple[str, int]:
    return place.file, place.index


def _document_text(document: ManifestDocument) -> str:
    """Return a document as YAML; one without patches as it was written."""
    if document.patches:
        return write_yaml(document.value)
    text = document.source.text
    return text if text.endswith("\n") else f"{text}\n"


def _documents(path: str, data: bytes) -> Iterator[ManifestDocument]:
    if len(data) > MAX_OBJECT_BYTES:
        raise BadDocument(f"{path}: {len(data) / 2**20:.1f} MiB; a manifest that is patched has at most 1.5 MiB")
    if path.endswith(".json"):
        text = data.decode("utf-8", "replace")
        yield ManifestDocument(read_json(data, source=path), SourceText(path, text))
        return
    pieces = [each for each in cut_documents(data, source=path) if each.text.strip()]
    for number, piece in enumerate(pieces, start=1):
        value = read_yaml(piece.text, source=path, line=piece.line)
        if value is not None or len(pieces) == 1:
            yield ManifestDocument(value, SourceText(path, piece.text, piece.line, number))
