"""The etcd member of this node: what its static Pod says, and what etcd says of its members."""

from dataclasses import dataclass
from typing import Protocol

from garboard.documents import Json, read_yaml
from garboard.errors import GarboardError, NotReady
from garboard.model.go import join_path
from garboard.model.paths import manifest_path

MANIFEST = manifest_path("etcd")
_DATA_VOLUME = "etcd-data"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMember:
    """What a manifest of etcd says of its member."""

    name: str = ""
    data_dir: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    is_first: bool  # it began a cluster of its own; others may have joined it since
    has_own_wal_dir: bool = False  # its log is not among its data


@dataclass(frozen=True, slots=True)
class ObservedMember:
    """A member that etcd knows."""

    name: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    is_learner: bool
    id: str = ""  # in hexadecimal digits, as etcd's own tools print it

    @property
    def line(self) -> str:
        """All that etcd says of the member: it differs when anything about that does."""
        return f"{self.id} {self.name} {','.join(self.peer_urls)} {','.join(self.client_urls)} {self.is_learner}"


@dataclass(frozen=True, slots=True)
class StoredMembers:
    """What the database of this node's member says of the members, read while etcd itself could not be asked."""

    members: tuple[ObservedMember, ...] | None = None  # None where the member has stored nothing
    failure: str = ""  # why it could not be read

    def own(self, local: LocalMember) -> ObservedMember | None:
        """Return the member of this node, by its peer URL or else by its name."""
        found = self.members or ()
        by_url = (each for each in found if set(each.peer_urls) & set(local.peer_urls))
        return next(by_url, None) or next((each for each in found if each.name and each.name == local.name), None)

    def others(self, local: LocalMember) -> tuple[ObservedMember, ...]:
        own = self.own(local)
        return tuple(each for each in self.members or () if each is not own)

    def is_last(self, local: LocalMember) -> bool:
        """Say whether no cluster is left that would miss the member.

        One that began a cluster may have been stopped before it knew itself. One that joined knows of others from the
        beginning, so its data have to say that it is the last one that votes.
        """
        if self.failure or self.others(local):
            return False
        own = self.own(local)
        return local.is_first or (own is not None and not own.is_learner)


class DataView(Protocol):
    """The files of this machine, as far as they tell whether a member has lived."""

    def entries(self, path: str) -> tuple[str, ...]: ...

    def has_files(self, path: str) -> bool: ...


class EtcdView(Protocol):
    """etcd as planning sees it."""

    def members(self, client_urls: tuple[str, ...]) -> tuple[ObservedMember, ...]:
        """Return all members; `client_urls` is where the one of this machine is, if the cluster tells no others."""
        ...

    def stored_members(self, data_dir: str) -> tuple[ObservedMember, ...] | None:
        """Return the members by the database in a folder of data, or None where there is none."""
        ...

    def own_id(self, client_urls: tuple[str, ...]) -> str:
        """Return the id of the member that answers at these URLs; empty if none does."""
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
        name=arguments.get("name", ""),
        data_dir=data_dir,
        peer_urls=peer_urls,
        client_urls=_urls(arguments, "advertise-client-urls"),
        is_first=arguments.get("initial-cluster-state", "new") == "new",
        has_own_wal_dir=bool(arguments.get("wal-dir")),
    )


def read_stored(etcd: EtcdView, local: LocalMember, machine: DataView) -> StoredMembers:
    """Return what the database of the member says; one that cannot be read is no failure yet.

    Without a database, or with one that does not even name this member, other data show that the member has lived, and
    nothing shows whether it was alone.
    """
    try:
        found = etcd.stored_members(local.data_dir)
    except GarboardError as error:
        return StoredMembers(failure=error.message)
    folder = join_path(local.data_dir, "member")
    if found is None and machine.has_files(folder):
        return StoredMembers(failure=f"there is no database among the data in {folder}")
    if found == () and (local.has_own_wal_dir or _has_lived(folder, machine)):
        return StoredMembers(failure=f"the database in {folder} names no member, and the member has lived")
    return StoredMembers(found)


def _has_lived(folder: str, machine: DataView) -> bool:
    """Say whether a member has written its log or a snapshot: only before that does a database name nobody."""
    snapshots = (name for name in machine.entries(join_path(folder, "snap")) if name.endswith(".snap"))
    return any(snapshots) or machine.has_files(join_path(folder, "wal"))


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
