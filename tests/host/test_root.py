import os
from pathlib import Path

import pytest

from garboard.errors import BadUsage, GarboardError
from garboard.host import beneath
from garboard.host.files import make_folder, read_file, read_if_there, write_file
from garboard.host.folders import list_tree, paths_below
from garboard.host.root import at, changed_root, exists, inside, resolved
from tests.support.host.mounting import in_read_only_machine


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "etc").mkdir(parents=True)
    (tmp_path / "outside").write_text("outside")
    return folder


@pytest.fixture(params=["openat2", "walk"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With openat2, and as if the kernel had none."""
    monkeypatch.setattr(beneath, "_has_openat2", request.param == "openat2")


@pytest.mark.parametrize(("path", "place"), [
    pytest.param("/etc/x", "etc/x", id="absolute"),
    pytest.param("etc/x", "etc/x", id="relative, from the root"),
    pytest.param("/../../etc/./x", "etc/x", id="never above the root"),
    pytest.param("//etc/x", "etc/x", id="two slashes"),
    pytest.param("///etc//x", "etc/x", id="three slashes"),
    pytest.param("/etc/../../etc/x", "etc/x", id="up and down again"),
    pytest.param("/link/x", "etc/x", id="absolute link"),
    pytest.param("/slashes/x", "etc/x", id="link to two slashes"),
    pytest.param("/etc/up/etc/x", "etc/x", id="link that climbs"),
    pytest.param("/missing/../etc/x", "etc/x", id="through what is not there"),
])  # fmt: skip
def test_paths_are_led_below_the_root(root: Path, path: str, place: str) -> None:
    (root / "link").symlink_to("/etc")
    (root / "slashes").symlink_to("//etc")
    (root / "etc/up").symlink_to("../../..")
    with inside(str(root)):
        assert at(path) == root / place
        assert resolved(path) == f"/{place}"
    assert at(path) == Path(path)


_OUTSIDE = """
from pathlib import Path
from garboard.errors import GarboardError
from garboard.host import beneath
from garboard.host.files import make_folder, read_file, write_file
from garboard.host.removal import empty_folder, remove_file
from garboard.host.root import exists, inside, is_folder
beneath._has_openat2 = sys.argv[1] == "openat2"
outside = Path(scratch)
root = outside / "root"
(root / "etc").mkdir(parents=True)
(outside / "kept").mkdir()
(outside / "kept/file").write_text("outside")
(root / "to-parent").symlink_to("../../..")
(root / "to-top").symlink_to("//")
(root / "chain-0").symlink_to(outside)
for number in range(60):
    (root / f"chain-{number + 1}").symlink_to(f"chain-{number}")
paths = [
    "/kept", "//kept", "/../kept", "/etc/../../kept", "/to-parent/kept", f"/to-top/{outside}/kept", f"/{outside}/kept",
    f"{outside}/kept", "kept", "../kept", "/etc/x/../../../kept", "/chain-39/kept", "/chain-40/kept", "/chain-60/kept",
]
changes = (lambda path: write_file(path, b"x"), make_folder, remove_file, empty_folder)
with inside(str(root)):
    for path in (*paths, *(f"{path}/file" for path in paths)):
        assert not exists(path) and not is_folder(path), path
        try:
            read_file(path)
        except GarboardError:
            pass
        else:
            sys.exit(f"{path} was read")
    for change in changes:
        for path in (*paths, *(f"{path}/file" for path in paths)):
            try:
                change(path)
            except GarboardError as error:
                assert "Read-only" not in error.message, error.message
assert (outside / "kept/file").read_text() == "outside"
assert sorted(each.name for each in outside.iterdir()) == ["kept", "root"]
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")
@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_nothing_outside_the_root_is_read_written_or_removed(tmp_path: Path, way: str) -> None:
    in_read_only_machine(_OUTSIDE, tmp_path, way)


def test_relative_paths_are_resolved_from_the_working_directory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    (root / "link").symlink_to("etc")
    assert resolved("link/../etc/./x") == f"{root}/etc/x"
    assert resolved(f"/{root}//link") == f"{root}/etc"


@pytest.mark.usefixtures("_either_way")
def test_a_link_itself_is_seen_where_it_shall_not_be_followed(root: Path) -> None:
    (root / "link").symlink_to("/nowhere")
    with inside(str(root)):
        assert exists("/link", follows_last=False)
        assert not exists("/link")


@pytest.mark.usefixtures("_either_way")
def test_links_in_a_circle_end(root: Path) -> None:
    (root / "a").symlink_to("/b")
    (root / "b").symlink_to("/a")
    with inside(str(root)):
        assert read_if_there("/etc/nothing") is None
        with pytest.raises(GarboardError, match="Too many levels of symbolic links"):
            read_file("/a/x")
        with pytest.raises(OSError, match="Too many levels of symbolic links"):
            resolved("/a/x")
        with pytest.raises(GarboardError, match="Too many levels of symbolic links"):
            write_file("/a", b"x")


@pytest.mark.usefixtures("_either_way")
def test_as_many_links_are_followed_as_the_kernel_follows(root: Path) -> None:
    (root / "link-0").symlink_to("/etc")
    for number in range(1, 41):
        (root / f"link-{number}").symlink_to(f"/link-{number - 1}")
    (root / "etc/x").write_bytes(b"found")
    with inside(str(root)):
        assert read_if_there("/link-39/x") == b"found"
        assert resolved("/link-39/x") == "/etc/x"
        with pytest.raises(GarboardError, match="Too many levels"):
            read_if_there("/link-40/x")


@pytest.mark.usefixtures("_either_way")
def test_files_are_written_and_read_below_the_root(root: Path) -> None:
    (root / "var").symlink_to("/srv/var")
    (root / "srv/var").mkdir(parents=True)
    (root / "file").symlink_to("//srv/var/lib/a")
    with inside(str(root)):
        make_folder("/var/lib")
        write_file("/var/lib/a", b"x", mode=0o600)
        assert read_if_there("/srv/var/lib/a") == b"x"
        assert list_tree("/srv") == ["var/lib/a"]
        assert paths_below("//srv/var") == ("//srv/var/lib", "//srv/var/lib/a")
        write_file("/file", b"y")
    assert (root / "srv/var/lib/a").read_bytes() == b"y"
    assert (root / "file").is_symlink()


@pytest.mark.usefixtures("_either_way")
def test_a_name_with_a_nul_byte_is_refused_and_not_cut_off(root: Path) -> None:
    (root / "etc/x").write_bytes(b"found")
    with inside(str(root)), pytest.raises(GarboardError, match="null byte"):
        read_file("/etc/x\0.yaml")


def test_the_root_is_the_machines_again_afterwards(root: Path) -> None:
    with inside(str(root)):
        assert changed_root() == root.resolve()
    assert changed_root() is None


def test_what_is_no_folder_is_refused(root: Path) -> None:
    with pytest.raises(BadUsage, match="failed to change root path to"), inside(str(root / "nope")):
        pytest.fail("not reached")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")
def test_a_read_only_machine_can_be_written_to_in_its_scratch_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    code = """
for path in ("/etc/x", "/usr/lib/x", "/tmp/x-of-a-test", "/root/x", "/run/x", "/dev/shm/x", scratch + "/../beside"):
    try:
        os.open(path, os.O_CREAT | os.O_WRONLY)
    except OSError as error:
        assert error.errno == errno.EROFS, (path, error)
    else:
        sys.exit(f"{path} was written")
for path in ("/etc/hostname", scratch + "/../kept"):
    try:
        os.unlink(path)
    except OSError as error:
        assert error.errno == errno.EROFS, (path, error)
    else:
        sys.exit(f"{path} was removed")
with open(scratch + "/inside", "w") as file:
    file.write("x")
print("done")
"""
    (tmp_path / "kept").write_text("x")
    assert in_read_only_machine(code, tmp_path / "scratch") == "done\n"
    assert (tmp_path / "scratch/inside").exists()
