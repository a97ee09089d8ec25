"""What tests ask the cluster of a lab, and how they wait for it."""

import json
from collections.abc import Callable
from typing import Any

from garboard.retry import Pauses, wait_until
from tools.harness.lab import LabUnderTest

# Makes a lab of bare nodes: the fixture `bare`.
Bare = Callable[..., LabUnderTest]
READY_WITHIN_S = 60
_LISTED = "/etc/kubernetes /var/lib/kubelet /var/lib/etcd /etc/cni /root/.kube"


def objects(lab: LabUnderTest, *arguments: str) -> list[Any]:
    """Return the items that `kubectl get` lists."""
    items: list[Any] = json.loads(lab.kubectl("get", *arguments, "-o", "json"))["items"]
    return items


def node_object(lab: LabUnderTest, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.kubectl("get", "node", name, "-o", "json"))
    return found


def await_nodes(lab: LabUnderTest, *names: str) -> None:
    """Wait until the nodes are Ready."""

    def not_ready() -> str | None:
        return next((f"{name} is not Ready" for name in names if not _is_ready(node_object(lab, name))), None)

    problem = wait_until(not_ready, timeout_s=READY_WITHIN_S, pauses=Pauses.every(0.5))
    assert problem is None, lab.kubectl("get", "nodes")


def _is_ready(node: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])


def await_api(lab: LabUnderTest) -> None:
    """Wait until the API server says that it is ready."""

    def not_ready() -> str | None:
        said = lab.kubectl("get", "--raw", "/readyz", check=False)
        return None if said == "ok" else said or "no answer"

    problem = wait_until(not_ready, timeout_s=90, pauses=Pauses.every(1))
    assert problem is None, problem


def left_on(lab: LabUnderTest, node: str) -> str:
    """Return every file with its mode and owner, mounts, pods and the kubelet's state."""
    script = (
        # kubectl's cache is the machine's: what changes in its /root meanwhile shows in that of the node.
        f'find {_LISTED} -path /root/.kube/cache -prune -o -printf "%p %m %U %G %y\\n" | sort; '
        'grep -c " /var/lib/kubelet/" /proc/mounts; '
        "systemctl is-active kubelet; crictl -r unix:///run/containerd/containerd.sock pods -q | sed 's/^/pod /'; "
        "cat /srv/mine/data"
    )
    return lab.exec(node, "sh", "-c", script, check=False).stdout
