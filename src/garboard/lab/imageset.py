"""The images of a Kubernetes release, made from its programs, and the unpacked store of them that every node copies."""

import hashlib
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from garboard.errors import NotReady
from garboard.lab.binaries import Binaries
from garboard.lab.binaries.build import Report
from garboard.lab.binaries.download import machine_architecture
from garboard.lab.images import ImageDefinition, write_archive
from garboard.lab.machine import LabMachine

REGISTRY = "registry.k8s.io"
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
# What kube-proxy calls; from the machine, for they have to agree with its kernel and with each other.
PROXY_TOOLS = (
    "nft",
    "conntrack",
    "iptables",
    "iptables-save",
    "iptables-restore",
    "ip6tables",
    "ip6tables-save",
    "ip6tables-restore",
)
IMAGE_PROGRAMS = (*CONTROL_PLANE, "kube-proxy", "etcd", "etcdctl", "coredns", "pause")
# To be raised when the same programs would give other images.
LAYOUT = 1
# A copy of the store shares its files, which never change, by hard links; these do change and are copied.
STORE_DATABASES = ".db"
IMPORT_WITHIN_S = 300.0


def pause_image(binaries: Binaries, version: str) -> str:
    """Name the pause image that belongs to the Kubernetes release `version`."""
    return f"{REGISTRY}/pause:{binaries.pins.wanted('pause', kubernetes=version).version}"


def release_images(binaries: Binaries, machine: LabMachine, version: str) -> tuple[ImageDefinition, ...]:
    """Describe the images that kubeadm of `version` asks for, under the names it asks for."""
    etcd = binaries.pins.wanted("etcd", kubernetes=version).version.removeprefix("v")
    coredns = binaries.pins.wanted("coredns", kubernetes=version).version
    images = [_single(f"{name}:{version}", binaries.locate_for(name, version)) for name in CONTROL_PLANE]
    images += [
        _single(
            f"pause:{pause_image(binaries, version).rpartition(':')[2]}",
            binaries.locate_for("pause", version),
            "/pause",
        ),
        _single(f"coredns/coredns:{coredns}", binaries.locate_for("coredns", version), "/coredns"),
        ImageDefinition(
            f"{REGISTRY}/etcd:{etcd}-0",
            {f"/usr/local/bin/{name}": binaries.locate_for(name, version) for name in ("etcd", "etcdctl")},
            ("/usr/local/bin/etcd",),
            folders=("var/lib/etcd", "tmp"),
        ),
        _proxy_image(binaries, machine, version),
    ]
    return tuple(images)


def release_key(binaries: Binaries, machine: LabMachine, versions: Sequence[str]) -> str:
    """Name the set of images of some releases: another program, or another tool of the machine, is another set."""
    programs = [binaries.locate_for(name, version) for version in versions for name in IMAGE_PROGRAMS]
    tools = [path.resolve() for name in PROXY_TOOLS if (path := machine.find_program(name))]
    facts = [(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in (*programs, *tools)]
    digest = hashlib.sha256(repr((LAYOUT, sorted(facts))).encode()).hexdigest()
    return f"{'+'.join(versions)}-{digest[:12]}"


def _single(name: str, program: Path, inside: str | None = None) -> ImageDefinition:
    inside = inside or f"/usr/local/bin/{program.name}"
    return ImageDefinition(f"{REGISTRY}/{name}", {inside: program}, (inside,), folders=("tmp",))


def _proxy_image(binaries: Binaries, machine: LabMachine, version: str) -> ImageDefinition:
    files = {"/usr/local/bin/kube-proxy": binaries.locate_for("kube-proxy", version)}
    links: dict[str, str] = {}
    found = [machine.find_program(name) for name in PROXY_TOOLS]
    if None in found:
        raise NotReady(
            "kube-proxy needs nft, conntrack and iptables", hint="apt-get install nftables conntrack iptables"
        )
    add_programs(
        files, links, [*(path for path in found if path), *sorted(Path("/usr/lib").glob("*/xtables/*.so"))], machine
    )
    return ImageDefinition(
        f"{REGISTRY}/kube-proxy:{version}", files, ("/usr/local/bin/kube-proxy",), links, ("tmp", "run", "var/lib")
    )


def add_programs(files: dict[str, Path], links: dict[str, str], programs: Sequence[Path], machine: LabMachine) -> None:
    """Add programs with every link on the way to them and the shared libraries that they name."""
    libraries = shared_libraries(machine.run(["ldd", *programs], check=False).stdout)
    for path in dict.fromkeys([*programs, *libraries]):
        _add_path(files, links, path)


def _add_path(files: dict[str, Path], links: dict[str, str], path: Path) -> None:
    while path.is_symlink():
        links[str(path.parent.resolve() / path.name)] = str(path.readlink())
        path = path.parent.resolve() / path.readlink()
    resolved = path.parent.resolve() / path.name
    files[str(resolved)] = resolved
    # Debian's /lib is a link to /usr/lib; the loader's own path goes through it.
    for top in ("lib", "lib64", "bin", "sbin"):
        if (Path("/") / top).is_symlink():
            links[f"/{top}"] = str((Path("/") / top).readlink())


def shared_libraries(ldd: str) -> list[Path]:
    """Read the paths from the output of ldd; a static program has none."""
    return [Path(each) for each in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", ldd, re.MULTILINE)]


@dataclass(frozen=True, slots=True)
class ImageStore:
    """Folders of containerd with images already imported and unpacked, one for each set of images."""

    machine: LabMachine
    home: Path
    report: Report

    def prepare(self, key: str, images: Callable[[], Sequence[ImageDefinition]]) -> Path:
        """Return the containerd root of the set `key`; the first time its images are made and imported."""
        folder = self.home / key
        if folder.is_dir():
            return folder
        self.machine.make_folder(self.home)
        with self.machine.locked(self.home / ".lock"):
            if not folder.is_dir():
                self._import(images(), folder)
        return folder

    def _import(self, images: Sequence[ImageDefinition], folder: Path) -> None:
        for leftover in self.home.glob(".incoming-*"):
            self.machine.remove_tree(leftover)
        scratch = self.home / f".incoming-{uuid.uuid4().hex[:8]}"
        archives = scratch / "archives"
        self.machine.make_folder(archives)
        paths: list[Path] = []
        for image in images:
            self.report(f"assembling image {image.name}")
            path = archives / f"{len(paths)}.tar"
            with self.machine.writing(path) as handle:
                write_archive(image, handle, self.machine, architecture=machine_architecture())
            paths.append(path)
        self.report(f"importing {len(paths)} images, once for all nodes")
        self.machine.run(_import_command(scratch, paths), timeout_s=IMPORT_WITHIN_S)
        self.machine.rename(scratch / "root", folder)
        self.machine.remove_tree(scratch)


def _import_command(scratch: Path, archives: Iterable[Path]) -> list[str | Path]:
    """Run a containerd in namespaces of its own for as long as the imports take."""
    script = """
set -e
containerd --config /dev/null --root "$1/root" --state "$1/state" --address "$1/c.sock" >"$1/log" 2>&1 &
containerd=$! scratch=$1; shift
for i in $(seq 500); do ctr --address "$scratch/c.sock" version >/dev/null 2>&1 && break; sleep 0.02; done
for archive; do
    ctr --address "$scratch/c.sock" --namespace k8s.io images import --snapshotter overlayfs "$archive" >/dev/null
    rm "$archive"
done
kill $containerd; wait $containerd || true
"""
    inside: list[str | Path] = ["/bin/sh", "-c", script, "import", scratch, *archives]
    return ["unshare", "--mount", "--pid", "--kill-child=KILL", "--mount-proc", "--", *inside]
