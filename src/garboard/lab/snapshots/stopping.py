"""Stopping the cluster of a lab so that it can be kept, and starting it again.

The order matters: kubelets first, for they would start again whatever ends; then what writes to the cluster; then API
servers; the members of etcd last and one by one, so that each can hand over its leadership and close its files.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from garboard.errors import GarboardError
from garboard.lab.labs import Labs
from garboard.lab.topology import Lab, Node

# A scheduler or controller manager that finds the lease of one which has ended waits 15 s for it to run out, and a
# kubelet whose node is recorded as Ready leaves that record alone for 10 s. Neither would be true of a lab that does
# not run, so both are taken back.
FORGET = """\
k="kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=10s"
$k delete lease -n kube-system kube-controller-manager kube-scheduler --ignore-not-found
nodes=$($k get nodes -o name) && $k patch --subresource=status $nodes -p '{"status": {"conditions": [
  {"type": "Ready", "status": "Unknown", "reason": "LabStopped", "message": "the lab was stopped for a snapshot"}]}}'
"""
ETCD = "^etcd$"
CONTROLLERS = "^(kube-controller-manager|kube-scheduler)$"
SERVERS = "^(etcd|kube-apiserver)$"
# $1 is how long containers may take to end by themselves.
END = ' | xargs --no-run-if-empty -P 8 -n 1 crictl stop --timeout "$1" >/dev/null'
NAMED = 'crictl ps --quiet --name "$2"'
ALL_BUT_NAMED = f"(crictl ps --quiet; {NAMED}) | sort | uniq --unique"
# Pods are removed, so that kubelets have nothing to clear away; then no container has a layer that it writes to.
REMOVE_PODS = """\
crictl rmp --all --force >/dev/null || exit
for namespace in $(ctr namespaces list --quiet); do
    ctr --namespace "$namespace" snapshots list | grep -q ' Active *$' && echo "$namespace"
done
exit 0
"""


@dataclass(frozen=True, slots=True)
class StoppableCluster:
    """Stops all nodes of a lab in order, and starts them again."""

    labs: Labs
    lab: Lab

    def stop(self) -> None:
        """End every process of the lab's nodes; what they have written is whole."""
        self._each(lambda node: self._unit(node, "stop", "kubelet"))
        self._each(lambda node: self._end(node, NAMED, CONTROLLERS, within_s=1), self.lab.control_planes)
        self._forget()
        self._each(lambda node: self._end(node, ALL_BUT_NAMED, SERVERS, within_s=3))
        self._each(lambda node: self._end(node, ALL_BUT_NAMED, ETCD, within_s=1), self.lab.control_planes)
        for node in self.lab.control_planes:
            self._end(node, NAMED, ETCD, within_s=10)
        self._each(self._remove_pods)
        self._each(lambda node: self._unit(node, "stop", "containerd"))
        self._each(lambda node: self.labs.ask(self.lab.name, {"do": "stop-node", "node": node.name}))

    def start(self) -> None:
        """Start every node that does not run, and the services of those that do."""
        running = self.labs.node_pids(self.lab.name)

        def start(node: Node) -> None:
            if node.name not in running:
                self.labs.start_node(self.lab, node)
                return
            self._unit(node, "start", "containerd")
            if (self.labs.files(self.lab.name).node(node.name).var / "lib/kubelet/config.yaml").exists():
                self._unit(node, "start", "kubelet")

        self._each(start)

    def _forget(self) -> None:
        """Take back leases and the nodes' readiness, where there is a cluster; without it a start only takes longer."""
        for node in self.lab.control_planes:
            if (self.labs.files(self.lab.name).node(node.name).upper / "etc/kubernetes/admin.conf").exists():
                ended = self.labs.machine.run(self._enter(node, FORGET), check=False)
                if ended.status == 0:
                    return

    def _end(self, node: Node, which: str, name: str, *, within_s: int) -> None:
        self.labs.machine.run(self._enter(node, which + END, str(within_s), name))

    def _remove_pods(self, node: Node) -> None:
        others = self.labs.machine.run(self._enter(node, REMOVE_PODS)).stdout.split()
        if others:
            raise GarboardError(
                f"node {node.name} has containers that Kubernetes does not know (namespace {others[0]} of containerd)",
                hint=f"remove them with `ctr --namespace {others[0]} containers` in `garboard lab shell {node.name}`",
                error_class="foreign-containers",
            )

    def _unit(self, node: Node, verb: str, unit: str) -> None:
        self.labs.ask(self.lab.name, {"do": "unit", "node": node.name, "verb": verb, "unit": unit})

    def _enter(self, node: Node, script: str, *arguments: str) -> list[str]:
        return self.labs.enter(self.lab.name, node.name, ["sh", "-c", script, "stop", *arguments])

    def _each(self, work: Callable[[Node], object], nodes: Sequence[Node] | None = None) -> None:
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(work, self.lab.nodes if nodes is None else nodes))
