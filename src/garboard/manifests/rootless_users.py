"""The users and groups that RootlessControlPlane needs, added to the text of /etc/passwd and /etc/group."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from garboard.errors import NotReady
from garboard.manifests.node import RootlessIds
from garboard.manifests.rootless import KEY_READERS, USERS

_NO_SHELL = "/bin/false"
_PASSWD_FIELDS, _GROUP_FIELDS = 7, 4
# What is meant by system accounts where /etc/login.defs does not say.
_DEFAULT_RANGE = (100, 999)
_MEMBERS: Mapping[str, str] = {
    **{name: name for name in USERS.values()},
    KEY_READERS: ",".join((USERS["kube-apiserver"], USERS["kube-controller-manager"])),
}


@dataclass(frozen=True, slots=True)
class PlannedUsers:
    """What the two files must say, and the numbers that follow from them."""

    passwd: str
    group: str
    ids: RootlessIds


def plan_users(passwd: str, group: str, login_defs: str = "") -> PlannedUsers:
    """Add what is missing with the first free numbers of the system's range; what is there must be as expected."""
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
