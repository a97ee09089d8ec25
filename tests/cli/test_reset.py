"""`garboard reset` on a scratch machine: which folders of certificates it takes, and what it leaves as it was.

All of it runs where the real machine is read-only but for the scratch folder: a reset that got `//etc` has emptied the
real /etc once.
"""

import json
import os
from pathlib import Path

import pytest

from tests.support.host.mounting import in_read_only_machine

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")

FOREIGN = "etc/passwd", "usr/lib/os-release", "srv/mixed/ca.crt", "srv/mixed/photo.jpg", "home/me/x"
OURS = "etc/kubernetes/pki/ca.crt", "var/lib/kubelet/config.yaml", "srv/pki/ca.key", "srv/pki/etcd/ca.crt"
LINKS = {"srv/link": "/etc", "srv/up": "../..", "srv/to-mixed": "//srv/mixed", "lib": "usr/lib"}
_RESET = """
import contextlib, io, json
from pathlib import Path
from garboard.cli.main import run
root, told = Path(scratch) / "root", io.StringIO()
before = sorted(path.name for path in Path("/etc").iterdir())
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
        status = run([word.format(root=root) for word in command])
    assert sorted(path.name for path in Path("/etc").iterdir()) == before
    print(json.dumps({"status": status, "text": told.getvalue()}))
    told.truncate(0)
    told.seek(0)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (*FOREIGN, *OURS):
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    for name, target in LINKS.items():
        (tmp_path / "root" / name).symlink_to(target)
    return tmp_path / "root"


def reset(root: Path, *commands: list[str]) -> list[tuple[int, str]]:
    """Run resets below the root, one after another; return the status and the output of each."""
    lines = in_read_only_machine(_RESET, root.parent, json.dumps(commands)).splitlines()
    return [(each["status"], each["text"]) for each in map(json.loads, lines)]


def below_root(*arguments: str) -> list[str]:
    return ["--rootfs", "{root}", "reset", "--force", *arguments]


def left(root: Path) -> set[str]:
    return {name for name in (*FOREIGN, *OURS) if (root / name).exists()}


SYSTEM = (
    "/etc", "//etc", "/etc/.", "/./etc", "/etc/kubernetes/..", "/srv/link", "/srv/link/", "/usr/lib", "/lib",
    "/srv/up/etc", "/srv/../etc", "/", "//", "/..", "/var/lib/kubelet/../../../etc", "/etc/kubernetes",
)  # fmt: skip


def test_folder_of_the_system_is_refused_however_it_is_written_and_nothing_is_removed(root: Path) -> None:
    plain = [below_root("--cert-dir", path) for path in SYSTEM]
    allowed = [below_root("--cert-dir", path, "--allow-path", path) for path in SYSTEM]
    for status, text in reset(root, *plain, *allowed):
        assert status == 4, text
        assert "is a folder of the system" in text
    assert left(root) == {*FOREIGN, *OURS}


def test_without_a_changed_root_the_machines_own_folders_are_refused_too(root: Path) -> None:
    paths = ("/etc", "//etc", "/etc/.", "/./etc", "/etc/kubernetes/..", "/usr/lib", "{root}/srv/to-machine")
    (root / "srv/to-machine").symlink_to("/etc")
    # The lock of a machine that is read-only cannot be taken; a dry run needs none.
    for status, text in reset(root, *(["reset", "--dry-run", "--cert-dir", path] for path in paths)):
        assert (status, "is a folder of the system" in text) == (4, True), text


@pytest.mark.parametrize("path", ["/srv/mixed", "//srv//mixed/", "/srv/pki/../mixed", "/srv/to-mixed", "/home"])
def test_folder_with_other_files_is_refused_and_these_are_listed(root: Path, path: str) -> None:
    document = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ResetConfiguration\nforce: true\n"
    (root / "reset.yaml").write_text(f"{document}certificatesDir: {path}\n")
    by_file = ["--rootfs", "{root}", "reset", "--config", "/reset.yaml"]
    for status, text in reset(root, below_root("--cert-dir", path), by_file):
        assert status == 4
        assert "photo.jpg" in text or "folder of the system" in text
    assert left(root) == {*FOREIGN, *OURS}


def test_folder_with_certificates_alone_loses_them(root: Path) -> None:
    ((status, text),) = reset(root, below_root("--cert-dir", "//srv/./pki/"))
    assert status == 0, text
    assert "warning: what is in //srv/./pki/ goes" in text
    # kubeadm empties the named folder, and leaves the default one as it is.
    assert left(root) == {*FOREIGN, "etc/kubernetes/pki/ca.crt"}


def test_one_folder_can_be_allowed_and_no_other_is_by_that(root: Path) -> None:
    command = below_root("--cert-dir", "/srv/to-mixed", "--allow-path")
    (refused, _), (status, text) = reset(root, [*command, "/srv"], [*command, "/srv/mixed/"])
    assert refused == 4
    assert status == 0, text
    assert "everything in /srv/mixed goes, for --allow-path names it" in text
    assert {*FOREIGN} - left(root) == {"srv/mixed/ca.crt", "srv/mixed/photo.jpg"}
