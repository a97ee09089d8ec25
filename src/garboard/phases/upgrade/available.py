"""To which versions a cluster can be upgraded, as `upgrade plan` shows it: kubeadm's content, without a network.

What garboard knows by itself are the releases that it is made for: the newest of the cluster's minor and the next one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from garboard.config.component_configs import KUBE_PROXY_API, KUBELET_API
from garboard.documents import Json
from garboard.engine import Note
from garboard.errors import GarboardError
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.model.cluster import coredns_image, etcd_image, tag_of
from garboard.model.component import LocalEtcd
from garboard.model.minors import SUPPORTED_VERSIONS
from garboard.model.version import KubernetesVersion
from garboard.phases.node.addons import observe_dns
from garboard.phases.static_pods import ETCD
from garboard.phases.upgrade.cluster import KUBE_PROXY, Objects, UpgradedCluster
from garboard.phases.upgrade.context import UpgradeContext
from garboard.values import dataclass

_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_MANUAL = "Components that must be upgraded manually after you have upgraded the control plane with"
_CONFIGS = """\
The table below shows the current state of component configs as understood by this version of garboard.
Configs that have a "yes" mark in the "MANUAL UPGRADE REQUIRED" column require manual config upgrade or
resetting to kubeadm defaults before a successful upgrade can be performed. The version to manually
upgrade to is denoted in the "PREFERRED VERSION" column.
"""
_RULE = f"{'_' * 69}\n"


@dataclass(frozen=True, slots=True)
class ComponentUpgrade:
    """A component with the version that it has and the one that it would have; of one node, or of all."""

    name: str
    current: str
    new: str
    node: str = ""

    def as_json(self) -> dict[str, Json]:
        node: dict[str, Json] = {"nodeName": self.node} if self.node else {}
        return {"name": self.name, "currentVersion": self.current, "newVersion": self.new, **node}


@dataclass(frozen=True, slots=True)
class AvailableUpgrade:
    """A version that a cluster can be upgraded to."""

    description: str
    target: str
    components: tuple[ComponentUpgrade, ...]


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """What `upgrade plan` tells: the versions, and what `upgrade apply` to the last of them would come upon."""

    cluster: str
    upgrades: tuple[AvailableUpgrade, ...]
    notes: tuple[Note, ...] = ()
    errors: tuple[GarboardError, ...] = ()
    restarts: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """Return kubeadm's UpgradePlan, and beside its fields what would break."""
        errors: list[Json] = [
            {"text": each.message, "class": each.error_class, "isError": True} for each in self.errors
        ]
        warnings: list[Json] = [{"text": each.text, "isError": False} for each in self.notes if each.is_warning]
        return {
            "kind": "UpgradePlan",
            "apiVersion": "output.kubeadm.k8s.io/v1alpha3",
            "availableUpgrades": [
                {"description": each.description, "components": [part.as_json() for part in each.components]}
                for each in self.upgrades
            ],
            "configVersions": [
                {
                    "group": group,
                    "currentVersion": version,
                    "preferredVersion": version,
                    "manualUpgradeRequired": False,
                }
                for group, version in _config_versions()
            ],
            "findings": [*errors, *warnings],
            "restarts": [*self.restarts],
        }

    def as_text(self) -> str:
        lines = [f"[upgrade/versions] Cluster version: {self.cluster.removeprefix('v')}\n"]
        if not self.upgrades:
            lines.append(f"There is nothing to upgrade to: {self.cluster} is the newest version known here.\n")
        for each in self.upgrades:
            lines += ["\n", *_upgrade_text(each)]
        if self.upgrades:
            lines += ["\n", *_findings_text(self)]
        return "".join((*lines, "\n", _CONFIGS, "\n", *_config_table()))


def candidates(cluster: KubernetesVersion) -> tuple[tuple[str, KubernetesVersion], ...]:
    """Return the versions that a cluster can go to, each with kubeadm's description of it."""
    same = [each for each in SUPPORTED_VERSIONS if each.as_minor == cluster.as_minor and each > cluster]
    newer = [each for each in SUPPORTED_VERSIONS if (each.major, each.minor) == (cluster.major, cluster.minor + 1)]
    series = series_of(cluster)
    return (*((series, each) for each in same), *(("stable version", each) for each in newer))


def series_of(cluster: KubernetesVersion) -> str:
    """Return how kubeadm describes a version that was asked for."""
    return f"version in the v{cluster.major}.{cluster.minor} series"


def available(
    context: UpgradeContext, objects: Objects, targets: Sequence[tuple[str, KubernetesVersion]]
) -> tuple[AvailableUpgrade, ...]:
    """Return what each component of the cluster would go to, with each target."""
    return tuple(
        AvailableUpgrade(description, str(target), tuple(_components(context.upgraded, objects, str(target))))
        for description, target in targets
    )


def _components(upgraded: UpgradedCluster, objects: Objects, target: str) -> Iterator[ComponentUpgrade]:
    cluster = replace(upgraded.former, kubernetes_version=target)
    for name, version in sorted(upgraded.kubelets.items()):
        yield ComponentUpgrade("kubelet", str(version), target, name)
    running = _running_tags(objects)
    for component in _CONTROL_PLANE:
        for node, tag in running.get(component, {}).items():
            yield ComponentUpgrade(component, tag, target, node)
    proxy = objects.find("DaemonSet", KUBE_SYSTEM, KUBE_PROXY)
    if proxy is not None and not cluster.is_proxy_disabled:
        yield ComponentUpgrade("kube-proxy", _template_tag(proxy), target)
    dns = observe_dns(objects)
    if dns.tag and not cluster.dns.disabled:
        yield ComponentUpgrade("CoreDNS", dns.tag, tag_of(coredns_image(cluster)))
    if isinstance(cluster.etcd, LocalEtcd):
        for node, tag in running.get(ETCD, {}).items():
            yield ComponentUpgrade(ETCD, tag, tag_of(etcd_image(cluster)), node)


def _running_tags(objects: Objects) -> dict[str, dict[str, str]]:
    """Return the tags of the images that control planes run, by component and node."""
    found: dict[str, dict[str, str]] = {}
    for pod in objects.labelled("Pod", KUBE_SYSTEM, "tier=control-plane"):
        labels, spec = _mapping(_mapping(pod.get("metadata")).get("labels")), _mapping(pod.get("spec"))
        nodes = found.setdefault(str(labels.get("component")), {})
        nodes[str(spec.get("nodeName"))] = tag_of(_first_image(spec))
    return {component: dict(sorted(nodes.items())) for component, nodes in found.items()}


def _template_tag(workload: Mapping[str, Json]) -> str:
    template = _mapping(_mapping(workload.get("spec")).get("template"))
    return tag_of(_first_image(_mapping(template.get("spec"))))


def _first_image(spec: Mapping[str, Json]) -> str:
    containers = spec.get("containers")
    first = containers[0] if isinstance(containers, list) and containers else None
    return str(_mapping(first).get("image") or "")


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _config_versions() -> Iterator[tuple[str, str]]:
    for api_version in (KUBE_PROXY_API, KUBELET_API):
        group, _, version = api_version.partition("/")
        yield group, version


def _upgrade_text(upgrade: AvailableUpgrade) -> Iterator[str]:
    manual = [each for each in upgrade.components if each.name == "kubelet"]
    if manual:
        yield f"{_MANUAL} 'garboard upgrade apply':\n"
        yield from _component_table(manual)
        yield "\n"
    yield f"Upgrade to the latest {upgrade.description}:\n\n"
    yield from _component_table([each for each in upgrade.components if each.name != "kubelet"])
    yield "\nYou can now apply the upgrade by executing the following command:\n\n"
    yield f"\tgarboard upgrade apply {upgrade.target}\n\n{_RULE}"


def _findings_text(report: UpgradeReport) -> Iterator[str]:
    target = report.upgrades[-1].target
    if report.errors:
        yield f"An upgrade to {target} would stop before anything is changed:\n"
        for each in report.errors:
            yield f"  [{each.error_class}] {each.message}\n"
            if each.hint:
                yield f"  hint: {each.hint}\n"
    else:
        restarts = ", ".join(report.restarts) or "nothing"
        yield f"Nothing stops an upgrade to {target}. On this node it restarts {restarts}; upgrade diff shows why.\n"
    yield from (f"  warning: {each.text}\n" for each in report.notes if each.is_warning)


def _component_table(components: Sequence[ComponentUpgrade]) -> list[str]:
    rows = [(each.name, each.node, each.current, each.new) for each in components]
    return _table((("COMPONENT", "NODE", "CURRENT", "TARGET"), *rows))


def _config_table() -> list[str]:
    heads = ("API GROUP", "CURRENT VERSION", "PREFERRED VERSION", "MANUAL UPGRADE REQUIRED")
    return [*_table((heads, *((group, version, version, "no") for group, version in _config_versions()))), _RULE]


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("   ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)
    return [f"{line.rstrip()}\n" for line in lines]
