"""Commands with odd paths below a `--rootfs`, tried at random; run by `in_read_only_machine`.

The scratch folder holds the root, and beside it `outside`, which looks like a machine and is writable: whatever leaves
the root changes it, shows its mark, or meets a read-only file system.
"""

import contextlib
import ctypes
import io
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from garboard.cli.main import run
from garboard.host import beneath

MARK = "a-mark-from-outside"
_MS_BIND, _MNT_DETACH, _RENAME_EXCHANGE = 0x1000, 2, 2
_AT_FDCWD = -100
_FILES = (
    "etc/passwd", "etc/kubernetes/pki/ca.crt", "etc/kubernetes/pki/etcd/ca.key", "etc/kubernetes/admin.conf",
    "etc/kubernetes/manifests/etcd.yaml", "var/lib/kubelet/config.yaml", "var/lib/kubelet/pods/1/volume",
    "srv/pki/sa.key", "srv/patches/kube-apiserver.yaml", "kubeadm.yaml", "srv/photo",
)  # fmt: skip
_NAMES = (
    "etc", "kubernetes", "pki", "srv", "link", "..", ".", "", "var", "lib", "kubelet", "patches", "outside", "ca.crt",
    "chain-39", "chain-44", "admin.conf", "missing",
)  # fmt: skip
_PATHS = (
    "/etc", "//etc", "/etc/.", "/./etc", "/etc/kubernetes/..", "/usr/lib", "/srv/pki", "/etc/kubernetes/pki", "/..",
    "/srv/pki/", "/srv/patches", "../outside/etc", "/../outside/srv/pki", "../../../outside/etc/kubernetes",
    "/chain-41/srv/pki", "/chain-40/etc", "/proc/self/root", "/link/srv/pki", "/var/lib/kubelet/../../../..",
    "/srv/pki/etcd/..",
)  # fmt: skip
_PATHS_OUTSIDE = ("{}", "{}/etc/kubernetes/pki", "/{}/srv/pki")
_CONFIG = """
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: 192.0.2.10}}
nodeRegistration: {{name: node-1, criSocket: "unix:///run/c.sock"}}
{patches}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
encryptionAlgorithm: ECDSA-P256
certificatesDir: "{folder}"
"""
_RESET = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ResetConfiguration\nforce: true\ncertificatesDir: "{}"\n'

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Fuzz:
    """One try: a root with links and mounts, one command in it, and what was outside afterwards."""

    scratch: Path
    random: random.Random

    @property
    def root(self) -> Path:
        return self.scratch / "root"

    @property
    def outside(self) -> Path:
        return self.scratch / "outside"

    def run(self) -> None:
        shutil.rmtree(self.outside, ignore_errors=True)
        for name in _FILES:
            _write(self.outside / name, MARK)
        self._make_root()
        before = _snapshot(self.outside)
        command = self._command()
        # What is mounted into the root belongs to it, and is written to; only what is emptied stops there.
        mounted = self._mounted() if command[0] == "reset" else contextlib.nullcontext()
        # A folder that may be emptied whatever it holds may be one that was mounted before all was planned. Folders are
        # not exchanged then: mount(2) would follow a link out of the root.
        is_mounting = command[0] == "reset" and "--allow-path" not in command and self.random.random() < 0.5
        with mounted, self._mounting() if is_mounting else self._swapping():
            beneath._has_openat2 = self.random.random() < 0.5
            told = _told(["--rootfs", self._rootfs(), *command])
        shown = f"{command}\n{told}"
        assert _snapshot(self.outside) == before, f"outside was changed: {shown}"
        assert MARK not in told, f"outside was read: {shown}"
        assert "Read-only file system" not in told, f"the machine was to be changed: {shown}"
        assert not any(_holds_mark(each) for each in self.root.rglob("*")), f"outside was copied: {shown}"

    def _rootfs(self) -> str:
        """Return the root as users may write it: with slashes, dots, from the working directory, or through a link."""
        link = self.scratch / "to-root"
        if not link.is_symlink():
            link.symlink_to("outside/../root")
        forms = (f"{self.root}", f"//{self.root}/", f"{self.outside}/../root/.", f"{link}", f"{link}/", "root")
        return self.random.choice(forms)

    def _make_root(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        for name in _FILES:
            # A manifest that is no pod ends every reset, so there is seldom one.
            if self.random.random() < (0.05 if "manifests" in name else 0.7):
                _write(self.root / name, "spec: {}")
        (self.root / "srv").mkdir(parents=True, exist_ok=True)
        for number in range(self.random.randrange(45, 50)):
            (self.root / f"chain-{number}").symlink_to(f"chain-{number - 1}" if number else str(self.outside))
        for _ in range(self.random.randrange(6)):
            self._make_link()

    def _make_link(self) -> None:
        place = self.root / self.random.choice(
            ("link", "srv/link", "etc/link", "etc/kubernetes/pki", "etc/kubernetes", "var/lib/kubelet", "srv/pki/etcd",
             "etc/kubernetes/admin.conf", "etc/kubernetes/manifests", "etc/kubernetes/pki/ca.crt", "var/lib/garboard")
        )  # fmt: skip
        if not self._is_inside(place.parent):
            return
        if place.is_symlink() or place.is_file():
            place.unlink()
        elif place.is_dir():
            shutil.rmtree(place)
        with contextlib.suppress(OSError):  # a link, or a file, on the way
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(self._path() or ".")

    def _is_inside(self, place: Path) -> bool:
        return Path(os.path.realpath(place)).is_relative_to(self.root)

    def _path(self) -> str:
        """Return a path that is meant to get out, or to be misunderstood."""
        whole = (*_PATHS, *(path.format(self.outside) for path in _PATHS_OUTSIDE))
        if self.random.random() < 0.5:
            return self.random.choice(whole)
        parts = self.random.choices(_NAMES, k=self.random.randrange(1, 7))
        return self.random.choice(("/", "//", "///", "/../", "")) + "/".join(parts)

    def _command(self) -> list[str]:
        path, other = self._path(), self._path()
        has_patches = self.random.random() < 0.5
        patches = f'patches: {{directory: "{other}"}}' if has_patches else ""
        self._write_config("kubeadm.yaml", _CONFIG.format(folder=path, patches=patches))
        self._write_config("reset.yaml", _RESET.format(path))
        phase = ["--config", "/kubeadm.yaml"]
        kubeconfigs = ["init", "phase", "kubeconfig", "admin", *phase, "--kubeconfig-dir", other]
        return self.random.choice((
            ["reset", "--force", "--cert-dir", path],
            ["reset", "--force", "--cert-dir", path, "--allow-path", path, "--kubeconfig", other],
            ["reset", "--force", "--cert-dir", path, "--cleanup-tmp-dir", "--allow-path", other],
            ["reset", "--config", "/reset.yaml"],
            ["init", "phase", "certs", "ca", *phase],
            ["init", "phase", "certs", "all", *phase],
            ["init", "phase", "certs", "ca", "--kubernetes-version", "v1.37.1", "--cert-dir", path],
            kubeconfigs,
            ["init", "phase", "control-plane", "apiserver", *phase],
            ["init", "phase", "etcd", "local", *phase],
            ["init", "--dry-run", *phase],
            ["certs", "check-expiration", "--cert-dir", path, "--kubeconfig-dir", other],
            ["certs", "renew", "apiserver", "--cert-dir", path, "--kubeconfig-dir", other],
            ["certs", "generate-csr", *phase, "--cert-dir", path, "--kubeconfig-dir", other],
            ["token", "list", "--kubeconfig", path],
            ["config", "validate", "--config", path],
        ))  # fmt: skip

    def _write_config(self, name: str, text: str) -> None:
        place = self.root / name
        if place.is_symlink():
            place.unlink()
        place.write_text(text)

    @contextlib.contextmanager
    def _mounted(self) -> Iterator[None]:
        """Mount a part of `outside` below folders that are emptied."""
        points = [self.root / name for name in ("srv/pki/disk", "etc/kubernetes/pki/etcd", "var/lib/kubelet/pods/2")]
        for point in points:
            if self.random.random() < 0.3 and self._is_inside(point.parent) and not point.is_symlink():
                with contextlib.suppress(OSError):
                    point.mkdir(parents=True, exist_ok=True)
                    assert _libc.mount(bytes(self.outside / "srv"), bytes(point), None, _MS_BIND, None) == 0
        try:
            yield
        finally:
            # A folder may have been exchanged with its mount.
            lines = Path("/proc/self/mountinfo").read_text().splitlines()
            for mounted in (line.split()[4] for line in reversed(lines)):  # one may be in another
                if mounted.startswith(f"{self.root}/"):
                    assert _libc.umount2(mounted.encode(), _MNT_DETACH) == 0

    @contextlib.contextmanager
    def _mounting(self) -> Iterator[None]:
        """Mount a part of `outside` over a folder that is emptied, and unmount it, again and again meanwhile.

        Not over the kubelet's: that is emptied whatever it holds, and rightly if it was mounted while all was planned.
        """
        point = self.root / self.random.choice(("etc/kubernetes/pki", "srv/pki"))
        if not self._is_inside(point) or point.is_symlink() or not point.is_dir():
            yield
            return
        if (self.root / "var/lib/garboard").is_symlink():  # the lock may be made where something is mounted
            yield
            return
        # Its names are none that reset would take, so it must never be emptied.
        with _forever(lambda: _mount_for_a_moment(self.outside / "srv", point)):
            yield

    @contextlib.contextmanager
    def _swapping(self) -> Iterator[None]:
        """Exchange a folder for a link that leads out, again and again while the command runs."""
        if self.random.random() < 0.5:
            yield
            return
        name = self.random.choice(("etc", "etc/kubernetes", "etc/kubernetes/pki", "var", "srv", "srv/pki", "var/lib"))
        place, link = self.root / name, self.root / ".swapped"
        if place.is_symlink() or not place.is_dir():
            yield
            return
        link.symlink_to(
            self.random.choice((str(self.outside / name), f"../outside/{name}", f"../../../outside/{name}"))
        )
        with _forever(lambda: _libc.renameat2(_AT_FDCWD, bytes(place), _AT_FDCWD, bytes(link), _RENAME_EXCHANGE)):
            yield


@contextlib.contextmanager
def _forever(does: Callable[[], object]) -> Iterator[None]:
    """Do something over and over in another process until the block ends."""
    child = os.fork()
    if child == 0:
        while True:
            does()
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _mount_for_a_moment(source: Path, point: Path) -> None:
    if _libc.mount(bytes(source), bytes(point), None, _MS_BIND, None) == 0:
        time.sleep(random.random() / 500)
        _libc.umount2(bytes(point), _MNT_DETACH)
    time.sleep(random.random() / 500)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    found = dict[str, tuple[object, ...]]()
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_mode, status.st_uid, status.st_ino, status.st_mtime_ns, content)
    return found


def _holds_mark(path: Path) -> bool:
    return not path.is_symlink() and path.is_file() and MARK.encode() in path.read_bytes()


def _told(command: list[str]) -> str:
    """Run a command in this process and return all that it prints; an error that `run` does not report is raised."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = run(command)
    out.flush()
    out.seek(0)
    return f"{out.read()}\n(status {status})"


def main(scratch: str, seed: int, tries: int) -> None:
    """Try `tries` commands; on a failure say the seed that repeats it."""
    for number in range(seed, seed + tries):
        with _naming(number):
            Fuzz(Path(scratch), random.Random(number)).run()
    print(f"{tries} tries")


@contextlib.contextmanager
def _naming(seed: int) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"repeat it with the seed {seed}")
        raise
