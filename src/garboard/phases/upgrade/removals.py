"""What the target of an upgrade refuses and the minor before accepted: flags, feature gates, plugins of CoreDNS.

Everything is looked for in what the upgrade would write, so that patches count; each finding says where it stands, and
how to go on. What already was refused before is none of these: the cluster runs with it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy

from garboard.documents import DocumentPath, Json, read_yaml
from garboard.errors import GarboardError, InvalidValue
from garboard.manifests.corefile import read_corefile
from garboard.manifests.corefile_migration import notices
from garboard.manifests.kubelet import CONFIG_FILE, FLAGS_FILE, config_file
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.model.component import Arg, LocalEtcd
from garboard.model.minors import facts_of
from garboard.phases.gates.control_plane import container_of
from garboard.phases.node.addons import decide_dns, observe_dns
from garboard.phases.static_pods import ETCD
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.control_plane import render_pods
from garboard.rules import ResultFinding, check_flags, check_kubelet, flag_rules, renamed_flag
from garboard.schema import load_schema

# What a kubelet of any age has to be rid of: it may be three minors older than its control plane.
_UNKNOWN = ("unknown-flag", "unknown-feature-gate")
# Where a kubelet finds flags besides those in its unit.
_FLAG_FILES = (FLAGS_FILE, "/etc/default/kubelet", "/etc/sysconfig/kubelet")
_MISSING = "missing-flag"  # files of flags hold only a part of a command line
_STORED = "ConfigMap kube-system/kubeadm-config"
# Plugins of the CoreDNS that Kubernetes comes with; the migration of Corefiles knows only what has changed.
_PLUGINS = frozenset({
    "acl", "any", "auto", "autopath", "azure", "bind", "bufsize", "cache", "cancel", "chaos", "clouddns", "debug",
    "dns64", "dnssec", "dnstap", "erratic", "errors", "etcd", "file", "forward", "geoip", "grpc", "grpc_server",
    "header", "health", "hosts", "https", "https3", "import", "k8s_external", "kubernetes", "loadbalance", "local",
    "log", "loop", "metadata", "minimal", "multisocket", "nomad", "nsid", "on", "pprof", "prometheus", "quic",
    "ready", "reload", "rewrite", "root", "route53", "secondary", "sign", "template", "timeouts", "tls", "trace",
    "transfer", "tsig", "view", "whoami",
})  # fmt: skip

Found = Iterator[tuple[str, bool]]


def removed_flags(context: UpgradeContext) -> Found:
    """Yield what the target refuses of the command lines of static pods, patches included."""
    target, former = context.cluster.release, baseline(context.cluster.release)
    for pod in render_pods(context)[1]:
        if not pod.is_changed:  # it runs like that
            continue
        document = read_yaml(pod.manifest, source=pod.path)
        container = container_of(document, pod.component) if isinstance(document, dict) else {}
        command, args = container.get("command"), container.get("args")
        words = [*(command[1:] if isinstance(command, list) else ()), *(args if isinstance(args, list) else ())]
        given = _extra_args(context, pod.component)
        for finding, word in _refused(pod.component, words, former, target):
            name = _flag_name(word)
            field = given.get(name, "")
            where = f"{field}: {name} in {_STORED}" if field else _patches_with(context, name, "a patch")
            route = "edit the ConfigMap" if field else "edit the patch, and name its directory with --patches"
            yield f"{finding.message} ({where}). {_way(finding, pod.component, name, target, route)}", True


def removed_kubelet_flags(context: UpgradeContext) -> Found:
    """Yield what a kubelet of the target refuses of the flags that this node gives it."""
    target, former = context.cluster.release, baseline(context.cluster.release)
    for path in _FLAG_FILES:
        text = (context.machine.read(path) or b"").decode("utf-8", "replace")
        lines = (line.partition("=")[2] for line in text.splitlines() if not line.lstrip().startswith("#"))
        words: list[Json] = [word for line in lines for word in line.strip().strip("\"'").split()]
        for finding, word in _refused("kubelet", words, former, target, always=_UNKNOWN):
            route = f"edit {path} on this node and restart the kubelet"
            yield f"{finding.message} ({path}). {_way(finding, 'kubelet', _flag_name(word), target, route)}", True


def removed_from_kubelets(context: UpgradeContext) -> Found:
    """Yield what kubelets of the target refuse of their configuration, and what means something else to them."""
    target, former = context.cluster.release, baseline(context.cluster.release)
    stored = context.components.kubelet.printed(context.cluster.facts)
    patches = context.patches.begin(target)
    # The patches change the document that they are given.
    file = config_file(deepcopy(stored), context.cluster, context.node_registration, context.host, patches)
    document = read_yaml(file.content, source=CONFIG_FILE)
    before = {(each.code, each.path) for each in check_kubelet(document, former)}
    for finding in check_kubelet(document, target):
        if (finding.code, finding.path) in before:
            continue
        name = ".".join(map(str, finding.path))
        is_stored = _has(stored, finding.path)
        where = "ConfigMap kube-system/kubelet-config" if is_stored else _patches_with(context, name, "a patch")
        route = "edit the ConfigMap" if is_stored else "edit the patch, and name its directory with --patches"
        yield f"{finding.message} ({name} in {where}). Before the upgrade, {route}", True
    events = document.get("eventRecordQPS") if isinstance(document, dict) else None
    if events == 0 and facts_of(target).has_unlimited_events and not facts_of(former).has_unlimited_events:
        text = (
            f"eventRecordQPS: 0 of the KubeletConfiguration means no limit in {target.as_minor}, and 5 a second before"
        )
        yield f"{text}. Write the limit that is wanted into ConfigMap kube-system/kubelet-config", False


def removed_from_proxies(context: UpgradeContext) -> Found:
    """Yield the feature gates of kube-proxy's configuration that the target does not have."""
    target, former = context.cluster.release, baseline(context.cluster.release)
    gates = context.components.kube_proxy.printed(context.cluster.facts).get("featureGates")
    new, old = (flag_rules(load_schema(each), "kube-proxy") for each in (target, former))
    assert new is not None and old is not None, "the flags of kube-proxy are known"  # noqa: PT018
    for name, value in gates.items() if isinstance(gates, dict) else ():
        wanted = value if isinstance(value, bool) else None
        if not [*old.gate(name, wanted)]:
            for problem in new.gate(name, wanted):
                yield f"{problem.message} (featureGates in ConfigMap kube-system/kube-proxy). Edit the ConfigMap", True


def dns_limits(context: UpgradeContext) -> Found:
    """Yield why CoreDNS, or its Corefile, could not follow to the release of the target."""
    if context.cluster.dns.disabled or context.objects is None:
        return
    try:
        found = observe_dns(context.objects)
        update = decide_dns(found, context.cluster.facts)
    except GarboardError as error:
        yield f"{error.message}. {error.hint or ''}", True
        return
    if update.note and update.note.is_warning:
        yield update.note.text, False
    running, target = found.tag.lstrip("v"), context.cluster.facts.coredns_tag.lstrip("v")
    try:
        gone = [
            str(each) for each in notices(found.corefile, found=running, target=target) if each.severity == "removed"
        ]
        plugins = {each.name for server in read_corefile(found.corefile) for each in server.plugins}
    except InvalidValue:  # told above if it matters
        return
    yield from ((f"Corefile: {text} It is migrated; Corefile-backup keeps the present one", False) for text in gone)
    if others := sorted(plugins - _PLUGINS):
        text = f"the CoreDNS of Kubernetes does not have the plugins {', '.join(others)} of the Corefile"
        yield f"{text}. Set dns.imageRepository and dns.imageTag in {_STORED} to an image that has them", False


def baseline(target: KubernetesVersion) -> KubernetesVersion:
    """Return the release of the minor before the target's, or the target where none is known.

    On a second node the cluster already has the version of the target, and its own components do not.
    """
    older = [each for each in SUPPORTED_VERSIONS if each.as_minor < target.as_minor]
    return max(older, default=target)


def _refused(
    program: str,
    words: Sequence[Json],
    former: KubernetesVersion,
    target: KubernetesVersion,
    always: Sequence[str] = (),
) -> Iterator[tuple[ResultFinding, str]]:
    """Yield what the target refuses of a command line, and the word, unless the minor before did so as well.

    Codes of `always` count all the same.
    """
    known = [each for each in check_flags(program, words, former) if each.code not in always]
    before = {(each.code, what) for each in known for what in (each.path, each.message)}
    seen = set[DocumentPath]()  # one finding for each word is enough
    for finding in check_flags(program, words, target):
        if finding.code == _MISSING or finding.path in seen:
            continue
        if (finding.code, finding.path) in before or (finding.code, finding.message) in before:
            continue
        seen.add(finding.path)
        index = finding.path[0] if finding.path else None
        yield finding, str(words[index]) if isinstance(index, int) else ""


def _way(finding: ResultFinding, program: str, name: str, target: KubernetesVersion, route: str) -> str:
    renamed = renamed_flag(program, name, target) if finding.code == "unknown-flag" else ""
    if renamed:
        return f"Before the upgrade, {route}: {renamed} has replaced it, and the present minor knows it too"
    what = {"unknown-flag": "the flag", "unknown-feature-gate": "the feature gate"}.get(finding.code, "what is refused")
    return f"Before the upgrade, {route}, so that it is without {what}"


def _extra_args(context: UpgradeContext, component: str) -> Mapping[str, str]:
    """Return the names of the arguments that the stored configuration gives a component, with their field."""
    cluster = context.cluster
    of: dict[str, tuple[str, Iterable[Arg]]] = {
        "kube-apiserver": ("apiServer.extraArgs", cluster.api_server.extra_args),
        "kube-controller-manager": ("controllerManager.extraArgs", cluster.controller_manager.extra_args),
        "kube-scheduler": ("scheduler.extraArgs", cluster.scheduler.extra_args),
    }
    if isinstance(cluster.etcd, LocalEtcd):
        of[ETCD] = ("etcd.local.extraArgs", cluster.etcd.extra_args)
    field, args = of.get(component, ("", ()))
    return {each.name: field for each in args}


def _patches_with(context: UpgradeContext, name: str, otherwise: str) -> str:
    """Return the patch files in which a name occurs."""
    files = context.patches.list_files() if context.patches.list_files else ()
    last = name.rpartition(".")[2].encode()
    return ", ".join(each.shown for each in files if last in each.load()) or otherwise


def _flag_name(word: str) -> str:
    return word.partition("=")[0].removeprefix("--")


def _has(document: Json, path: Iterable[str | int]) -> bool:
    value = document
    for key in path:
        if not (isinstance(value, dict) and isinstance(key, str) and key in value):
            return False
        value = value[key]
    return True


REMOVALS: Mapping[str, Callable[[UpgradeContext], Found]] = {
    "ComponentFlags": removed_flags,
    "KubeletConfiguration": removed_from_kubelets,
    "KubeProxyConfiguration": removed_from_proxies,
    "CoreDNSMigration": dns_limits,
}
