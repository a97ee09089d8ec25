from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host import read_file, write_file
from garboard.host.files import read_tail


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
