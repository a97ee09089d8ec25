"""Opening below a folder, with openat2 and as if the kernel had none: both do the same."""

import errno
import os
from pathlib import Path

import pytest

from garboard.host import beneath

pytestmark = pytest.mark.read_only_machine


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "etc").mkdir(parents=True)
    return folder


@pytest.fixture(params=["openat2", "walk"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beneath, "_has_openat2", request.param == "openat2")


def test_this_kernel_has_openat2() -> None:
    """Else the tests of both ways try one."""
    assert beneath.has_openat2()


def test_kernel_or_sandbox_without_openat2_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_arguments: object) -> int:
        raise PermissionError(errno.EPERM, "a sandbox")

    monkeypatch.setattr(beneath, "_has_openat2", None)
    monkeypatch.setattr(beneath, "_openat2", refused)
    assert not beneath.has_openat2()


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize(("path", "flags", "number"), [
    pytest.param("/missing", os.O_RDONLY, errno.ENOENT, id="missing"),
    pytest.param("", os.O_RDONLY, errno.ENOENT, id="empty"),
    pytest.param("/file/x", os.O_RDONLY, errno.ENOTDIR, id="below a file"),
    pytest.param("/file/", os.O_RDONLY, errno.ENOTDIR, id="a file as a folder"),
    pytest.param("/file/../etc", os.O_RDONLY, errno.ENOTDIR, id="up from a file"),
    pytest.param("/link", os.O_RDONLY | os.O_NOFOLLOW, errno.ELOOP, id="a link not to be followed"),
    pytest.param("/", os.O_WRONLY, errno.EISDIR, id="the root for writing"),
    pytest.param("/" + "x" * 256, os.O_RDONLY, errno.ENAMETOOLONG, id="a name too long"),
])  # fmt: skip
def test_errors_are_those_of_the_kernel(root: Path, path: str, flags: int, number: int) -> None:
    (root / "file").write_text("x")
    (root / "link").symlink_to("/etc")
    top = os.open(root, os.O_PATH)
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(OSError, match=r".*") as caught:
        beneath.open_beneath(top, path, flags)
    assert caught.value.errno == number
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    os.close(top)


@pytest.mark.usefixtures("_either_way")
def test_folder_that_was_resolved_is_not_reached_through_a_link(root: Path) -> None:
    (root / "link").symlink_to("/etc")
    top = os.open(root, os.O_PATH)
    os.close(beneath.open_beneath(top, "/etc", os.O_RDONLY, allows_links=False))
    for path in ("/link", "/link/", "/link/x"):
        with pytest.raises(OSError, match="Too many levels of symbolic links"):
            beneath.open_beneath(top, path, os.O_RDONLY, allows_links=False)
    os.close(top)
