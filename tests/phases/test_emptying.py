"""Which folders reset empties, and which it refuses: by where a path leads, and by what is there."""

import pytest

from garboard.engine import EmptyFolder, Note, Step
from garboard.errors import NotReady
from garboard.phases.emptying import (
    CERTIFICATES_ROLE,
    KUBELET_ROLE,
    MANIFESTS_ROLE,
    MEMBER_ROLE,
    TEMPORARY_ROLE,
    FolderRole,
    plan_emptying,
)
from tests.support.phases.machines import MemoryMachine


def plan(machine: MemoryMachine, path: str, role: FolderRole = CERTIFICATES_ROLE, *allowed: str) -> list[Step | Note]:
    return [*plan_emptying(machine, path, role, allowed=frozenset(allowed))]


def machine_with(*files: str, links: dict[str, str] | None = None) -> MemoryMachine:
    folders = {path[:index] for path in files for index, letter in enumerate(path) if letter == "/" and index}
    return MemoryMachine(files=dict.fromkeys(files, b"x"), folders=folders, links=links or {})


def emptied(steps: list[Step | Note]) -> EmptyFolder:
    (action,) = (each.action for each in steps if isinstance(each, Step))
    assert isinstance(action, EmptyFolder)
    assert action.is_resolved
    return action


@pytest.mark.parametrize("path", [
    "/etc", "/etc/", "//etc", "/etc/.", "/./etc", "/etc/kubernetes/..", "/srv/link", "/etc/kubernetes/pki/up",
    "/usr/lib", "/lib", "/", "//", "/srv/..", "/etc/kubernetes", "/var/lib/garboard", "/etc/kubernetes/../../usr//lib/",
])  # fmt: skip
@pytest.mark.parametrize("allowed", [(), ("/etc", "/usr/lib", "/", "/etc/kubernetes", "/var/lib/garboard")])
def test_folder_of_the_system_is_never_emptied_however_it_is_written(path: str, allowed: tuple[str, ...]) -> None:
    links = {"/srv/link": "/etc", "/etc/kubernetes/pki/up": "/etc", "/lib": "/usr/lib"}
    machine = machine_with("/etc/passwd", "/etc/kubernetes/pki/ca.crt", "/usr/lib/os-release", links=links)
    with pytest.raises(NotReady, match="folder of the system"):
        plan(machine, path, CERTIFICATES_ROLE, *allowed)


def test_folder_elsewhere_with_certificates_alone_loses_these_and_nothing_that_comes_later() -> None:
    machine = machine_with("/srv/pki/ca.crt", "/srv/pki/ca.key", "/srv/pki/etcd/ca.crt", "/srv/pki/sa.pub")
    action = emptied(plan(machine, "//srv/./pki/"))
    assert action.path == "/srv/pki"
    assert {"ca.crt", "etcd/ca.crt", "apiserver.csr", "sa.key"} <= set(action.only)


@pytest.mark.parametrize("name", ["photo.jpg", "ca.crt.bak", "etcd/member", "certs/ca.crt", "ca.crt/nested"])
def test_folder_elsewhere_with_anything_else_is_refused_and_that_is_listed(name: str) -> None:
    machine = machine_with("/srv/pki/apiserver.crt", f"/srv/pki/{name}")
    with pytest.raises(NotReady, match="holds what kubeadm does not make") as caught:
        plan(machine, "/srv/pki")
    assert caught.value.error_class == "foreign-files"
    listed = caught.value.message.rpartition(": ")[2]
    assert name.startswith(listed)
    assert listed != ""
    assert "--allow-path /srv/pki" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("role", "name"),
    [(CERTIFICATES_ROLE, "etcd"), (KUBELET_ROLE, "pods"), (KUBELET_ROLE, "pki"), (MEMBER_ROLE, "snap")],
)
def test_file_or_link_with_the_name_of_a_folder_is_none_that_kubeadm_made(role: FolderRole, name: str) -> None:
    with pytest.raises(NotReady, match=f"holds what kubeadm does not make: {name}$"):
        plan(machine_with(f"/srv/bin/{name}"), "/srv/bin", role)
    linked = machine_with("/srv/bin/x", "/disk/data/ca.crt", links={f"/srv/bin/{name}": "/disk/data"})
    linked.folders.add(f"/srv/bin/{name}")
    with pytest.raises(NotReady, match=f"holds what kubeadm does not make: {name}, x$"):
        plan(linked, "/srv/bin", role)


def test_long_list_is_cut() -> None:
    with pytest.raises(NotReady, match=r"00, 01, .*, 09 and 20 more"):
        plan(machine_with(*(f"/data/{number:02}" for number in range(30))), "/data")


def test_what_the_user_allows_is_emptied_with_a_warning_and_nothing_else_is_allowed_by_it() -> None:
    machine = machine_with("/srv/pki/photo.jpg", "/srv/other/photo.jpg")
    steps = plan(machine, "/srv/pki/", CERTIFICATES_ROLE, "/srv/pki")
    assert emptied(steps) == EmptyFolder(path="/srv/pki", is_resolved=True, is_quiet=True, mount="/")
    assert any(isinstance(each, Note) and each.is_warning and "/srv/pki" in each.text for each in steps)
    for allowed in ("/srv", "/srv/pki/photo.jpg", "/srv/pki"):
        with pytest.raises(NotReady):
            plan(machine, "/srv/other", CERTIFICATES_ROLE, allowed)


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("/etc/kubernetes/pki", CERTIFICATES_ROLE),
        ("/etc/kubernetes/own/pki", CERTIFICATES_ROLE),
        ("/var/lib/kubelet", KUBELET_ROLE),
        ("/etc/kubernetes/manifests", MANIFESTS_ROLE),
        ("/etc/kubernetes/tmp", TEMPORARY_ROLE),
        ("/var/lib/etcd/member", MEMBER_ROLE),
    ],
)
def test_folder_of_kubernetes_is_emptied_whatever_it_holds(path: str, role: FolderRole) -> None:
    action = emptied(plan(machine_with(f"{path}/mine"), path, role))
    # The kubelet and etcd write into their folders until they are stopped.
    is_quiet = role not in (KUBELET_ROLE, MEMBER_ROLE)
    assert action == EmptyFolder(path=path, is_resolved=True, is_quiet=is_quiet, mount="/")


@pytest.mark.parametrize("path", ["/var/lib/etcd", "/var/lib/etcd/member"])
def test_data_of_etcd_do_not_go_as_certificates(path: str) -> None:
    machine = machine_with("/var/lib/etcd/member/snap/db")
    with pytest.raises(NotReady, match="holds what kubeadm does not make"):
        plan(machine, path)


@pytest.mark.parametrize(
    ("path", "role", "belongs", "foreign"),
    [
        ("/var/lib/kubelet", KUBELET_ROLE, "pods/1/volumes/any", "passwd"),
        ("/etc/kubernetes/manifests", MANIFESTS_ROLE, "etcd.yaml", "web.yaml"),
        ("/var/lib/etcd/member", MEMBER_ROLE, "snap/db", "db"),
        ("/etc/kubernetes/pki", CERTIFICATES_ROLE, "ca.crt", "passwd"),
    ],
)
def test_folder_of_kubernetes_that_is_a_link_is_judged_where_it_leads(
    path: str, role: FolderRole, belongs: str, foreign: str
) -> None:
    links = {path: "/disk/data"}
    action = emptied(plan(machine_with(f"/disk/data/{belongs}", links=links), path, role))
    assert (action.path, action.only) == ("/disk/data", role.names)
    with pytest.raises(NotReady, match=f"{path} .*/disk/data.*: {foreign}"):
        plan(machine_with(f"/disk/data/{belongs}", f"/disk/data/{foreign}", links=links), path, role)
    with pytest.raises(NotReady, match="folder of the system"):
        plan(machine_with("/etc/passwd", links={path: "/etc"}), path, role)


def test_empty_folder_needs_no_step() -> None:
    assert plan(machine_with("/srv/x"), "/srv/pki") == []


@pytest.mark.parametrize("mount", ["/etc/kubernetes/pki", "/etc/kubernetes/pki/etcd"])
def test_what_is_mounted_below_a_home_is_judged_by_its_names(mount: str) -> None:
    machine = machine_with(f"{mount}/ca.crt", f"{mount}/photo.jpg")
    assert not emptied(plan(machine, mount)).only
    machine.mounts = {mount}
    with pytest.raises(NotReady, match=r"photo\.jpg"):
        plan(machine, mount)
    allowed = emptied(plan(machine, mount, CERTIFICATES_ROLE, mount))
    assert (allowed.only, allowed.mount) == ((), mount)


def test_home_that_is_a_mount_itself_is_a_home() -> None:
    machine = machine_with("/var/lib/kubelet/photo.jpg")
    machine.mounts = {"/var/lib/kubelet"}
    assert not emptied(plan(machine, "/var/lib/kubelet", KUBELET_ROLE)).only
