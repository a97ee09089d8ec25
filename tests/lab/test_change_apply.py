"""A live cluster of three control planes and a worker, made by kubeadm, is changed: the least of it, on every node."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from garboard.cli.main import run
from garboard.retry import Pauses, wait_until
from tests.support.lab.clusters import await_nodes, node_object, objects
from tools.harness.api_load import ApiLoad
from tools.harness.changing import CONTROL_PLANES, NODES, Changing, SeenNodes, is_ready
from tools.harness.lab import LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

_MANIFESTS = "/etc/kubernetes/manifests"
API_SERVER, SCHEDULER, ETCD = (f"{_MANIFESTS}/{name}.yaml" for name in ("kube-apiserver", "kube-scheduler", "etcd"))
CERTIFICATE = {"/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/pki/apiserver.key"}
KUBELET = "/var/lib/kubelet/config.yaml"
NAME = "api.example.com"
_PROXY = "k8s-app=kube-proxy"
_KUBEADM_NODE = (
    "kubeadm", "upgrade", "node", "--ignore-preflight-errors=all", "--patches", "/etc/garboard-lab/patches",
)  # fmt: skip
_QUOTA = "etcd.local.extraArgs[quota-backend-bytes]=8589934592"
_FIT = 9  # more pods than a control plane of the lab has
_IMAGES = "crictl -r unix:///run/containerd/containerd.sock images -o json | grep -o '[a-z0-9./-]*/pause:[0-9.]*'"
_CROWD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: crowd}}
spec:
  replicas: {count}
  selector: {{matchLabels: {{app: crowd}}}}
  template:
    metadata: {{labels: {{app: crowd}}}}
    spec:
      nodeSelector: {{kubernetes.io/hostname: {node}}}
      terminationGracePeriodSeconds: 0
      containers: [{{name: main, image: "{image}", imagePullPolicy: Never}}]
"""


@pytest.fixture(scope="module")
def nodes(ha: LabUnderTest, garboard_in_node: tuple[str, ...]) -> Changing:
    await_nodes(ha, *NODES)
    found = Changing(ha, garboard_in_node)
    found.await_pods()
    return found


@pytest.fixture(autouse=True)
def settled(nodes: Changing) -> None:
    """Begin each test when the API shows what the one before has left."""
    nodes.await_pods()


@pytest.fixture(scope="module", autouse=True)
def kubeadm_before(nodes: Changing) -> Mapping[str, str]:
    """What kubeadm says of an upgrade before anything was changed."""
    return kubeadm_says(nodes)


def kubeadm_says(nodes: Changing) -> Mapping[str, str]:
    """Return what `upgrade plan` and `upgrade diff` say on a control plane, each for the version that it has."""
    version = node_object(nodes.lab, "cp1")["status"]["nodeInfo"]["kubeletVersion"]
    return {
        verb: nodes.lab.exec("cp1", "kubeadm", "upgrade", verb, version, *flags).stdout
        for verb, flags in (("plan", ("--ignore-preflight-errors=all",)), ("diff", ()))
    }


@pytest.fixture
def via(nodes: Changing, tmp_path: Path, state_dir: Path) -> list[str]:
    """The flags with which all nodes are reached from the machine of the lab."""
    return nodes.carried(tmp_path / "carrier")


def only(names: tuple[str, ...], things: set[str]) -> dict[str, set[str]]:
    """Return the same things on some nodes, and nothing on the others."""
    return {name: things if name in names else set() for name in NODES}


def test_flag_of_the_scheduler_goes_through_all_nodes(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """S02, with a carrier: one manifest on each control plane and one ConfigMap."""
    before, serials = SeenNodes.now(nodes), nodes.stored("kubelet-config")
    status = run(["change", "apply", "--set", "scheduler.extraArgs[v]=3", "--yes", "--message", "a test", *via])
    assert status == 0, capfd.readouterr().err
    since = before.since()
    assert since.changed == only(CONTROL_PLANES, {SCHEDULER})
    assert since.modes == only((), set())
    assert since.restarted == only(CONTROL_PLANES, {"kube-scheduler"})
    assert since.kubelets == set()
    assert "- name: v" in nodes.stored("kubeadm-config")["ClusterConfiguration"]
    assert nodes.stored("kubelet-config") == serials
    for name in CONTROL_PLANES:
        assert "    - --v=3\n" in nodes.lab.exec(name, "cat", SCHEDULER).stdout
    told = nodes.status()
    assert (told["state"], told["message"]) == ("committed", "a test")
    assert [(each["node"], each["state"]) for each in told["nodes"]] == [(name, "done") for name in CONTROL_PLANES]
    capfd.readouterr()
    assert run(["change", "apply", "--set", "scheduler.extraArgs[v]=3", "--yes", *via]) == 0
    assert "nothing to do" in capfd.readouterr().err


def test_name_in_the_certificate_needs_no_restart(nodes: Changing) -> None:
    """S04, without a carrier: each node is told, and follows by itself."""
    before = SeenNodes.now(nodes)
    done = nodes.run("cp1", "apply", "--set", f"apiServer.certSANs+={NAME}", "--yes")
    assert done.returncode == 12, done.stderr
    assert [line.split() for line in done.stdout.splitlines() if line.startswith("  on ")] == [
        ["on", name, "garboard", "change", "node", "--yes"] for name in ("cp2", "cp3")
    ]
    assert _shows(nodes, "cp1")
    assert not _shows(nodes, "cp2")
    refused = nodes.run("cp1", "apply", "--set", "scheduler.extraArgs[v]=4", "--yes")
    assert refused.returncode == 15, refused.stderr
    assert nodes.run("cp3", "node", "--yes").returncode == 15, "cp2 comes first"
    assert [(each["node"], each["state"]) for each in nodes.status()["nodes"]] == [
        ("cp1", "done"), ("cp2", "pending"), ("cp3", "pending"),
    ]  # fmt: skip
    for name in ("cp2", "cp3"):
        followed = nodes.run(name, "node", "--yes")
        assert followed.returncode == 0, followed.stderr
        assert _shows(nodes, name)
    since = before.since()
    assert since.changed == only(CONTROL_PLANES, CERTIFICATE)
    assert since.modes == only((), set())
    assert since.started == only((), set())
    assert nodes.status()["state"] == "committed"
    again = nodes.run("cp2", "node", "--yes")
    assert (again.returncode, before.since().changed) == (0, only(CONTROL_PLANES, CERTIFICATE))


def _shows(nodes: Changing, node: str) -> bool:
    """Say whether the API server of a node shows the name to whoever connects to it, and not through the balancer."""
    address = next(each["address"] for each in nodes.lab.status()["nodes"] if each["name"] == node)
    script = (
        f"openssl s_client -connect {address}:6443 </dev/null 2>/dev/null | openssl x509 -noout -ext subjectAltName"
    )
    shown = nodes.lab.exec(node, "sh", "-c", script).stdout
    assert "DNS:kubernetes.default" in shown
    return f"DNS:{NAME}" in shown


def test_more_pods_restart_kubelets_alone(nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """S07: control planes first, then the worker, which reads the target as its kubelet."""
    before, stored = SeenNodes.now(nodes), nodes.stored("kubeadm-config")
    status = run(["change", "apply", "--set", "KubeletConfiguration:maxPods=250", "--yes", *via])
    assert status == 0, capfd.readouterr().err
    since = before.since()
    assert since.changed == only(NODES, {KUBELET})
    assert since.modes == only((), set())
    assert since.started == only((), set())
    assert since.kubelets == set(NODES)
    assert nodes.stored("kubeadm-config") == stored
    listed = json.loads(nodes.lab.kubectl("get", "nodes", "-o", "json"))["items"]
    assert {each["metadata"]["name"]: each["status"]["capacity"]["pods"] for each in listed} == dict.fromkeys(
        NODES, "250"
    )
    reports = {each["metadata"]["name"]: each["metadata"]["annotations"]["garboard.dev/change"] for each in listed}
    assert {report.split(":")[2] for report in reports.values()} == {"done"}


def test_plan_that_was_saved_is_refused_once_somebody_has_changed_the_configuration(
    nodes: Changing, tmp_path: Path, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """S19."""
    before = SeenNodes.now(nodes)
    assert run(["change", "plan", "--set", "KubeletConfiguration:podsPerCore=40", "-o", "json", *via[2:]]) == 10
    saved = tmp_path / "plan.json"
    saved.write_text(capfd.readouterr().out)
    text = nodes.stored("kubelet-config")["kubelet"]
    _store(nodes, text + "registryBurst: 11\n")
    assert run(["change", "apply", str(saved), "--yes", *via]) == 16
    told = capfd.readouterr().err
    assert "error[stale-plan]" in told
    assert "kubelet-config by kubectl" in told, "who has written it last"
    since = before.since()
    assert since.changed == only((), set())
    _store(nodes, text)
    assert run(["change", "apply", str(saved), "--yes", *via]) == 0, capfd.readouterr().err
    since = before.since()
    assert since.changed == only(NODES, {KUBELET})


def test_the_next_change_may_begin_while_the_api_still_shows_what_ran_before(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Kubelets report the static pods of the change before some seconds late."""
    for value in ("4", "5"):
        status = run(["change", "apply", "--set", f"scheduler.extraArgs[v]={value}", "--yes", *via])
        assert status == 0, capfd.readouterr().err


def _store(nodes: Changing, text: str) -> None:
    patch = json.dumps({"data": {"kubelet": text}})
    nodes.lab.kubectl("-n", "kube-system", "patch", "cm", "kubelet-config", "--type", "merge", "-p", patch)


@pytest.mark.alone
def test_flag_of_the_api_server_costs_no_request(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """S02: clients are served by the other API servers meanwhile, and no member of etcd restarts."""
    before = SeenNodes.now(nodes)
    with ApiLoad(nodes.lab.files.kubeconfig) as load:
        status = run(["change", "apply", "--set", "apiServer.extraArgs[profiling]=false", "--yes", *via])
    assert status == 0, capfd.readouterr().err
    print(load, load.shares)
    assert len(load.asked) > 100
    assert load.failed == []
    assert load.longest_gap_s <= load.gap_limit_s
    since = before.since()
    assert since.changed == only(CONTROL_PLANES, {API_SERVER})
    assert since.modes == only((), set())
    assert since.restarted == only(CONTROL_PLANES, {"kube-apiserver"})
    assert since.kubelets == set()
    for name in CONTROL_PLANES:
        running = nodes.lab.exec(name, "sh", "-c", "tr '\\0' '\\n' </proc/$(pidof kube-apiserver)/cmdline").stdout
        assert "--profiling=false" in running.splitlines()


def test_node_that_runs_more_pods_than_will_fit_is_drained_once_that_is_accepted(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """S08: the worker cordons and drains itself, as its kubelet may, and takes pods again."""
    command = ["change", "apply", "--set", f"KubeletConfiguration:maxPods={_FIT}", "--yes", *via]
    with many_pods(nodes, "worker1", _FIT + 2):
        before, crowd = SeenNodes.now(nodes), crowd_on(nodes, "worker1")
        assert run(command) == 11
        told = capfd.readouterr().err
        assert "error[change-blocked]" in told
        assert "worker1 runs" in told
        assert "--accept shrinks-capacity" in told
        since = before.since()
        assert since.changed == only((), set())
        assert run([*command, "--accept", "shrinks-capacity"]) == 0, capfd.readouterr().err
        since = before.since()
        assert since.changed == only(NODES, {KUBELET})
        assert since.restarted == only((), set()), "the pods of the control plane and of kube-proxy keep running"
        assert since.kubelets == set(NODES)
        worker = node_object(nodes.lab, "worker1")
        assert (worker["status"]["capacity"]["pods"], worker["spec"].get("unschedulable")) == (str(_FIT), None)
        assert not crowd & crowd_on(nodes, "worker1"), "all of them were evicted, and others took their place"


def crowd_on(nodes: Changing, node: str) -> set[str]:
    """Return the pods of the crowd that run on a node, by their identities."""
    found = objects(nodes.lab, "pods", "-l", "app=crowd", "--field-selector", f"spec.nodeName={node}")
    return {each["metadata"]["uid"] for each in found}


@contextmanager
def many_pods(nodes: Changing, node: str, count: int) -> Iterator[None]:
    """Have a node run so many pods, which do nothing."""
    image = next(each for each in nodes.lab.exec(node, "sh", "-c", _IMAGES).stdout.split() if "/pause:" in each)
    nodes.lab.kubectl("apply", "-f", "-", stdin=_CROWD.format(count=count, image=image, node=node))
    try:
        nodes.lab.kubectl("rollout", "status", "deployment/crowd", "--timeout=120s")
        yield
    finally:
        nodes.lab.kubectl("delete", "deployment/crowd", "--now", "--wait=false")


def test_revision_is_gone_back_to_and_history_says_who_and_why(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["change", "history", "-o", "json", *via[2:]]) == 0
    revisions = json.loads(capfd.readouterr().out)["revisions"]
    first = next(each for each in revisions if each["message"] == "a test")
    assert first["request"] == "--set 'scheduler.extraArgs[v]=3'"
    assert first["parent"] == 0
    before = SeenNodes.now(nodes)
    # The test of the API server's flag runs by itself, unless somebody runs the whole file.
    has_flag = "profiling" in nodes.stored("kubeadm-config")["ClusterConfiguration"]
    touched = {SCHEDULER, KUBELET, *CERTIFICATE, *({API_SERVER} if has_flag else ())}
    status = run(["change", "rollback", str(first["parent"]), "--yes", *via])
    assert status == 0, capfd.readouterr().err
    since = before.since()
    assert since.changed == {**only(CONTROL_PLANES, touched), "worker1": {KUBELET}}
    capfd.readouterr()
    newest = max(each["revision"] for each in revisions) + 1
    assert run(["change", "history", "0", str(newest), "-o", "json", *via[2:]]) == 0
    assert json.loads(capfd.readouterr().out)["diffs"] == []


def test_broken_flag_is_taken_back_where_it_begins(nodes: Changing) -> None:
    """S15: it ends at once, again and again, behind the phase Running."""
    before, stored, status = SeenNodes.now(nodes), nodes.stored("kubeadm-config"), nodes.status()
    done = nodes.run(
        "cp1", "apply", "--set", "scheduler.extraArgs[no-such-flag]=1", "--accept", "unknown-flag", "--yes"
    )
    assert done.returncode == 13, done.stderr
    assert "unknown flag: --no-such-flag" in done.stderr
    since = before.since()
    assert since.changed == only((), set())
    assert since.modes == only((), set())
    assert since.restarted == only(("cp1",), {"kube-scheduler"})
    assert nodes.stored("kubeadm-config") == stored
    assert nodes.status() == status
    _await_scheduler(nodes, "cp1", "--no-such-flag", is_there=False)


def _await_scheduler(nodes: Changing, node: str, flag: str, *, is_there: bool) -> None:
    """Wait until the API shows the scheduler of a node as it runs."""

    def problem() -> str | None:
        pod = json.loads(nodes.lab.kubectl("-n", "kube-system", "get", "pod", f"kube-scheduler-{node}", "-o", "json"))
        words = pod["spec"]["containers"][0]["command"]
        return None if is_ready(pod) and any(word.startswith(flag) for word in words) is is_there else "not yet"

    assert wait_until(problem, timeout_s=120, pauses=Pauses.every(1)) is None


def test_mode_of_kube_proxy_restarts_its_pods_alone(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """S09: one node after the other, without a new generation of the DaemonSet."""
    before, generation = SeenNodes.now(nodes), proxies(nodes)["metadata"]["generation"]
    mode = "nftables" if "mode: iptables" in nodes.stored("kube-proxy")["config.conf"] else "iptables"
    status = run(["change", "apply", "--set", f"KubeProxyConfiguration:mode={mode}", "--yes", *via])
    assert status == 0, capfd.readouterr().err
    assert f"mode: {mode}" in nodes.stored("kube-proxy")["config.conf"]
    since = before.since()
    assert since.changed == only((), set())
    assert since.restarted == only(NODES, {"kube-proxy"})
    assert since.kubelets == set()
    assert proxies(nodes)["metadata"]["generation"] == generation
    pods = {each["spec"]["nodeName"]: each for each in objects(nodes.lab, "pods", "-n", "kube-system", "-l", _PROXY)}
    for former, following in pairwise(NODES):
        assert ready_since(pods[former]) <= pods[following]["metadata"]["creationTimestamp"], (former, following)
    address = nodes.lab.kubectl("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}")
    for name in NODES:
        asked = nodes.lab.exec(name, "curl", "-sk", "-m", "30", f"https://{address}/livez", check=False)
        assert asked.stdout == "ok", f"Services are not reached from {name}"


def proxies(nodes: Changing) -> Any:
    return json.loads(nodes.lab.kubectl("-n", "kube-system", "get", "daemonset", "kube-proxy", "-o", "json"))


def ready_since(pod: Any) -> str:
    return next(str(each["lastTransitionTime"]) for each in pod["status"]["conditions"] if each["type"] == "Ready")


def test_etcd_stays_as_it_is_while_a_member_is_away(nodes: Changing) -> None:
    """S14, the half that is refused."""
    nodes.lab.lab("stop", "cp3")
    up = ("cp1", "cp2", "worker1")
    before, stored = SeenNodes.now(nodes, up), nodes.stored("kubeadm-config")
    refused = nodes.run("cp1", "apply", "--set", _QUOTA, "--yes")
    assert (refused.returncode, "no-quorum" in refused.stderr, "cp3 is down" in refused.stderr) == (11, True, True)
    assert before.since().is_nothing
    assert nodes.stored("kubeadm-config") == stored
    nodes.lab.lab("start", "cp3")
    await_nodes(nodes.lab, *NODES)
    nodes.await_pods()


@pytest.mark.verify
def test_etcd_restarts_member_by_member_each_with_the_api_server_of_its_node(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """S14: the next member only goes when the one before is back and has caught up."""
    before = SeenNodes.now(nodes)
    with ApiLoad(nodes.lab.files.kubeconfig) as load:
        status = run(["change", "apply", "--set", _QUOTA, "--yes", *via])
    assert status == 0, capfd.readouterr().err
    print(load)
    assert load.failed == []
    since = before.since()
    assert since.changed == only(CONTROL_PLANES, {ETCD})
    assert since.modes == only((), set())
    assert since.restarted == only(CONTROL_PLANES, {"etcd", "kube-apiserver"})
    spans = [nodes.last_run(name) for name in CONTROL_PLANES]
    assert all(former[1] <= following[0] for former, following in pairwise(spans)), spans
    saved = nodes.lab.exec("cp1", "sh", "-c", "stat -c '%a %s' /var/lib/garboard/etcd-snapshots/change-*").stdout
    assert [line.split()[0] for line in saved.splitlines()] == ["600"]


def test_kubeadm_upgrades_as_before_the_changes(nodes: Changing, kubeadm_before: Mapping[str, str]) -> None:
    """What it plans is the same, it finds nothing to change in the manifests, and a worker stays as it is."""
    before = SeenNodes.now(nodes)
    assert kubeadm_says(nodes) == kubeadm_before
    nodes.lab.exec("worker1", *_KUBEADM_NODE)
    since = before.since()
    copies = {path for path in since.changed["worker1"] if path.startswith("/etc/kubernetes/tmp/")}
    assert since.changed == only(("worker1",), copies)
    assert since.started == only((), set())


@pytest.mark.verify
def test_kubeadm_upgrades_a_control_plane_to_what_garboard_wrote(nodes: Changing) -> None:
    """It renders etcd without the members that it has joined, with or without a change; the rest is the same."""
    before = SeenNodes.now(nodes)
    nodes.lab.exec("cp3", *_KUBEADM_NODE)
    kept = {API_SERVER, SCHEDULER, KUBELET, f"{_MANIFESTS}/kube-controller-manager.yaml"}
    since = before.since()
    assert not kept & since.changed["cp3"]
    assert since.restarted["cp3"] <= {"etcd"}
    is_stored = "quota-backend-bytes" in nodes.stored("kubeadm-config")["ClusterConfiguration"]
    assert ("--quota-backend-bytes=8589934592" in nodes.lab.exec("cp3", "cat", ETCD).stdout) == is_stored
