import json
import os
from pathlib import Path

import pytest

from garboard.lab.snapshots.manifest import (
    FORMAT,
    Inventory,
    ProgramFile,
    SnapshotManifest,
    changed_programs,
    take_inventory,
)
from garboard.lab.topology import Bootstrap, plan_lab
from garboard.model import DEFAULT_VERSION

LAB = plan_lab("lab", DEFAULT_VERSION, Bootstrap.KUBEADM, control_planes=3, workers=1)
MANIFEST = SnapshotManifest(
    LAB, "2026-11-16T12:00:00+00:00", True, (ProgramFile("/usr/bin/kubelet", 1, 2),), Inventory(3, "abc")
)


def test_manifest_survives_being_written() -> None:
    assert SnapshotManifest.parse(MANIFEST.as_bytes()) == MANIFEST


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param({"format": FORMAT + 1}, f"it has format {FORMAT + 1}, this release reads {FORMAT}", id="format"),
        pytest.param({"lab": None}, "makes no sense", id="no lab"),
        pytest.param({"lab": {"name": "lab"}}, "makes no sense", id="half a lab"),
        pytest.param({"programs": [{"path": "/x"}]}, "makes no sense", id="half a program"),
        pytest.param({"inventory": 7}, "makes no sense", id="no inventory"),
    ],
)
def test_what_is_no_manifest_is_told_with_the_reason(change: dict[str, object], why: str) -> None:
    document = {**json.loads(MANIFEST.as_bytes()), **change}
    with pytest.raises(ValueError, match=why):
        SnapshotManifest.parse(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff"])
def test_what_is_not_even_a_document_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        SnapshotManifest.parse(data)


def test_a_program_that_was_replaced_or_removed_is_named(tmp_path: Path) -> None:
    same, replaced, removed = (tmp_path / name for name in ("same", "replaced", "removed"))
    for path in (same, replaced, removed):
        path.write_text("program")
    described = [found for path in (same, replaced, removed) if (found := ProgramFile.at(path))]
    replaced.write_text("another")
    os.utime(replaced, ns=(0, 0))
    removed.unlink()
    assert changed_programs(described) == [str(replaced), str(removed)]


def edit(path: Path) -> None:
    found = path.stat()
    path.write_bytes(b"D" * found.st_size)


def truncate(path: Path) -> None:
    found = path.stat()
    os.truncate(path, 1)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.mark.parametrize("damage", [edit, truncate, Path.unlink, lambda path: path.chmod(0o777)])
def test_inventory_notices_damage(damage: object, tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    (tmp_path / "node/db").write_bytes(b"data")
    (tmp_path / "node/link").symlink_to("db")
    before = take_inventory(tmp_path, but="snapshot.json")
    (tmp_path / "snapshot.json").write_text("{}")
    assert take_inventory(tmp_path, but="snapshot.json") == before
    assert before.entries == 3
    assert callable(damage)
    damage(tmp_path / "node/db")
    assert take_inventory(tmp_path, but="snapshot.json") != before
