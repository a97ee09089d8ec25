"""The kubelet's package, which is the package manager's: the node drained and back, and the commands between."""

from collections.abc import Iterator

from garboard.documents import Json
from garboard.engine import AwaitGate, ControlService, Note, ShowMessage, Step
from garboard.errors import BadDocument, GarboardError, NotReady
from garboard.model.version import KubernetesVersion
from garboard.phases.gates import NodeReady
from garboard.phases.node.draining import NodeScheduling, plan_drain, plan_uncordon
from garboard.phases.node.kubelet import KUBELET, wait_for_kubelet
from garboard.phases.upgrade.context import UpgradeContext

OS_RELEASE = "/etc/os-release"
_READY_WITHIN_S = 120.0
# What replaces the programs, by the family of a distribution.
_INSTALL = {
    "debian": "apt-get update && apt-get install -y --allow-change-held-packages 'kubelet={0}-*' 'kubectl={0}-*'",
    "fedora": "dnf install -y --disableexcludes=kubernetes kubelet-{0} kubectl-{0}",
    "suse": "zypper --non-interactive install --oldpackage kubelet-{0} kubectl-{0}",
}
_FAMILIES = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "sles": "suse", "opensuse": "suse"}
_OTHERWISE = "# replace /usr/bin/kubelet and /usr/bin/kubectl by those of v{0}"
_TEXT = """
The kubelet of {node} is {running}. Its package brings it to {target}; where the package manager runs:

  {drain}
  # on {node}, as root:
  {install}
  systemctl daemon-reload && systemctl restart kubelet
  {uncordon}
"""


def plan_out_of_service(context: UpgradeContext) -> Iterator[Step | Note]:
    """Plan the drain that was asked for; the Node of an owner who had cordoned it stays cordoned in the end."""
    if context.options.drains:
        yield from plan_drain(_scheduling(context), "--drain was given: the kubelet is restarted without its pods")


def plan_back_in_service(context: UpgradeContext) -> Iterator[Step | Note]:
    """Plan that the drained node takes up its kubelet, as it then is on disk, and pods come to it again."""
    if context.options.drains:
        if context.machine.has_service_manager():
            restart = ControlService(service=KUBELET, verb="restart", is_needed=False)
            yield Step(restart, "its configuration, or its package, has changed")
            yield from wait_for_kubelet(context, "it was restarted")
            ready = NodeReady(node_name=context.node_name, timeout_s=_READY_WITHIN_S)
            yield Step(AwaitGate(gate=ready), "pods come to it next")
        yield from plan_uncordon(_scheduling(context), "what --drain was given for is done")
    yield from _commands(context)


def _commands(context: UpgradeContext) -> Iterator[Step]:
    """Yield the commands for a kubelet that is older than the target."""
    running = _running(context)
    if running is None or running >= context.cluster.release:
        return
    if context.options.drains and _is_installed(context):  # it was restarted above
        return
    name, target = context.node_name, context.cluster.release
    scheduling = _scheduling(context)
    text = _TEXT.format(
        node=name,
        running=running,
        target=target,
        drain=f"kubectl drain {name} --ignore-daemonsets --delete-emptydir-data",
        install=install_command((context.machine.read(OS_RELEASE) or b"").decode("utf-8", "replace"), target),
        uncordon=f"# {name} was cordoned before, and stays so"
        if scheduling.is_cordoned
        else f"kubectl uncordon {name}",
    )
    yield Step(ShowMessage(about="how the kubelet's package is upgraded", text=text), "it is the package manager's")


def install_command(os_release: str, target: KubernetesVersion) -> str:
    """Return the command that installs the programs of a release, by what /etc/os-release says."""
    fields = dict(line.partition("=")[::2] for line in os_release.splitlines())
    names = " ".join(fields.get(key, "").strip().strip("\"'") for key in ("ID", "ID_LIKE")).split()
    family = next((_FAMILIES.get(each, each) for each in names if _FAMILIES.get(each, each) in _INSTALL), "")
    return _INSTALL.get(family, _OTHERWISE).format(str(target).removeprefix("v"))


def _running(context: UpgradeContext) -> KubernetesVersion | None:
    status = _node(context).get("status")
    info = status.get("nodeInfo") if isinstance(status, dict) else None
    version = info.get("kubeletVersion") if isinstance(info, dict) else None
    try:
        return KubernetesVersion.parse(str(version).partition("-")[0].partition("+")[0])
    except BadDocument:
        return None


def _is_installed(context: UpgradeContext) -> bool:
    try:
        installed = context.inspector.kubelet_version() if context.inspector else ""
        return KubernetesVersion.parse(installed) >= context.cluster.release
    except GarboardError:
        return False


def _scheduling(context: UpgradeContext) -> NodeScheduling:
    return NodeScheduling.read(_node(context))


def _node(context: UpgradeContext) -> dict[str, Json]:
    assert context.objects is not None, "an upgrade is planned with a cluster"
    found = context.objects.find("Node", "", context.node_name)
    if found is None:
        raise NotReady(f"the cluster has no Node {context.node_name}", hint="kubectl get nodes")
    return found
