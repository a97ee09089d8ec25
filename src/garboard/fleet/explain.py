"""Where the fields of a cluster's files come from: the installer, the documents, or a line of a customization."""

from collections.abc import Iterator
from dataclasses import field
from typing import Final

from garboard.documents import DocumentPath, Json
from garboard.errors import BadUsage
from garboard.fleet.customize import ManifestDocument
from garboard.fleet.install_config import FILE_NAME, InstallConfig
from garboard.fleet.render import RenderedCluster
from garboard.fleet.scrubbing import HIDDEN, Scrubber
from garboard.fleet.secret_values import is_secret_field
from garboard.patches import Base, Origin, Origins, Patch, PatchSubject, TextBase, apply_patches, copy_of
from garboard.schema import Schema, suggest
from garboard.values import dataclass

_CONTENT: Final = ("data", "stringData")


@dataclass(frozen=True, slots=True)
class ExplainedDocument:
    """One document of a cluster's files with the origins of its fields."""

    name: str
    origins: Origins = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def scrubber(self, scrub: Scrubber) -> Scrubber:
        """Return what takes secrets out of texts about this document."""
        return Scrubber(self.secrets, also=scrub)


class _ConfigBase:
    """An install config before its patches."""

    def __init__(self, config: InstallConfig) -> None:
        self._config = config

    @property
    def value(self) -> Json:
        return self._config.value

    def origin(self, at: DocumentPath) -> Origin:
        return self._config.origin(at)


def explained_documents(cluster: RenderedCluster, file: str | None, schema: Schema) -> Iterator[ExplainedDocument]:
    """Yield the documents of one file, or all those that patches were applied to."""
    tree = cluster.tree
    known = (FILE_NAME, *(sorted(tree.names) if tree is not None else ()))
    if file is not None and file not in known:
        near = suggest(file, known)
        hint = f"did you mean {near!r}?" if near else "name the folder of the manifests with --manifests"
        raise BadUsage(f"{cluster.request.name} has no file {file!r}", hint=hint)
    config = cluster.install_config
    if file in (None, FILE_NAME):
        yield _explained(FILE_NAME, _ConfigBase(config.before), config.patches, schema)
    if tree is not None and file != FILE_NAME:
        for name in tree.patched_names if file is None else (file,):
            for document in tree.documents(name):
                yield _of_manifest(name, document, schema)


def _of_manifest(name: str, document: ManifestDocument, schema: Schema) -> ExplainedDocument:
    shown = name if document.source.document == 1 else f"{name}#{document.source.document}"
    return _explained(shown, TextBase(document.source), document.patches, schema)


def _explained(name: str, base: Base, patches: tuple[Patch, ...], schema: Schema) -> ExplainedDocument:
    value = copy_of(base.value)
    named = value if isinstance(value, dict) else {}
    shape = schema.type_of(str(named.get("apiVersion")), str(named.get("kind")))
    applied = apply_patches(value, patches, PatchSubject(shape), is_traced=True, is_decoded=False)
    written = (text for patch in patches for text in _texts(patch.value)) if named.get("kind") == "Secret" else ()
    secrets = (*_contents(base.value), *_contents(applied.document), *written)
    return ExplainedDocument(name, Origins(applied, base), secrets)


def _contents(value: Json) -> Iterator[str]:
    """Yield the texts that a Secret holds."""
    if isinstance(value, dict) and value.get("kind") == "Secret":
        for name in _CONTENT:
            content = value.get(name)
            yield from (each for each in content.values() if isinstance(each, str)) if isinstance(content, dict) else ()


def _texts(patch: Json) -> Iterator[str]:
    """Yield the texts that a patch writes."""
    if isinstance(patch, dict):
        for name, member in patch.items():
            if name not in ("op", "path", "from"):
                yield from _texts(member)
    elif isinstance(patch, list):
        for each in patch:
            yield from _texts(each)
    elif isinstance(patch, str):
        yield patch


def scrubbed(value: Json, hide: Scrubber) -> dict[str, Json]:
    """Return the history of a field as JSON, with the secrets in its values replaced."""
    found = _scrubbed(value, hide)
    assert isinstance(found, dict)
    return found


def _scrubbed(value: Json, hide: Scrubber) -> Json:
    if isinstance(value, dict):
        return {
            key: HIDDEN if is_secret_field(key) and isinstance(member, str) else _scrubbed(member, hide)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [_scrubbed(member, hide) for member in value]
    return hide(value) if isinstance(value, str) else value
