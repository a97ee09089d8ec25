"""Plan the join of a worker as the command does, prepare to carry it out, and print which modules that took.

Run as a program of its own, which loads nothing for the tests' sake.
"""

import base64
import json
import sys
import tempfile
from datetime import UTC, datetime
from typing import Any

from garboard.cli.console import ConsoleReporter
from garboard.config import FixedFacts, ReadOptions
from garboard.config.flags import GivenFlags
from garboard.config.load import ConfigFile
from garboard.documents import Json
from garboard.host.node_machine import NodeMachine
from garboard.host.root import inside
from garboard.host.service_manager import service_manager
from garboard.node.configuration import node_host
from garboard.node.join import NodeConnector, settings_of
from garboard.node.observe import node_patches
from garboard.node.runs import Runs
from garboard.node.wiring import wired_for
from garboard.phases import plan_workflow, select
from garboard.phases.join import JOIN
from garboard.phases.join.cluster import find_cluster
from garboard.phases.join.context import observe_join
from garboard.phases.join.trust import signature_of

TOKEN, SERVER = "abcdef.0123456789abcdef", "https://192.0.2.1:6443"
CONFIG = f"""\
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken: {{token: {TOKEN}, apiServerEndpoint: "192.0.2.1:6443", unsafeSkipCAVerification: true}}
nodeRegistration: {{criSocket: "unix:///run/runtime.sock"}}
"""
CLUSTER = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.37.1\n"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
CA = base64.b64encode(b"the authority of the cluster").decode()
INFO = f"""\
apiVersion: v1
kind: Config
clusters: [{{name: "", cluster: {{server: "{SERVER}", certificate-authority-data: {CA}}}}}]
"""


class Api:
    """An API server that knows what a node has to know to join."""

    server_time = None

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None:
        data: dict[str, dict[str, Json]] = {
            "cluster-info": {"kubeconfig": INFO, "jws-kubeconfig-abcdef": signature_of(INFO, TOKEN)},
            "kubeadm-config": {"ClusterConfiguration": CLUSTER},
            "kubelet-config": {"kubelet": KUBELET},
        }
        return {"data": data[name]} if name in data else None


class ApiConnector(NodeConnector):
    def unverified(self, server: str) -> Any:
        super().unverified(server)
        return Api()

    def verified(self, server: str, ca: bytes) -> Any:
        return Api()

    def as_user(self, kubeconfig: bytes, source: str) -> Any:
        return Api()


def main() -> None:
    machine, facts = NodeMachine(service_manager()), FixedFacts(host="node-2", address="192.0.2.20")
    config = ConfigFile.read(CONFIG, file="join.yaml", host=facts, options=ReadOptions()).join().config
    cluster = find_cluster(config, ApiConnector(machine, print), facts, downloads=True)
    patches = node_patches(config, GivenFlags({}), role="worker")
    now = datetime.now(UTC)
    context = observe_join(config, cluster, host=node_host(machine), machine=machine, patches=patches, now=now)
    plan = plan_workflow(select(JOIN), context)
    with wired_for(plan, machine, settings_of(context), now, ConsoleReporter()) as wiring:
        wiring.check(plan)
        assert Runs(machine).codec.plan_to_bytes(plan)
    print(json.dumps({"steps": [step.phase for step in plan.steps], "modules": sorted(sys.modules)}))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty, inside(empty):
        main()
