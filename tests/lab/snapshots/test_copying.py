from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host import Machine
from garboard.lab.layout import NodeFiles
from garboard.lab.snapshots.copying import copy_node, entries_beside


@pytest.fixture
def node(tmp_path: Path) -> NodeFiles:
    """A node as a lab has it, with a little of everything."""
    files = NodeFiles(tmp_path / "cp1")
    texts = {
        "root/var/lib/etcd/db": "data",
        "root/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/abc": "layer",
        "root/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db": "metadata",
        "root/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/var/app.db": "of an image",
        "root/var/log/kubelet.log": "log",
        "upper/etc/kubernetes/admin.conf": "secret",
        "upper/opt/garboard/garboard/cli.py": "program",
        "upper/opt/cni/bin/bridge": "plugin",
        "work/etc/scratch": "scratch",
    }
    for name, text in texts.items():
        path = files.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (files.upper / "etc/kubernetes/admin.conf").chmod(0o600)
    (files.upper / "usr/bin").mkdir(parents=True)
    (files.upper / "usr/bin/kubelet").symlink_to("/cache/kubelet")
    (files.upper / "usr/bin/garboard").write_text("program")
    return files


def test_entries_beside_are_the_fewest_that_leave_out_what_is_apart(node: NodeFiles) -> None:
    found = set(entries_beside(node.folder, {"work", "root/var/log", "upper/opt/garboard"}))
    assert found == {"root/var/lib", "upper/etc", "upper/usr", "upper/opt/cni"}


def test_copy_shares_only_what_cannot_change(node: NodeFiles, tmp_path: Path) -> None:
    copy = NodeFiles(tmp_path / "kept/cp1")
    copy_node(Machine(), node, copy)
    shared = {
        str(path.relative_to(copy.folder))
        for path in copy.folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.stat().st_nlink > 1
    }
    store = "root/var/lib/containerd"
    assert shared == {
        f"{store}/io.containerd.content.v1.content/blobs/sha256/abc",
        f"{store}/io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/var/app.db",
    }
    (copy.var / "lib/etcd/db").write_text("changed")
    (copy.var / "lib/containerd/io.containerd.metadata.v1.bolt/meta.db").write_text("changed")
    assert (node.var / "lib/etcd/db").read_text() == "data"
    assert (node.var / "lib/containerd/io.containerd.metadata.v1.bolt/meta.db").read_text() == "metadata"


def test_copy_has_modes_and_links_and_leaves_out_logs_scratch_and_garboard(node: NodeFiles, tmp_path: Path) -> None:
    copy = NodeFiles(tmp_path / "kept/cp1")
    copy_node(Machine(), node, copy)
    assert (copy.upper / "etc/kubernetes/admin.conf").stat().st_mode & 0o777 == 0o600
    assert (copy.upper / "usr/bin/kubelet").readlink() == Path("/cache/kubelet")
    assert (copy.upper / "opt/cni/bin/bridge").exists()
    left_out = ("work", "root/var/log", "upper/opt/garboard", "upper/usr/bin/garboard")
    assert [name for name in left_out if (copy.folder / name).exists()] == []


def test_zeros_take_no_room_in_a_copy(node: NodeFiles, tmp_path: Path) -> None:
    wal = node.var / "lib/etcd/0.wal"
    wal.write_bytes(b"entry" + bytes(8 << 20))
    copy_node(Machine(), node, NodeFiles(tmp_path / "kept/cp1"))
    kept = tmp_path / "kept/cp1/root/var/lib/etcd/0.wal"
    assert kept.stat().st_size == wal.stat().st_size
    assert kept.stat().st_blocks * 512 < 1 << 20


def test_failed_copy_says_what_where_why_and_what_next(node: NodeFiles, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/cp1").mkdir()
    (tmp_path / "kept/cp1/upper").write_text("a file in the way")
    with pytest.raises(GarboardError, match=r"cannot copy node cp1 to .*/kept/cp1: ") as caught:
        copy_node(Machine(), node, NodeFiles(tmp_path / "kept/cp1"))
    assert "garboard lab prune" in str(caught.value.hint)
