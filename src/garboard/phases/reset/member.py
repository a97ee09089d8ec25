"""The etcd member of this node: what its static Pod says, and what etcd says of its members."""

from dataclasses import dataclass
from typing import Protocol

from garboard.documents import Json, read_yaml
from garboard.errors import GarboardError, NotReady
from garboard.manifests.paths import manifest_path

MANIFEST = manifest_path("etcd")
_DATA_VOLUME = "etcd-data"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMember:
    """What a manifest of etcd says of its member."""

    data_dir: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    is_first: bool  # it began a cluster of its own; others may have joined it since


@dataclass(frozen=True, slots=True)
class SeenMember:
    """A member that etcd knows."""

    name: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    is_learner: bool


class EtcdView(Protocol):
    """etcd as planning sees it."""

    def members(self, client_urls: tuple[str, ...]) -> tuple[SeenMember, ...]:
        """Return all members; `client_urls` is where the one of this machine is, if the cluster tells no others."""
        ...


def read_member(data: bytes) -> LocalMember:
    """Return what the manifest says; one that cannot be understood is refused, for its data may be anywhere."""
    try:
        pod = read_yaml(data.decode(), source=MANIFEST)
        arguments = _arguments(pod)
        data_dir = _data_dir(pod)
    except (GarboardError, UnicodeDecodeError, ValueError) as error:
        raise _not_understood(str(error)) from error
    peer_urls = _urls(arguments, "initial-advertise-peer-urls")
    if not data_dir or not peer_urls:
        raise _not_understood(f"it has no volume {_DATA_VOLUME}, or no --initial-advertise-peer-urls")
    return LocalMember(
        data_dir=data_dir,
        peer_urls=peer_urls,
        client_urls=_urls(arguments, "advertise-client-urls"),
        is_first=arguments.get("initial-cluster-state", "new") == "new",
    )


def _not_understood(why: str) -> NotReady:
    return NotReady(
        f"{MANIFEST} cannot be understood: {why}",
        hint="repair it, or leave its member and data alone with --skip-phases remove-etcd-member",
    )


def _urls(arguments: dict[str, str], flag: str) -> tuple[str, ...]:
    return tuple(url for url in arguments.get(flag, "").split(",") if url)


def _arguments(pod: Json) -> dict[str, str]:
    words = [word for container in _list(_spec(pod), "containers") for word in _words(container)]
    pairs = (word.removeprefix("--").partition("=") for word in words if word.startswith("--"))
    return {name: value for name, _, value in pairs}


def _words(container: Json) -> list[str]:
    return [str(word) for key in ("command", "args") for word in _list(container, key)]


def _data_dir(pod: Json) -> str:
    for volume in _list(_spec(pod), "volumes"):
        if isinstance(volume, dict) and volume.get("name") == _DATA_VOLUME:
            host_path = volume.get("hostPath")
            path = host_path.get("path") if isinstance(host_path, dict) else None
            return path if isinstance(path, str) and path.startswith("/") else ""
    return ""


def _spec(pod: Json) -> Json:
    return pod.get("spec") if isinstance(pod, dict) else None


def _list(value: Json, key: str) -> list[Json]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []
