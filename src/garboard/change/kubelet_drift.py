"""The kubelet of a node as it is declared, on disk and running, to be compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from garboard.change.configuration import StoredConfiguration
from garboard.change.snapshot import SnapshotNode
from garboard.documents import Json
from garboard.drift import (
    KUBELET_ARGS,
    KUBELET_FLAGS,
    DeclaredDocument,
    Difference,
    DriftKind,
    DriftSubject,
    FoundDocument,
    flags_document,
    rendered_from,
)
from garboard.manifests import NodeHost, ValueSource
from garboard.manifests.kubelet import CONFIG_FILE, FLAGS_FILE, config_source, kubelet_arguments
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET_TARGET
from garboard.model.node import DEFAULT_CRI_SOCKET, NodeRegistration
from garboard.patches import find_target
from garboard.schema import load_schema

_OVERRIDE = "--hostname-override="
# A kubelet that finds one of these in its configuration takes its own default.
_UNSET: tuple[Json, ...] = (None, "", "0s", "0", [])
_SECRET = "staticPodURLHeader"  # its values may be, and a kubelet shows them


def declared_configuration(configuration: StoredConfiguration, rendered: Json) -> DeclaredDocument:
    decided_by = partial(_decided_by, dict(configuration.kubelet.tree))
    return rendered_from(rendered, decided_by, str(configuration.cluster.facts.minor))


def _decided_by(given: Mapping[str, Json], path: tuple[str | int, ...]) -> ValueSource | None:
    return config_source(path, given, "InitConfiguration")


def configuration_subject(
    configuration: StoredConfiguration,
    node: SnapshotNode,
    declared: DeclaredDocument,
    patched: Sequence[DeclaredDocument],
    live: Json,
) -> DriftSubject | None:
    """Return the configuration of a kubelet; nothing if neither its file nor what it runs with was seen."""
    if node.kubelet_config is None and not isinstance(live, dict):
        return None
    release, text = configuration.cluster.release, node.kubelet_config
    on_disk = FoundDocument.of_file(CONFIG_FILE, text.encode()) if text else None
    running = None
    if isinstance(live, dict) and (on_disk is not None or text is None):
        named = (patched[-1] if patched else declared).document
        content = _named_part(live, named, named if on_disk is None else on_disk.document)
        running = FoundDocument(content, f"/configz of the kubelet of {node.name}")
    return DriftSubject(
        component=KUBELET_TARGET,
        where=CONFIG_FILE,
        shape=find_target(KUBELET_TARGET, release).shape(load_schema(release)),
        rendered=declared,
        patched=patched,
        on_disk=on_disk,
        running=running,
        is_missing=text == "",
    )


def _named_part(live: Json, declared: Json, there: Json) -> Json:
    """Return of what runs only what is named: a running kubelet has filled in every default.

    What `there`, its file or else the declared configuration, leaves to the kubelet stands for what that made of it.
    """
    if isinstance(live, dict):
        one, other = (each if isinstance(each, dict) else {} for each in (declared, there))
        found = {name: _named_part(value, one.get(name), other.get(name)) for name, value in live.items()
                 if name in one or name in other}  # fmt: skip
        kept = {name: value for name, value in other.items() if name not in live and _is_unset(value)}
        own = {name: other[name] for name in ("apiVersion", "kind", _SECRET) if name in other}
        return {**found, **kept, **own}
    return there if _is_unset(there) and there is not None else live


def _is_unset(value: Json) -> bool:
    if isinstance(value, dict):
        return all(map(_is_unset, value.values()))
    return any(value == each for each in _UNSET) or (value == 0 and not isinstance(value, bool))


def flags_subject(configuration: StoredConfiguration, node: SnapshotNode) -> DriftSubject | None:
    """Return the flags of a kubelet, if their file was seen.

    Of its registration a cluster stores the socket and the name; other flags that are there, nobody else has.
    """
    if node.kubelet_flags is None:
        return None
    # A name that is the host's needs no flag; what the host is called, a cluster does not tell.
    hostname = "" if _OVERRIDE in node.kubelet_flags else node.name
    socket = node.settings.cri_socket or DEFAULT_CRI_SOCKET
    arguments = kubelet_arguments(
        configuration.cluster,
        NodeRegistration(name=node.name, cri_socket=socket),
        NodeHost(hostname=hostname),
        kind="InitConfiguration" if node.is_control_plane else "JoinConfiguration",
        registers_taints=False,
    )
    if not node.kubelet_flags and not arguments:
        return None

    def decided_by(path: tuple[str | int, ...]) -> ValueSource | None:
        return arguments[path[-1]].source if isinstance(path[-1], int) else None

    words: list[Json] = [str(each) for each in arguments]
    data = node.kubelet_flags.encode()
    return DriftSubject(
        component=KUBELET_FLAGS,
        where=FLAGS_FILE,
        rendered=rendered_from({KUBELET_ARGS: words}, decided_by, str(configuration.cluster.facts.minor)),
        on_disk=FoundDocument(flags_document(data), FLAGS_FILE, data) if data else None,
        is_missing=not data,
    )


def told_of_kubelets(differences: Iterable[Difference]) -> Iterator[Difference]:
    """Yield differences, with what may be behind it if a kubelet runs with another value than its file has."""
    for each in differences:
        if each.component == KUBELET_TARGET and each.kind is DriftKind.STALE:
            reason = "the kubelet has not been started since, or one of its flags stands above its file"
            yield replace(each, reason=reason)
        elif not (each.component == KUBELET_FLAGS and each.kind is DriftKind.COSMETIC and each.path == (KUBELET_ARGS,)):
            yield each  # and not that there are flags where none are declared: each of them is told
