"""RootlessControlPlane: pods that run as users of their own, the owners that their files need, and those users.

The users and groups are added to the text of /etc/passwd and /etc/group.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from garboard.documents import Json
from garboard.errors import NotReady
from garboard.manifests.node import ControlPlaneNode, RootlessIds
from garboard.model.component import LocalEtcd
from garboard.model.go import join_path
from garboard.model.paths import CONTROLLER_MANAGER_CONF, SCHEDULER_CONF

KEY_READERS = "kubeadm-sa-key-readers"
USERS = {
    "etcd": "kubeadm-etcd",
    "kube-apiserver": "kubeadm-kas",
    "kube-controller-manager": "kubeadm-kcm",
    "kube-scheduler": "kubeadm-ks",
}
_READS_ACCOUNT_KEY = ("kube-apiserver", "kube-controller-manager")
_OWN_KEYS = {
    "etcd": ("etcd/server.key", "etcd/peer.key"),
    "kube-apiserver": ("sa.pub", "apiserver.key", "apiserver-kubelet-client.key", "front-proxy-client.key"),
}
_OWN_KUBECONFIG = {"kube-controller-manager": CONTROLLER_MANAGER_CONF, "kube-scheduler": SCHEDULER_CONF}

_NO_SHELL = "/bin/false"
_PASSWD_FIELDS, _GROUP_FIELDS = 7, 4
# What is meant by system accounts where /etc/login.defs does not say.
_DEFAULT_RANGE = (100, 999)
_MEMBERS: Mapping[str, str] = {
    **{name: name for name in USERS.values()},
    KEY_READERS: ",".join((USERS["kube-apiserver"], USERS["kube-controller-manager"])),
}


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner that a path needs; without a mode, the owner of everything below it too, and modes are kept."""

    path: str
    uid: int
    gid: int
    mode: int | None


def run_as_user(component: str, document: dict[str, Json], ids: RootlessIds) -> None:
    """Change a static pod so that it runs without root."""
    spec = document["spec"]
    assert isinstance(spec, dict)
    assert isinstance(spec["containers"], list)
    container, context = spec["containers"][0], spec["securityContext"]
    assert isinstance(container, dict)
    assert isinstance(context, dict)
    context["runAsUser"] = ids.users[USERS[component]]
    context["runAsGroup"] = ids.groups[USERS[component]]
    if component in _READS_ACCOUNT_KEY:
        context["supplementalGroups"] = [ids.groups[KEY_READERS]]
    container["securityContext"] = _container_context(component)


def _container_context(component: str) -> Json:
    if component == "kube-apiserver":
        # The file capability of its binary makes the kernel refuse to start it without this one.
        return {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def ownerships(component: str, node: ControlPlaneNode, ids: RootlessIds) -> Iterator[Ownership]:
    """Yield the files that need another owner before the component can run as its user."""
    folder, etcd = node.cluster.certificates_dir, node.cluster.etcd
    uid, gid = ids.users[USERS[component]], ids.groups[USERS[component]]
    if component == "etcd" and isinstance(etcd, LocalEtcd):
        yield Ownership(etcd.data_dir, uid, gid, None)
    for name in _OWN_KEYS.get(component, ()):
        yield Ownership(join_path(folder, name), uid, gid, 0o600)
    if component in _READS_ACCOUNT_KEY:
        yield Ownership(join_path(folder, "sa.key"), 0, ids.groups[KEY_READERS], 0o640)
    if component == "kube-apiserver" and isinstance(etcd, LocalEtcd):
        yield Ownership(join_path(folder, "apiserver-etcd-client.key"), uid, gid, 0o600)
    if component == "kube-controller-manager" and not node.host.is_external_ca:
        yield Ownership(join_path(folder, "ca.key"), uid, gid, 0o600)
    if component in _OWN_KUBECONFIG:
        yield Ownership(_OWN_KUBECONFIG[component], uid, gid, 0o600)


@dataclass(frozen=True, slots=True)
class PlannedUsers:
    """The new content of /etc/passwd and /etc/group, and the ids in it."""

    passwd: str
    group: str
    ids: RootlessIds


def plan_users(passwd: str, group: str, login_defs: str = "") -> PlannedUsers:
    """Add missing users and groups with the first free system ids; existing ones must be as expected."""
    users, groups = _entries(passwd, _PASSWD_FIELDS, "/etc/passwd"), _entries(group, _GROUP_FIELDS, "/etc/group")
    user_range, group_range = (_range(login_defs, kind) for kind in ("UID", "GID"))
    for fields in users:
        if fields[0] in USERS.values():
            _check_user(fields, groups, user_range)
    for fields in groups:
        if fields[0] in _MEMBERS:
            _check_group(fields, group_range)
    group_ids = _ids(groups, _MEMBERS, group_range, "group")
    user_ids = _ids(users, USERS.values(), user_range, "user")
    known_users, known_groups = ({fields[0] for fields in entries} for entries in (users, groups))
    user_lines = [f"{name}:x:{user_ids[name]}:{group_ids[name]}:::{_NO_SHELL}" for name in USERS.values()]
    group_lines = [f"{name}:x:{group_ids[name]}:{members}" for name, members in _MEMBERS.items()]
    return PlannedUsers(
        _appended(passwd, user_lines, known_users),
        _appended(group, group_lines, known_groups),
        RootlessIds(user_ids, group_ids),
    )


def without_users(text: str) -> str:
    """Return /etc/passwd or /etc/group without what `plan_users` adds."""
    return "\n".join(line for line in text.split("\n") if line.partition(":")[0] not in _MEMBERS or ":" not in line)


def _entries(text: str, size: int, file: str) -> list[list[str]]:
    entries = [line.strip().split(":") for line in text.split("\n") if line.strip()]
    for number, fields in enumerate(entries, start=1):
        if len(fields) != size or not re.fullmatch("[-+]?[0-9]+", fields[2]):
            raise NotReady(
                f"{file}: entry {number} must have {size} fields separated by ':', the third of them a number",
                hint="repair the file, or leave the feature gate RootlessControlPlane off",
            )
    return entries


def _range(login_defs: str, kind: str) -> range:
    bounds = []
    for name, default in zip((f"SYS_{kind}_MIN", f"SYS_{kind}_MAX"), _DEFAULT_RANGE, strict=True):
        found = re.findall(rf"^{name}(.*)$", login_defs, re.MULTILINE)
        if found and not re.fullmatch("[-+]?[0-9]+", found[-1].strip()):
            raise NotReady(f"/etc/login.defs: the value of {name} is not a number", hint="repair the file")
        bounds.append(int(found[-1]) if found else default)
    return range(bounds[0], bounds[1] + 1)


def _check_user(fields: list[str], groups: list[list[str]], allowed: range) -> None:
    name, number, gid, shell = fields[0], int(fields[2]), fields[3], fields[6]
    if number not in allowed:
        raise _unexpected(f"UID {number} for user {name!r} is outside the system's range {_shown(allowed)}")
    if shell != _NO_SHELL:
        raise _unexpected(f"user {name!r} has the shell {shell!r}, and {_NO_SHELL!r} was expected")
    if next((entry[0] for entry in groups if entry[2] == gid), None) != name:
        raise _unexpected(f"the group of user {name!r} (GID {gid}) does not have the same name")


def _check_group(fields: list[str], allowed: range) -> None:
    name, number, members = fields[0], int(fields[2]), fields[3]
    if number not in allowed:
        raise _unexpected(f"GID {number} of group {name!r} is outside the system's range {_shown(allowed)}")
    if members != _MEMBERS[name]:
        raise _unexpected(f"group {name!r} has the members {members!r}, and {_MEMBERS[name]!r} was expected")


def _ids(entries: list[list[str]], names: Iterable[str], allowed: range, kind: str) -> dict[str, int]:
    """Return the number of each name: the one that it has, or the next free one."""
    present = {fields[0]: int(fields[2]) for fields in reversed(entries)}
    taken = set(present.values())
    free = (number for number in allowed if number not in taken)
    try:
        return {name: present[name] if name in present else next(free) for name in names}
    except (StopIteration, RuntimeError):
        raise NotReady(
            f"no {kind} ids are left in the system's range {_shown(allowed)}", hint="widen it in /etc/login.defs"
        ) from None


def _appended(text: str, lines: list[str], known: set[str]) -> str:
    added = [line for line in lines if line.partition(":")[0] not in known]
    if not added:
        return text
    return text + ("" if text.endswith("\n") else "\n") + "".join(f"{line}\n" for line in added)


def _shown(allowed: range) -> str:
    return f"{allowed.start} - {allowed.stop - 1}"


def _unexpected(message: str) -> NotReady:
    return NotReady(message, hint="remove the user or group, and it will be made anew")
