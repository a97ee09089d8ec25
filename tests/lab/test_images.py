import hashlib
import io
import json
import tarfile
from pathlib import Path

from garboard.host import Machine
from garboard.lab.images import ImageDefinition, write_archive
from garboard.lab.imageset import shared_libraries


def archive(image: ImageDefinition) -> bytes:
    into = io.BytesIO()
    write_archive(image, into, Machine(), architecture="amd64")
    return into.getvalue()


def example(tmp_path: Path) -> ImageDefinition:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    return ImageDefinition(
        "example.com/tool:v1", {"/usr/bin/tool": program}, ("/usr/bin/tool",), {"/bin": "usr/bin"}, ("tmp",)
    )


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
