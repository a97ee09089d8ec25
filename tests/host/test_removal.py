import os
from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host.removal import empty_folder, mounts_below, remove_empty_folder, remove_file
from tests.host.mounting import in_own_mounts


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


def test_mounts_are_found_below_a_path_and_not_beside_it() -> None:
    lines = (
        "24 1 8:1 / / rw - ext4 /dev/sda rw",
        "25 24 0:5 / /var/lib/kubelet rw - tmpfs tmpfs rw",
        "26 25 0:6 / /var/lib/kubelet/pods/a\\040b rw - tmpfs tmpfs rw",
        "27 24 0:7 / /var/lib/kubelet-other rw - tmpfs tmpfs rw",
    )
    assert mounts_below("/var/lib/kubelet", "\n".join(lines)) == ("/var/lib/kubelet/pods/a b",)


_MOUNTED = """
import sys
from pathlib import Path
from garboard.host import removal
root, disk = Path(sys.argv[1]), Path(sys.argv[2])
libc = removal._libc
(root / "pods/a").mkdir(parents=True)
(root / "file").write_text("x")
bind = lambda source, target: libc.mount(str(source).encode(), str(target).encode(), None, 4096, None)
assert bind(root, root) == 0 and bind(disk, root / "pods/a") == 0
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")
def test_part_of_the_same_disk_that_is_mounted_below_is_not_emptied(tmp_path: Path) -> None:
    disk, root = tmp_path / "disk", tmp_path / "root"
    for folder in (disk, root):
        folder.mkdir()
    (disk / "data").write_text("mine")
    in_own_mounts(_MOUNTED + "removal.empty_folder(root)", root, disk)
    assert (disk / "data").read_text() == "mine"
    assert [each.name for each in root.iterdir()] == ["pods"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")
@pytest.mark.parametrize("flags", ["()", "('MNT_DETACH', 'UMOUNT_NOFOLLOW')"])
def test_what_is_below_is_unmounted_and_what_is_at_the_folder_stays(tmp_path: Path, flags: str) -> None:
    disk, root, link = tmp_path / "disk", tmp_path / "root", tmp_path / "link"
    for folder in (disk, root):
        folder.mkdir()
    link.symlink_to(root)
    after = f"""
removal.unmount_below({str(link)!r}, {flags})
mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
assert str(root) in mounted and str(root / "pods/a") not in mounted
"""
    in_own_mounts(_MOUNTED + after, root, disk)
