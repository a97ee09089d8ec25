"""What a host does for a provisioner, on a scratch machine."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from garboard.errors import BadDocument
from garboard.fleet.installers.host_view import HostClaim, HostRefused
from garboard.host.node_machine import NodeMachine
from garboard.host.root import inside
from garboard.host.runs import RunFolders
from garboard.node.fleet.host_commands import CLAIM, ThisHost, reset_host
from garboard.node.runs import Runs
from tests.support.node.reporters import MemoryReporter

WANTED = HostClaim("c1-x", "cp1", "sha256:1")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Path]:
    for each in ("etc/kubernetes/manifests", "var/lib", "tmp"):
        (tmp_path / each).mkdir(parents=True)
    with inside(str(tmp_path)):
        yield tmp_path


def host() -> ThisHost:
    machine = NodeMachine(None)
    return ThisHost(machine, Runs(machine, RunFolders()), MemoryReporter())


def reset_of(machine: Path) -> list[str]:
    """Return the names of files that are below /etc/kubernetes."""
    return [each.name for each in (machine / "etc/kubernetes").rglob("*") if each.is_file()]


def test_bare_host_is_claimed_and_says_so(machine: Path) -> None:
    assert host().view().claim is None
    assert host().claim(WANTED).claim == WANTED
    assert host().claim(WANTED).claim == WANTED, "it may be asked again"
    assert (machine / CLAIM[1:]).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("what", ["a file", "a link"])
def test_host_that_is_not_bare_is_refused(machine: Path, what: str) -> None:
    if what == "a file":
        (machine / "etc/kubernetes/kubelet.conf").write_text("x")
    else:
        (machine / "etc/kubernetes/pki").symlink_to("/elsewhere")
    with pytest.raises(HostRefused, match="no infraID beside it"):
        host().claim(WANTED)
    assert host().view().claim is None


def test_bundle_is_written_where_init_reads_it_and_only_for_the_owner(machine: Path) -> None:
    files = {"kubeadm.yaml": "kind: x\n", "patches/etcd+strategic.yaml": "y\n", "pki/ca.key": "key"}
    with pytest.raises(HostRefused, match="no infraID"):
        host().stage(WANTED, files)
    host().claim(WANTED)
    host().stage(WANTED, files)
    host().stage(WANTED, {"kubeadm.yaml": "kind: z\n"})
    state = machine / "var/lib/garboard/fleet"
    assert (state / "kubeadm.yaml").read_text() == "kind: z\n"
    assert list((state / "patches").iterdir()) == []
    assert (machine / "etc/kubernetes/pki/ca.key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(HostRefused):
        host().stage(HostClaim("o-1", "cp1", "sha256:1"), files)


@pytest.mark.parametrize("name", ["../x", "/etc/shadow", "pki/sa.key", "patches/../x", "claim.json", "patches/a"])
def test_file_that_is_none_of_a_bundle_is_refused(machine: Path, name: str) -> None:
    host().claim(WANTED)
    with pytest.raises(BadDocument, match="no file of a bundle"):
        host().stage(WANTED, {name: "x"})


def test_authority_of_another_cluster_is_never_replaced(machine: Path) -> None:
    host().claim(WANTED)
    (machine / "etc/kubernetes/pki").mkdir()
    (machine / "etc/kubernetes/pki/ca.crt").write_text("theirs")
    with pytest.raises(HostRefused, match="belongs to another cluster"):
        host().stage(WANTED, {"pki/ca.crt": "ours"})
    assert (machine / "etc/kubernetes/pki/ca.crt").read_text() == "theirs"


def test_release_resets_only_what_shows_the_infra_id(machine: Path) -> None:
    asked: list[str] = []

    def reset(check: object, _reporter: object) -> None:
        assert callable(check)
        check()
        asked.append("reset")

    assert host().release(WANTED, reset) == "it carries no infraID, so nothing was done"
    host().claim(HostClaim("o-1", "cp1", "x"))
    assert "o-1, so it is left alone" in host().release(WANTED, reset)
    assert asked == []
    (machine / CLAIM[1:]).unlink()
    host().claim(WANTED)
    assert host().release(WANTED, reset) == "it was reset"
    assert asked == ["reset"]
    assert host().view().claim is None


def test_host_that_is_reused_while_its_reset_is_planned_is_left(machine: Path) -> None:
    host().claim(WANTED)

    def reset(check: object, _reporter: object) -> None:
        (machine / CLAIM[1:]).write_text(json.dumps(HostClaim("o-1", "x", "y").document()))
        assert callable(check)
        check()
        raise AssertionError("nothing is removed after a check that fails")

    with pytest.raises(HostRefused, match="o-1"):
        host().release(WANTED, reset)
    claim = host().view().claim
    assert claim is not None
    assert claim.infra_id == "o-1"


def test_reused_host_loses_our_claim_and_nothing_else(machine: Path) -> None:
    host().claim(WANTED)
    (machine / "etc/kubernetes/pki").mkdir()
    (machine / "etc/kubernetes/pki/ca.crt").write_text("theirs")
    assert "left alone" in host().release(WANTED, lambda _check, _reporter: pytest.fail("it was reset"))
    assert reset_of(machine) == ["ca.crt"]
    assert host().view().claim is None


def test_real_reset_asks_again_under_the_node_lock(machine: Path) -> None:
    """The workflow of reset itself, with the check in the place of its question."""
    host().claim(WANTED)
    (machine / "etc/kubernetes/manifests/x.yaml").write_text("kind: Pod\n")
    checks: list[bool] = []

    def check() -> None:
        checks.append(bool(Runs().lock_holder()))
        raise HostRefused("reused")

    with pytest.raises(HostRefused, match="reused"):
        reset_host(check, MemoryReporter())
    assert checks == [True]
    assert reset_of(machine) == ["x.yaml"]
