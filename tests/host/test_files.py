import errno
import hashlib
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from garboard.errors import BadDocument, GarboardError, StalePlan
from garboard.host import HostFolder, beneath, read_file, write_file
from garboard.host.files import file_owner, file_size, free_space, read_if_there, read_part, read_tail
from garboard.host.root import inside


def _make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def _make_device(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("devices are for root")
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero, which has no end


NO_FILES = [
    pytest.param(os.mkfifo, "named pipe", id="named pipe"),
    pytest.param(_make_socket, "socket", id="socket"),
    pytest.param(_make_device, "device", id="device"),
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("way", ["machine", "openat2", "walk"])
@pytest.mark.parametrize(("make", "kind"), NO_FILES)
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], None], kind: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without being opened: a pipe without a writer would wait for one, and some devices act when they are opened."""
    make(tmp_path / "a.yaml")
    monkeypatch.setattr(beneath, "_has_openat2", way == "openat2")
    with inside("" if way == "machine" else str(tmp_path)):
        path = str(tmp_path / "a.yaml") if way == "machine" else "/a.yaml"
        for read in (read_file, read_if_there, HostFolder(str(Path(path).parent)).read):
            with pytest.raises(BadDocument, match=f"is a {kind}, not a regular file") as caught:
                read(path)
            assert caught.value.error_class == "not-a-file"
        assert read_tail(path, 3) == []
        with pytest.raises(GarboardError, match="it is no regular file"):
            write_file(path, b"x")
    assert not stat.S_ISREG((tmp_path / "a.yaml").stat().st_mode)


@pytest.mark.timeout(20)
def test_file_that_becomes_a_pipe_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    os.mkfifo(path)
    monkeypatch.setattr("garboard.host.files.stat_path", lambda _path: Path(__file__).stat())
    with pytest.raises(BadDocument, match="is a named pipe"):
        read_file(path)


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_pipe_that_the_caller_has_opened_for_us_is_read(name: str) -> None:
    """As a shell passes `<(...)`."""
    reading, writing = os.pipe()
    os.write(writing, b"a: 1")
    os.close(writing)
    assert read_file(name.format(reading)) == b"a: 1"
    os.close(reading)


def test_written_file_reads_back_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_file(tmp_path / "a.yaml", b"a: 1\n", mode=0o600)
    assert read_file(tmp_path / "a.yaml") == b"a: 1\n"
    assert (tmp_path / "a.yaml").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["a.yaml"]


def test_existing_permissions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_file(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o640


def test_link_stays_and_its_file_changes(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    with pytest.raises(GarboardError, match="cannot write"):
        write_file(tmp_path / "missing" / "a.yaml", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("make", "error_class"),
    [
        pytest.param(lambda p: None, "unreadable", id="absent"),
        pytest.param(lambda p: p.mkdir(), "not-a-file", id="folder"),
        pytest.param(lambda p: p.write_bytes(b"x" * 65), "too-large", id="over the limit"),
    ],
)
def test_unreadable_is_refused_with_its_class(tmp_path: Path, make: object, error_class: str) -> None:
    make(tmp_path / "a")  # type: ignore[operator]
    with pytest.raises(GarboardError) as caught:
        read_file(tmp_path / "a", limit=64)
    assert caught.value.error_class == error_class


def test_tail_is_the_end_of_a_file_and_nothing_where_there_is_none(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(20_000)))
    assert read_tail(log, 2) == ["line 19998", "line 19999"]
    assert read_tail(tmp_path / "none", 2) == []
    assert read_tail(tmp_path, 2) == []


def test_new_file_of_a_folder_gets_its_mode_and_its_folders(tmp_path: Path) -> None:
    folder = HostFolder(tmp_path / "pki")
    folder.write_new("etcd/ca.key", b"secret", mode=0o600)
    assert folder.read("etcd/ca.key") == b"secret"
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("pki", "pki/etcd", "pki/etcd/ca.key")]
    assert modes == [0o755, 0o755, 0o600]


def test_existing_file_of_a_folder_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(GarboardError, match=f"file already exists: {tmp_path}/a"):
        HostFolder(tmp_path).write_new("a", b"new", mode=0o600)
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"
    HostFolder(tmp_path).remove("a")
    assert not (tmp_path / "a").exists()


def test_absent_file_of_a_folder_reads_as_none(tmp_path: Path) -> None:
    assert HostFolder(tmp_path / "missing").read("a/b") is None


def test_a_name_that_is_taken_back_need_not_be_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"found")
    assert HostFolder(f"{tmp_path}/missing/..").read("a") == b"found"


def test_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pki").write_bytes(b"")
    with pytest.raises(GarboardError, match="cannot make the folder"):
        HostFolder(tmp_path / "pki").write_new("etcd/a", b"", mode=0o600)


def test_reading_takes_as_much_memory_as_the_file_and_not_as_its_limit(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"few")
    program = (
        "import resource, sys; from garboard.host.files import read_file;"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29));"
        "assert read_file(sys.argv[1], limit=1 << 30) == b'few'; assert read_file('/proc/version', limit=1 << 30)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "small")], check=True)


@pytest.mark.parametrize("size", [1, 70_000, 200_000])
def test_file_is_read_whole_up_to_its_limit(tmp_path: Path, size: int) -> None:
    (tmp_path / "file").write_bytes(b"x" * size)
    assert read_file(tmp_path / "file", limit=200_000) == b"x" * size
    with pytest.raises(BadDocument, match="is larger than"):
        read_file(tmp_path / "file", limit=size - 1)


def test_part_of_a_file_is_read_and_nothing_beyond_its_end(tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_bytes(b"0123456789")
    assert read_part(path, 2, 3) == b"234"
    assert read_part(path, 8, 100) == b"89"
    assert read_part(path, 100, 1) == b""


def test_part_of_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "db")
    with pytest.raises(GarboardError, match="not a regular file"):
        read_part(tmp_path / "db", 0, 1)


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize(
    ("found", "then", "told"),
    [
        pytest.param(None, b"theirs", "has been made since", id="made"),
        pytest.param(b"former", b"theirs", "has changed since", id="changed"),
        pytest.param(b"former", None, "has gone since", id="gone"),
        pytest.param(None, None, "", id="still absent"),
        pytest.param(b"former", b"former", "", id="still the same"),
    ],
)
def test_file_that_moves_until_the_last_moment_is_left(
    tmp_path: Path,
    found: bytes | None,
    then: bytes | None,
    told: str,
    has_links: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, sync = tmp_path / "ca.key", os.fsync

    def put(content: bytes | None) -> None:
        path.unlink(missing_ok=True) if content is None else path.write_bytes(content)

    def meanwhile(descriptor: int) -> None:  # the new file is complete, and has not got its name yet
        monkeypatch.setattr(os, "fsync", sync)
        put(then)

    def no_links(*_names: str, **_ways: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    put(found)
    monkeypatch.setattr(os, "fsync", meanwhile)
    if not has_links:
        monkeypatch.setattr(os, "link", no_links)
    expected = "" if found is None else hashlib.sha256(found).hexdigest()
    if told:
        with pytest.raises(StalePlan, match=rf"ca\.key {told}"):
            write_file(path, b"new", expected=expected)
    else:
        write_file(path, b"new", expected=expected)
    left = then if told else b"new"
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == ({} if left is None else {"ca.key": left})
    assert not left or path.stat().st_nlink == 1


def test_file_that_cannot_be_looked_at_does_not_count_as_absent(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert file_owner(tmp_path / "none") is None
    assert file_owner(tmp_path / "none/below") is None
    with pytest.raises(GarboardError, match="cannot read"):
        file_owner(tmp_path / "loop/db")


def test_size_of_a_file_is_known_and_none_is_none(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"12345")
    assert file_size(tmp_path / "data") == 5
    assert file_size(tmp_path / "none/below") == 0


def test_room_is_that_of_the_nearest_folder_that_is_there(tmp_path: Path) -> None:
    found, below = free_space(tmp_path), free_space(tmp_path / "not/yet/made")
    assert found > 0
    assert abs(found - below) < max(found, 1 << 30)
