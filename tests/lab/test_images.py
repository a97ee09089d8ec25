import hashlib
import io
import json
import tarfile
from pathlib import Path

from garboard.lab.images import Image, write_archive
from garboard.lab.imageset import copy_store, shared_libraries


def archive(image: Image) -> bytes:
    into = io.BytesIO()
    write_archive(image, into, architecture="amd64")
    return into.getvalue()


def example(tmp_path: Path) -> Image:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    return Image("example.com/tool:v1", {"/usr/bin/tool": program}, ("/usr/bin/tool",), {"/bin": "usr/bin"}, ("tmp",))


def test_an_archive_names_its_config_and_layer_by_their_digests(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive(example(tmp_path)))) as tar:
        read = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    (manifest,) = json.loads(read["manifest.json"])
    assert manifest["RepoTags"] == ["example.com/tool:v1"]
    config = read[manifest["Config"]]
    assert manifest["Config"] == hashlib.sha256(config).hexdigest() + ".json"
    (layer,) = manifest["Layers"]
    assert json.loads(config)["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(read[layer]).hexdigest()}"]
    assert json.loads(config)["config"]["Entrypoint"] == ["/usr/bin/tool"]
    with tarfile.open(fileobj=io.BytesIO(read[layer])) as files:
        entries = {entry.name: entry for entry in files}
    assert entries["usr/bin/tool"].mode == 0o755
    assert entries["bin"].linkname == "usr/bin"
    assert entries["tmp"].mode == 0o1777
    assert list(entries).index("usr") < list(entries).index("usr/bin") < list(entries).index("usr/bin/tool")


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    image = example(tmp_path)
    assert archive(image) == archive(image)


def test_libraries_are_read_from_what_ldd_prints() -> None:
    printed = """\
/usr/sbin/nft:
\tlinux-vdso.so.1 (0x00007ffc2e5f2000)
\tlibnftables.so.1 => /lib/x86_64-linux-gnu/libnftables.so.1 (0x00007f3d5c200000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f3d5c3b1000)
/usr/local/bin/kube-proxy:
\tnot a dynamic executable
"""
    assert shared_libraries(printed) == [
        Path("/lib/x86_64-linux-gnu/libnftables.so.1"),
        Path("/lib64/ld-linux-x86-64.so.2"),
    ]


def test_a_copied_store_shares_files_but_not_databases_and_keeps_links(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "snapshots/1/fs/usr/bin").mkdir(parents=True)
    (source / "snapshots/1/fs/bin").symlink_to("usr/bin")
    (source / "snapshots/1/fs/usr/bin/tool").write_text("program")
    (source / "metadata.db").write_text("rows")
    copy_store(source, target)
    assert (target / "snapshots/1/fs/bin").readlink() == Path("usr/bin")
    assert (target / "snapshots/1/fs/usr/bin/tool").samefile(source / "snapshots/1/fs/usr/bin/tool")
    assert not (target / "metadata.db").samefile(source / "metadata.db")
    assert (target / "metadata.db").read_text() == "rows"
