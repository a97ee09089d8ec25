import os
from pathlib import Path

import pytest

from garboard.errors import GarboardError, NotReady
from garboard.host import beneath, removal
from garboard.host.removal import (
    empty_folder,
    mounts_below,
    remove_empty_folder,
    remove_file,
    remove_folder,
)
from tests.support.host.mounting import in_own_mounts

pytestmark = pytest.mark.read_only_machine


def test_file_and_link_go_and_what_a_link_names_stays(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept", tmp_path / "link"
    kept.write_text("x")
    link.symlink_to(kept)
    remove_file(link)
    remove_file(tmp_path / "never")
    remove_file(tmp_path / "no-folder" / "never")
    assert kept.read_text() == "x"
    assert not link.is_symlink()


def test_folder_is_not_taken_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(GarboardError, match="cannot remove"):
        remove_file(tmp_path)


def test_what_shall_be_kept_stays(tmp_path: Path) -> None:
    for name in ("old/deep", "new/old"):
        (tmp_path / name).mkdir(parents=True)
    empty_folder(tmp_path, keeps=("old",))
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "old", tmp_path / "old/deep"]


def test_only_an_empty_folder_goes(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    remove_empty_folder(tmp_path / "a")
    assert (tmp_path / "a" / "b").is_dir()
    remove_empty_folder(tmp_path / "a" / "b")
    remove_empty_folder(tmp_path / "a")
    remove_empty_folder(tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_emptied_folder_stays_and_links_are_not_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    (outside / "data").write_text("mine")
    (root / "deep" / "deeper").mkdir(parents=True)
    (root / "deep" / "deeper" / "file").write_text("x")
    (root / "way-out").symlink_to(outside)
    empty_folder(root)
    empty_folder(tmp_path / "never")
    assert list(root.iterdir()) == []
    assert (outside / "data").read_text() == "mine"


def test_folders_are_emptied_however_deep_they_are(tmp_path: Path) -> None:
    """A pod may have made them; neither the stack nor the table of open files grows with them."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deeper", dir_fd=here)
        below = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    empty_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_moved_away_meanwhile_ends_the_emptying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/file").write_text("x")
    outside.mkdir()
    (outside / "data").write_text("mine")
    unlinked = removal._unlinked

    def moving(folder: int, name: str) -> bool:
        (root / "a/b").rename(outside / "b")
        return unlinked(folder, name)

    monkeypatch.setattr(removal, "_unlinked", moving)
    with pytest.raises(GarboardError, match="a/b was moved while it was being emptied"):
        empty_folder(root)
    assert sorted(each.name for each in outside.iterdir()) == ["b", "data"]


@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_folder_that_is_swapped_for_a_link_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a").mkdir(parents=True)
    outside.mkdir()
    (outside / "data").write_text("mine")
    open_child = beneath.open_child

    def swapping(folder: int, name: str) -> int | None:
        (root / "a").rmdir()
        (root / "a").symlink_to(outside)
        return open_child(folder, name)

    monkeypatch.setattr(removal, "open_child", swapping)
    monkeypatch.setattr("garboard.host.beneath._has_openat2", way == "openat2")
    with pytest.raises(GarboardError, match="cannot empty"):
        empty_folder(root)
    assert (outside / "data").read_text() == "mine"


def test_folder_with_anything_else_than_its_names_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "etcd").mkdir()
    files = ("ca.crt", ".ca.key.0a1b2c3d", "etcd/ca.crt", "etcd/photo", "passwd")
    for name in files:
        (tmp_path / name).write_text("x")
    with pytest.raises(NotReady, match=r"holds what kubeadm does not make.*: etcd/photo, passwd$"):
        empty_folder(tmp_path, only=("ca.crt", "ca.key", "etcd/ca.crt"))
    assert all((tmp_path / name).exists() for name in files)


@pytest.mark.parametrize("name", ["etcd", "pods"])
def test_file_or_link_with_the_name_of_a_folder_is_somebody_elses(tmp_path: Path, name: str) -> None:
    names = ("ca.crt", "etcd/ca.crt", "pods/")
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / name).write_text("a program")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / name).symlink_to("/")
    for folder in ("file", "link"):
        with pytest.raises(NotReady, match=rf"holds what kubeadm does not make.*: {name}$"):
            empty_folder(tmp_path / folder, only=names)
        assert os.path.lexists(tmp_path / folder / name)


def test_file_that_replaces_a_folder_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etcd").mkdir()
    look = removal._foreign

    def late(folder: int, names: tuple[str, ...], prefix: str = "") -> list[str]:
        found = [*look(folder, names, prefix)]
        if prefix:
            return found
        (tmp_path / "etcd").rmdir()
        (tmp_path / "etcd").write_text("a program")
        return found

    monkeypatch.setattr(removal, "_foreign", late)
    empty_folder(tmp_path, only=("etcd/ca.crt",))
    assert (tmp_path / "etcd").read_text() == "a program"


def test_folder_with_nothing_but_its_names_is_emptied(tmp_path: Path) -> None:
    for folder in ("etcd", "pods/1/volumes"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("ca.crt", ".ca.key.0a1b2c3d", "etcd/ca.crt", "pods/1/volumes/any"):
        (tmp_path / name).write_text("x")
    empty_folder(tmp_path, only=("ca.crt", "ca.key", "etcd/ca.crt", "pods/"))
    assert list(tmp_path.iterdir()) == []


def test_what_comes_into_a_folder_meanwhile_and_has_another_name_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.crt").write_text("x")
    look = removal._foreign

    def late(folder: int, names: tuple[str, ...]) -> list[str]:
        found = [*look(folder, names)]
        (tmp_path / "photo").write_text("mine")
        return found

    monkeypatch.setattr(removal, "_foreign", late)
    empty_folder(tmp_path, only=("ca.crt",))
    assert [each.name for each in tmp_path.iterdir()] == ["photo"]


@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_resolved_folder_is_not_looked_for_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr("garboard.host.beneath._has_openat2", way == "openat2")
    (tmp_path / "other/pki").mkdir(parents=True)
    (tmp_path / "other/pki/data").write_text("mine")
    (tmp_path / "etc").symlink_to("other")
    with pytest.raises(GarboardError, match="Too many levels of symbolic links"):
        empty_folder(tmp_path / "etc/pki", is_resolved=True)
    assert (tmp_path / "other/pki/data").exists()
    empty_folder(tmp_path / "other/pki", is_resolved=True)
    assert not (tmp_path / "other/pki/data").exists()


def test_folder_goes_with_all_in_it_and_a_missing_one_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "run/kept").mkdir(parents=True)
    (tmp_path / "run/kept/a").write_text("x")
    remove_folder(tmp_path / "run")
    remove_folder(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_mounts_are_found_below_a_path_and_not_beside_it() -> None:
    lines = (
        "24 1 8:1 / / rw - ext4 /dev/sda rw",
        "25 24 0:5 / /var/lib/kubelet rw - tmpfs tmpfs rw",
        "26 25 0:6 / /var/lib/kubelet/pods/a\\040b rw - tmpfs tmpfs rw",
        "27 24 0:7 / /var/lib/kubelet-other rw - tmpfs tmpfs rw",
    )
    assert mounts_below("/var/lib/kubelet", "\n".join(lines)) == ("/var/lib/kubelet/pods/a b",)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")
@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_folder_that_something_was_mounted_over_since_is_not_emptied(tmp_path: Path, way: str) -> None:
    disk, root = tmp_path / "disk", tmp_path / "root"
    for folder in (disk, root):
        folder.mkdir()
    (disk / "data").write_text("mine")
    code = """
from garboard.errors import GarboardError
pki = root / "pki"
pki.mkdir()
planned, below = removal.mount_point(pki), removal.mount_point(root / "pods/a")
assert (planned, below) == (str(root), str(root / "pods/a"))
removal.empty_folder(pki, is_resolved=True, mount=planned)
assert bind(disk, pki) == 0
try:
    removal.empty_folder(pki, is_resolved=True, mount=planned)
except GarboardError as error:
    assert f"it is in what is mounted at {pki} now, and was at {root}" in error.message, error.message
else:
    raise AssertionError("it was emptied")
assert removal.mount_point(root / "missing") == ""
"""
    in_own_mounts(_MOUNTED + code, root, disk, Path(way))
    assert (disk / "data").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")
def test_mount_point_is_a_path_below_the_root_in_use(tmp_path: Path) -> None:
    disk, root = tmp_path / "disk", tmp_path / "root"
    for folder in (disk, root):
        folder.mkdir()
    code = """
from garboard.host.root import inside
with inside(str(root)):
    assert removal.mount_point("/pods/a") == "/pods/a"
    assert removal.mount_point("/pods") == "/"
with inside(str(root / "pods")):
    assert removal.mount_point("/a") == "/a"
    assert removal.mount_point("/") == "/"
import os
(root / "pods/part/deep").mkdir(parents=True)
(root / "pods/proc").mkdir()
assert bind(Path("/proc"), root / "pods/proc") == 0
os.chroot(root / "pods")  # a part of a mount, which is not listed in there
assert removal.mount_point("/part/deep") == "/"
assert removal.mount_point("/a") == "/a"
"""
    in_own_mounts(_MOUNTED + code, root, disk, Path("openat2"))


def test_mount_whose_name_is_no_utf8_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_bytes(b"26 25 0:6 / /var/lib/kubelet/pods/\xff rw - tmpfs tmpfs rw\n")
    monkeypatch.setattr("garboard.host.removal._MOUNTINFO", tmp_path / "mountinfo")
    assert [os.fsencode(each) for each in mounts_below("/var/lib/kubelet")] == [b"/var/lib/kubelet/pods/\xff"]


_MOUNTED = """
import sys
from pathlib import Path
from garboard.host import beneath, removal
root, disk, way = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]).name
beneath._has_openat2 = way == "openat2"
libc = removal._libc
(root / "pods/a").mkdir(parents=True)
(root / "file").write_text("x")
bind = lambda source, target: libc.mount(str(source).encode(), str(target).encode(), None, 4096, None)
assert bind(root, root) == 0 and bind(disk, root / "pods/a") == 0
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")
@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_part_of_the_same_disk_that_is_mounted_below_is_not_emptied(tmp_path: Path, way: str) -> None:
    disk, root = tmp_path / "disk", tmp_path / "root"
    for folder in (disk, root):
        folder.mkdir()
    (disk / "data").write_text("mine")
    in_own_mounts(_MOUNTED + "removal.empty_folder(root)", root, disk, Path(way))
    assert (disk / "data").read_text() == "mine"
    assert [each.name for each in root.iterdir()] == ["pods"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")
def test_file_that_is_mounted_below_stays(tmp_path: Path) -> None:
    disk, root = tmp_path / "disk", tmp_path / "root"
    for folder in (disk, root):
        folder.mkdir()
    (disk / "data").write_text("mine")
    code = 'assert bind(disk / "data", root / "file") == 0\nremoval.empty_folder(root)\nassert (root / "file").exists()'
    in_own_mounts(_MOUNTED + code, root, disk, Path("openat2"))
    assert (disk / "data").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")
@pytest.mark.parametrize("flags", ["()", "('MNT_DETACH', 'UMOUNT_NOFOLLOW')"])
def test_what_is_below_is_unmounted_and_what_is_at_the_folder_stays(tmp_path: Path, flags: str) -> None:
    disk, root, link = tmp_path / "disk", tmp_path / "root", tmp_path / "link"
    for folder in (disk, root):
        folder.mkdir()
    link.symlink_to(root)
    after = f"""
removal.unmount_below({str(link)!r}, {flags})  # a link that came meanwhile leads nowhere
assert str(root / "pods/a") in [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
removal.unmount_below({str(root)!r}, {flags})
mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
assert str(root) in mounted and str(root / "pods/a") not in mounted
"""
    in_own_mounts(_MOUNTED + after, root, disk, Path("openat2"))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")
def test_mounts_that_shall_stay_are_not_unmounted(tmp_path: Path) -> None:
    disk, root = tmp_path / "disk", tmp_path / "root"
    for folder in (disk, root):
        folder.mkdir()
    (disk / "former").write_text("x")
    (disk / "below").mkdir()
    after = """
(root / "own").mkdir()
assert bind(root / "own", root / "pods/a") == 0 and bind(disk, root / "own") == 0  # later ones, one on top of a former
removal.unmount_below(str(root), keeps=[str(root / "pods/a")])
mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
assert mounted.count(str(root / "pods/a")) == 1 and str(root / "own") not in mounted
assert (root / "pods/a/former").exists()  # the one of before
"""
    in_own_mounts(_MOUNTED + after, root, disk, Path("openat2"))
