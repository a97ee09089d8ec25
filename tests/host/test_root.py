from pathlib import Path

import pytest

from garboard.errors import BadUsage
from garboard.host.files import list_tree, make_folder, read_if_there, write_file
from garboard.host.root import at, changed_root, inside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "etc").mkdir(parents=True)
    return folder


@pytest.mark.parametrize(("path", "place"), [
    pytest.param("/etc/x", "etc/x", id="absolute"),
    pytest.param("etc/x", "etc/x", id="relative, from the root"),
    pytest.param("/../../etc/./x", "etc/x", id="never above the root"),
    pytest.param("/link/x", "etc/x", id="absolute link"),
    pytest.param("/etc/up/etc/x", "etc/x", id="link that climbs"),
    pytest.param("/missing/../etc/x", "etc/x", id="through what is not there"),
])  # fmt: skip
def test_paths_are_led_below_the_root(root: Path, path: str, place: str) -> None:
    (root / "link").symlink_to("/etc")
    (root / "etc/up").symlink_to("../../..")
    with inside(str(root)):
        assert at(path) == root / place
    assert at(path) == Path(path)


def test_a_link_itself_is_named_where_it_shall_not_be_followed(root: Path) -> None:
    (root / "link").symlink_to("/etc")
    with inside(str(root)):
        assert at("/link", follows_last=False) == root / "link"


def test_links_in_a_circle_end(root: Path) -> None:
    (root / "a").symlink_to("/b")
    (root / "b").symlink_to("/a")
    with inside(str(root)):
        assert read_if_there("/etc/nothing") is None
        assert at("/a/x").is_relative_to(root)


def test_files_are_written_and_read_below_the_root(root: Path) -> None:
    (root / "var").symlink_to("/srv/var")
    (root / "srv/var").mkdir(parents=True)
    with inside(str(root)):
        make_folder("/var/lib")
        write_file("/var/lib/a", b"x", mode=0o600)
        assert read_if_there("/srv/var/lib/a") == b"x"
        assert list_tree("/srv") == ["var/lib/a"]
    assert (root / "srv/var/lib/a").read_bytes() == b"x"


def test_the_root_is_the_machines_again_afterwards(root: Path) -> None:
    with inside(str(root)):
        assert changed_root() == root.resolve()
    assert changed_root() is None


def test_what_is_no_folder_is_refused(root: Path) -> None:
    with pytest.raises(BadUsage, match="failed to change root path to"), inside(str(root / "nope")):
        pytest.fail("not reached")
