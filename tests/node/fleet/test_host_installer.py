"""The installer `garboard` on simulated hosts: claims, order, kills, lost connections, hosts that were reused."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.node.fleet.host_installer import HostInstaller
from garboard.node.fleet.provisioning import FAILURE, Customized
from garboard.node.fleet.remote_host import HostTimes
from tests.support.fleet.install_configs import CONFIG, HOSTS
from tests.support.fleet.provisions import Provisioning, nothing
from tests.support.fleet.simulated_hosts import SimulatedHosts

BARE: list[str] = []
CLAIM = "var/lib/garboard/fleet/claim.json"
TIMES = HostTimes(command_s=5.0, find_out_s=2.0)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed leaves what it has written also where it has not waited for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedHosts:
    made = SimulatedHosts(tmp_path / "hosts")
    made.make(*HOSTS)
    made.install(monkeypatch)
    return made


@pytest.fixture
def made(tmp_path: Path) -> Provisioning:
    return provisioning(tmp_path / "work")


def provisioning(work: Path, config: str = CONFIG) -> Provisioning:
    return Provisioning(
        work,
        lambda scrubber, reporter, _lock: HostInstaller(reporter, scrubber, TIMES),
        installer="garboard",
        install_config=config.encode(),
        customize=nothing,
    )


def claimed_by(hosts: SimulatedHosts) -> set[str]:
    """Return the infraIDs that hosts carry."""
    paths = (hosts.root(each) / CLAIM for each in HOSTS)
    return {json.loads(each.read_text())["infraID"] for each in paths if each.exists()}


def test_hosts_become_a_cluster_control_planes_in_turn(made: Provisioning, hosts: SimulatedHosts) -> None:
    made.provision()
    last = made.record().last
    assert last is not None
    assert claimed_by(hosts) == {last.infra_id}
    changing = [each for each in hosts.asked if each.split()[1] in ("init", "join")]
    assert changing[0] == "cp1 init"
    assert sorted(changing[1:]) == ["cp2 join", "worker1 join"]
    first_change = hosts.asked.index("cp1 init")
    assert {f"{each} fleet host claim" for each in HOSTS} <= set(hosts.asked[:first_change])
    kubeconfig = (made.work / "kubeconfig").read_text()
    assert "server: https://api.example.com:6443" in kubeconfig


def test_what_a_patch_changes_reaches_the_hosts_and_secrets_no_words(made: Provisioning, hosts: SimulatedHosts) -> None:
    def customize(tree: Mapping[str, bytes | str]) -> Customized:
        path = "hosts/worker1/patches/kubeletconfiguration.yaml"
        kubelet = tree[path]
        assert isinstance(kubelet, bytes)
        return Customized({path: kubelet + b"maxPods: 42\n"})

    made.customize = customize
    made.provision()
    staged = hosts.root("worker1") / "var/lib/garboard/fleet"
    assert "maxPods: 42" in (staged / "patches/kubeletconfiguration+strategic.yaml").read_text()
    assert [each.name for each in (hosts.root("cp1") / "var/lib/garboard/fleet/patches").iterdir()] == []
    token = json.loads((made.work / "attempt-1/bundles/secrets.json").read_text())[0]
    assert token in (staged / "kubeadm.yaml").read_text()
    assert token not in " ".join(hosts.asked)
    assert (staged / "kubeadm.yaml").stat().st_mode & 0o77 == 0
    assert not any("abcdef.0123456789abcdef" in line for line in made.reporter.lines)


def test_deprovision_leaves_bare_hosts_that_can_be_taken_again(made: Provisioning, hosts: SimulatedHosts) -> None:
    made.provision()
    made.deprovision()
    assert {each: hosts.files(each) for each in HOSTS} == dict.fromkeys(HOSTS, BARE)
    released = [each.split()[0] for each in hosts.asked if each.endswith("release")]
    assert released == ["worker1", "cp2", "cp1"]
    made.provision()
    attempts = made.record().attempts
    assert claimed_by(hosts) == {attempts[-1].infra_id}
    assert attempts[0].infra_id != attempts[1].infra_id


@pytest.mark.parametrize("what", ["a file in /etc/kubernetes", "another infraID", "a claim that cannot be read"])
def test_host_that_is_not_free_is_refused_and_no_host_is_changed(
    made: Provisioning, hosts: SimulatedHosts, what: str
) -> None:
    root = hosts.root("worker1")
    if what == "a file in /etc/kubernetes":
        (root / "etc/kubernetes/manifests").mkdir()
        (root / "etc/kubernetes/manifests/mine.yaml").write_text("x")
    else:
        (root / CLAIM).parent.mkdir(parents=True)
        claim = {"infraID": "other-12345", "host": "worker1", "authority": "x"}
        (root / CLAIM).write_text(json.dumps(claim) if what == "another infraID" else "{")
    before = {each: hosts.files(each) for each in HOSTS}
    said = {"a file in /etc/kubernetes": "no infraID beside it", "another infraID": "other-12345"}
    with pytest.raises(GarboardError) as refused:
        made.provision()
    assert "worker1: " in refused.value.message
    assert said.get(what, "claim.json cannot be read") in refused.value.message
    assert {each: hosts.files(each) for each in HOSTS} == before
    if what == "a claim that cannot be read":
        with pytest.raises(GarboardError, match=r"worker1: .*claim\.json cannot be read"):
            made.deprovision()
    else:
        made.deprovision()
    assert {each: hosts.files(each) for each in HOSTS} == before


def test_host_that_was_reused_since_is_never_reset(made: Provisioning, hosts: SimulatedHosts) -> None:
    """By another fleet, by hand without our claim, and by hand with our claim still there."""
    made.provision()
    (hosts.root("worker1") / CLAIM).write_text(json.dumps({"infraID": "o-1", "host": "worker1", "authority": "x"}))
    (hosts.root("cp2") / CLAIM).unlink()
    other = json.dumps({"clusters": [{"cluster": {"certificate-authority-data": "bWluZQ=="}}]})
    (hosts.root("cp1") / "etc/kubernetes/admin.conf").write_text(other)
    before = {each: [file for file in hosts.files(each) if file != CLAIM] for each in HOSTS}
    made.deprovision()
    assert {each: [file for file in hosts.files(each) if file != CLAIM] for each in HOSTS} == before
    assert claimed_by(hosts) == {"o-1"}
    said = "\n".join(made.reporter.lines)
    assert "[worker1] it carries the infraID o-1, so it is left alone" in said
    assert "[cp2] it carries no infraID" in said
    assert "[cp1] it is left alone, without an infraID: what is in /etc/kubernetes belongs to another cluster" in said


def test_two_hosts_that_are_one_machine_are_refused(made: Provisioning, hosts: SimulatedHosts, tmp_path: Path) -> None:
    shutil.rmtree(hosts.root("worker1"))
    hosts.root("worker1").symlink_to(hosts.root("cp2"))
    with pytest.raises(GarboardError, match="two hosts of the install config lead to one machine"):
        made.provision()
    made.deprovision()
    assert hosts.files("cp2") == BARE


# The questions of a whole provision: 3 hosts are asked for their version, looked at, claimed and staged; of each that
# joins or is initialised its state is asked before, and its runs; then the addons are applied, and nodes asked for.
QUESTIONS = 3 * 4 + 3 * 3 + 2


def test_questions_of_a_provision_are_counted(made: Provisioning, hosts: SimulatedHosts) -> None:
    made.provision()
    assert len(hosts.asked) == QUESTIONS


@pytest.mark.sampled(5)
@pytest.mark.parametrize("number", range(QUESTIONS))
@pytest.mark.parametrize("after", [False, True], ids=["before the host did it", "after the host did it"])
def test_killed_at_any_question_it_goes_on_or_takes_everything_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, after: bool
) -> None:
    for way in ("provision", "deprovision"):
        folder = tmp_path / way
        hosts = SimulatedHosts(folder / "hosts", deadly=number, is_killed_after=after)
        hosts.make(*HOSTS)
        made = provisioning(folder / "work")
        hosts.install(monkeypatch)
        assert made.is_killed(made.provision)
        hosts.deadly = -1
        if way == "deprovision":
            made.deprovision()
            assert {each: hosts.files(each) for each in HOSTS} == dict.fromkeys(HOSTS, BARE)
            continue
        made.provision()
        last = made.record().last
        assert last is not None
        assert last.end == "complete"
        assert claimed_by(hosts) == {last.infra_id}
        assert [len(hosts._read_runs(each)) for each in HOSTS] == [1, 1, 1]
        assert len(made.record().attempts) == 1, "it resumes within one attempt"


def test_run_that_was_cut_short_is_resumed_and_one_that_is_done_is_not_repeated(
    made: Provisioning, hosts: SimulatedHosts
) -> None:
    hosts.behaviour["worker1 join"] = "fail"
    with pytest.raises(GarboardError, match=r"worker1: garboard join .* ended with status 1"):
        made.provision()
    assert json.loads((made.work / FAILURE).read_text())["stage"] == "create cluster"
    hosts.behaviour.clear()
    hosts.asked.clear()
    made.provision()
    assert "worker1 resume" in hosts.asked
    assert "worker1 join" not in hosts.asked
    assert hosts.asked.count("cp1 init") == 2, "only the phases that make tokens and certificates anew"
    assert len(hosts._read_runs("cp1")) == 1


@pytest.mark.parametrize("behaviour", ["once lost", "once lost-open"])
def test_connection_that_is_lost_is_no_failure(made: Provisioning, hosts: SimulatedHosts, behaviour: str) -> None:
    hosts.behaviour["cp2 join"] = behaviour
    made.provision()
    assert [each["state"] for each in hosts._read_runs("cp2")] == ["committed"]


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ({"worker1 version": "silent"}, "worker1 does not answer"),
        ({"worker1 fleet host look": "slow"}, "worker1 does not answer .*: it did not end within 60 s"),
        ({"worker1 version": 'says {"garboard": "9.9"}'}, "worker1 has 9.9"),
        ({"worker1 fleet host look": "says hello"}, "worker1: it answers 'hello' instead of JSON"),
        ({"worker1 fleet host claim": 'says {"view": {"claim": {"infraID": "lie", "host": "x", "authority": "y"}, '
          '"files": [], "authorities": [], "runs": []}, "refused": ""}'}, "worker1: it shows lie as x"),
        ({"worker1 fleet host claim": 'says {"refused": "no\\u001b[31m"}'}, "worker1: no"),
    ],
    ids=["silent", "slow", "another version", "no JSON", "another claim", "control characters"],
)  # fmt: skip
def test_host_that_does_not_answer_or_lies_is_refused(
    made: Provisioning, hosts: SimulatedHosts, behaviour: dict[str, str], said: str
) -> None:
    hosts.behaviour.update(behaviour)
    with pytest.raises(GarboardError, match=said) as refused:
        made.provision()
    assert "\x1b" not in refused.value.message
    assert "cp1 init" not in hosts.asked
    hosts.behaviour.clear()
    made.deprovision()
    assert {each: hosts.files(each) for each in HOSTS} == dict.fromkeys(HOSTS, BARE)


def test_host_that_cannot_be_reached_is_kept_for_the_next_deprovision(
    made: Provisioning, hosts: SimulatedHosts
) -> None:
    made.provision()
    hosts.behaviour["worker1 fleet host release"] = "silent"
    with pytest.raises(GarboardError, match="not every host could be released: worker1"):
        made.deprovision()
    assert hosts.files("cp1") == BARE
    hosts.behaviour.clear()
    made.deprovision()
    assert hosts.files("worker1") == BARE


@pytest.mark.parametrize("after", [False, True], ids=["before the host did it", "after the host did it"])
@pytest.mark.parametrize("number", range(2 * len(HOSTS)))
def test_killed_while_hosts_are_released_the_next_deprovision_releases_the_rest(
    made: Provisioning, hosts: SimulatedHosts, number: int, after: bool
) -> None:
    made.provision()
    hosts.asked.clear()
    hosts.deadly, hosts.is_killed_after = number, after  # each is looked at, and released
    assert made.is_killed(made.deprovision)
    hosts.deadly = -1
    made.deprovision()
    assert {each: hosts.files(each) for each in HOSTS} == dict.fromkeys(HOSTS, BARE)


def test_attempt_goes_on_with_the_documents_that_it_began_with(made: Provisioning, hosts: SimulatedHosts) -> None:
    hosts.behaviour["worker1 join"] = "fail"
    with pytest.raises(GarboardError):
        made.provision()
    hosts.behaviour.clear()
    made.install_config += b"# changed\n"
    made.provision()
    assert any("the documents have changed since it began" in line for line in made.reporter.lines)


def test_attempt_goes_on_when_its_documents_have_gone(made: Provisioning, hosts: SimulatedHosts) -> None:
    hosts.behaviour["worker1 join"] = "fail"
    with pytest.raises(GarboardError):
        made.provision()
    hosts.behaviour.clear()
    made.resume()
    last = made.record().last
    assert last is not None
    assert last.end == "complete"
    assert (made.work / "kubeconfig").exists()


def test_nodes_that_do_not_become_ready_are_named(made: Provisioning, hosts: SimulatedHosts) -> None:
    hosts.behaviour["cp1 fleet host nodes"] = 'says {"nodes": {"cp1": true, "worker1": false}}'
    with pytest.raises(GarboardError, match="cp2, worker1 not Ready"):
        made.provision()


def test_manifest_that_kubeadm_would_refuse_is_refused_before_a_host_is_asked(
    made: Provisioning, hosts: SimulatedHosts
) -> None:
    made.customize = lambda _tree: Customized({"hosts/cp2/JoinConfiguration.yaml": b"kind: JoinConfiguration\n"})
    with pytest.raises(GarboardError, match=r"hosts/cp2/JoinConfiguration\.yaml"):
        made.provision()
    assert hosts.asked == []
