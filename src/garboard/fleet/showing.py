"""Rendered files for readers who need not have the secrets: those are replaced, and nothing else."""

from collections.abc import Callable, Mapping
from typing import Final

from garboard.documents import Json, cut_documents, read_yaml, write_yaml
from garboard.errors import BadDocument
from garboard.fleet.install_config import FILE_NAME
from garboard.fleet.render import RenderedCluster, files_of
from garboard.fleet.scrubbing import HIDDEN, Scrubber
from garboard.fleet.secret_values import is_secret_field

_SECRET_KIND: Final = b"Secret"
_CONTENT: Final = ("data", "stringData")


class Shown:
    """Shows the files of clusters; what clusters share is looked through once."""

    def __init__(self, scrub: Scrubber) -> None:
        self._scrub = scrub
        self._seen: dict[bytes, bytes] = {}

    def files(self, cluster: RenderedCluster) -> Mapping[str, bytes]:
        """Return the install config and the manifests by their paths."""
        config = self._scrub(_hidden(cluster.install_config.data, _hide_fields)).encode("utf-8", "surrogateescape")
        return {FILE_NAME: config, **{name: self._manifest(data) for name, data in files_of(cluster).items()}}

    def _manifest(self, data: bytes) -> bytes:
        found = self._seen.get(data)
        if found is None:
            text = _hidden(data, _hide_content) if _SECRET_KIND in data else _text(data)
            found = self._seen[data] = self._scrub(text).encode("utf-8", "surrogateescape")
        return found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _hidden(data: bytes, hide: Callable[[Json], bool]) -> str:
    """Return a file with its secrets replaced; as it is written if it has none, or if it is no YAML."""
    try:
        values = [read_yaml(each.text, source=FILE_NAME) for each in cut_documents(data, source=FILE_NAME)]
    except BadDocument:
        return _text(data)
    changed = [hide(value) for value in values]
    return "---\n".join(map(write_yaml, values)) if any(changed) else _text(data)


def _hide_fields(value: Json) -> bool:
    """Replace the texts of fields that hold a secret by their name; say whether there were any."""
    found = False
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in list(members):
        if isinstance(member, dict | list):
            found = _hide_fields(member) or found
        elif isinstance(value, dict) and member and is_secret_field(str(key)):
            value[str(key)], found = HIDDEN, True
    return found


def _hide_content(value: Json) -> bool:
    """Replace what a Secret holds; say whether it is one."""
    if not isinstance(value, dict) or value.get("kind") != "Secret":
        return False
    for name in _CONTENT:
        content = value.get(name)
        if isinstance(content, dict):
            value[name] = dict.fromkeys(content, HIDDEN)
    return True
