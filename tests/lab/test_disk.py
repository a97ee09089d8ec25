from pathlib import Path

from garboard.lab.disk import bytes_text, own_bytes


def test_files_with_links_elsewhere_are_not_counted(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    (other / "shared").write_bytes(b"x" * (1 << 20))
    (mine / "shared").hardlink_to(other / "shared")
    (mine / "own").write_bytes(b"x" * (2 << 20))
    (mine / "again").hardlink_to(mine / "own")
    assert 2 << 20 <= own_bytes(mine) < 3 << 20
    (other / "shared").unlink()
    assert own_bytes(mine) >= 3 << 20


def test_sizes_are_written_for_people() -> None:
    assert bytes_text(5 * 1024**2) == "5 MiB"
    assert bytes_text(3 * 1024**3 // 2) == "1.5 GiB"
