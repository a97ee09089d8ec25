"""Three control planes and a worker, bootstrapped by the real kubeadm."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from garboard.lab import network
from tests.support.lab.clusters import objects
from tests.support.lab.webimage import pod, service, write_web_image
from tools.harness.lab import LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]


def within(seconds: float, condition: Callable[[], bool], what: str) -> float:
    """Wait for a condition and return how long it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.3)
    return time.monotonic() - began


def test_all_nodes_are_ready_and_every_pod_runs(ha: LabUnderTest) -> None:
    assert ha.status()["missing"] == []
    roles = {
        node["metadata"]["name"]: "node-role.kubernetes.io/control-plane" in node["metadata"]["labels"]
        for node in objects(ha, "nodes")
    }
    assert roles == {"cp1": True, "cp2": True, "cp3": True, "worker1": False}
    members = [p for p in objects(ha, "pods", "-n", "kube-system") if p["metadata"]["name"].startswith("etcd-")]
    assert len(members) == 3


def test_members_of_etcd_that_start_together_do_not_wait_for_each_other(ha: LabUnderTest) -> None:
    """Each asks the others for a hash at its start, and they answer only after their own start."""
    for node in ("cp1", "cp2", "cp3"):
        said = ha.exec(node, "sh", "-c", "cat /var/log/pods/kube-system_etcd-*/etcd/*.log").stdout
        waits = [line for line in said.splitlines() if "failed hash kv request" in line and "deadline exceeded" in line]
        assert waits == []
        assert network.PEER_TABLE not in ha.exec(node, "nft", "list", "tables").stdout


def test_kube_proxy_uses_nftables(ha: LabUnderTest) -> None:
    config = ha.kubectl("get", "configmap", "-n", "kube-system", "kube-proxy", "-o", "jsonpath={.data.config\\.conf}")
    assert "mode: nftables" in config
    assert "table ip kube-proxy" in ha.exec("worker1", "nft", "list", "tables").stdout


def test_a_pod_on_a_control_plane_reaches_one_on_the_worker_by_the_name_of_its_service(
    ha: LabUnderTest, tmp_path: Path
) -> None:
    archive = tmp_path / "web.tar"
    write_web_image(archive)
    ha.lab("load", str(archive))
    page = "echo from $HOSTNAME >/www/index.html && exec busybox httpd -f -p 8080 -h /www"
    # Not `wget -T`: Debian's busybox crashes on it.
    once = "busybox timeout 3 busybox wget -q -O - http://web.default.svc.cluster.local"
    fetch = f"for i in $(busybox seq 60); do {once} && exit 0; busybox sleep 1; done; exit 1"
    ha.kubectl("apply", "-f", "-", stdin="---\n".join([pod("web", "worker1", "sh", "-c", page), service("web")]))
    client = pod("client", "cp2", "sh", "-c", fetch).replace("spec:", "spec:\n  restartPolicy: Never", 1)
    ha.kubectl("apply", "-f", "-", stdin=client)
    try:
        ha.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/client", "--timeout=90s")
        assert ha.kubectl("logs", "client") == "from web\n"
        placed = {p["metadata"]["name"]: p["spec"]["nodeName"] for p in objects(ha, "pods")}
        assert placed == {"web": "worker1", "client": "cp2"}
    finally:
        ha.kubectl("delete", "pod/web", "pod/client", "service/web", "--now", check=False)


def test_the_api_answers_within_30_s_after_a_control_plane_is_killed(ha: LabUnderTest) -> None:
    leader = ha.kubectl(
        "get", "lease", "-n", "kube-system", "kube-controller-manager", "-o", "jsonpath={.spec.holderIdentity}"
    )
    victim = leader.split("_")[0]
    ha.lab("stop", victim)
    try:
        within(30, lambda: "cp" in ha.kubectl("get", "nodes", "-o", "name", check=False), "the API answers")
        within(30, lambda: "created" in ha.kubectl("create", "configmap", "probe", check=False), "a write works")
    finally:
        ha.kubectl("delete", "configmap", "probe", check=False)
        ha.lab("start", victim)
    within(120, lambda: ha.status()["missing"] == [], "the node is back")


def test_a_partitioned_member_rejoins_after_heal(ha: LabUnderTest) -> None:
    def etcd_sees(one: str, other: str) -> bool:
        return ha.exec(one, "busybox", "nc", "-w", "1", other, "2380", "-e", "true", check=False).returncode == 0

    # A node that was just started again counts as ready by what it had reported before.
    within(60, lambda: etcd_sees("cp1", "cp2") and etcd_sees("cp1", "cp3"), "peers talk")
    ha.lab("partition", "cp1", "cp3")
    ha.lab("partition", "cp2", "cp3")
    try:
        assert not etcd_sees("cp1", "cp3")
        assert etcd_sees("cp1", "cp2")
        within(30, lambda: "created" in ha.kubectl("create", "configmap", "probe", check=False), "the majority writes")
    finally:
        ha.lab("heal")
        ha.kubectl("delete", "configmap", "probe", check=False)
    within(30, lambda: etcd_sees("cp1", "cp3"), "peers talk again")
    within(120, lambda: ha.status()["missing"] == [], "all is ready again")


def test_a_node_of_another_release_can_be_added(ha: LabUnderTest) -> None:
    assert ha.lab("add-node", "--kubernetes-version", "v1.36.4").stdout == "worker2\n"
    versions = {n["metadata"]["name"]: n["status"]["nodeInfo"]["kubeletVersion"] for n in objects(ha, "nodes")}
    assert versions["worker2"] == "v1.36.4"
    assert versions["worker1"] == "v1.37.1"


def test_the_logs_of_services_and_pods_can_be_read(ha: LabUnderTest) -> None:
    assert ha.lab("logs", "cp1", "-n", "5").stdout.count("\n") == 5
    assert ha.lab("logs", "cp1", "kube-apiserver", "-n", "5").stdout.count("\n") >= 5
    unknown = ha.lab("logs", "cp1", "nginx", check=False)
    assert unknown.returncode == 2
    assert "there are: containerd, kubelet" in unknown.stderr


def test_the_kubeconfig_works_from_the_machine_and_is_private(ha: LabUnderTest) -> None:
    assert ha.lab("kubeconfig").stdout.count("server: https://127.0.0.1:") == 1
    assert ha.files.kubeconfig.stat().st_mode & 0o777 == 0o600


def test_without_workers_a_control_plane_takes_ordinary_pods(one_node: LabUnderTest, tmp_path: Path) -> None:
    write_web_image(tmp_path / "web.tar")
    one_node.lab("load", str(tmp_path / "web.tar"))
    ordinary = (
        pod("ordinary", "cp1", "sleep", "600").replace("  nodeName: cp1\n", "").replace("[{operator: Exists}]", "[]")
    )
    one_node.kubectl("apply", "-f", "-", stdin=ordinary)
    try:
        one_node.kubectl("wait", "--for=condition=Ready", "pod/ordinary", "--timeout=60s")
    finally:
        one_node.kubectl("delete", "pod/ordinary", "--now", check=False)
