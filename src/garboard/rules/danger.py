"""What a cluster loses when one of its components is changed: the document before, and the document after."""

import re
from collections.abc import Mapping

from garboard.documents import Json
from garboard.rules.control_plane import ComponentPod, Mount
from garboard.rules.danger_flags import weakened_flags
from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found, ResultFinding
from garboard.rules.probes import weakened_probes
from garboard.rules.workload import pod_of, template_findings
from garboard.schema import Schema

_CRITICAL, _CRITICAL_PRIORITY = "system-node-critical", 2_000_001_000
_PREFIX = "kubeadm.kubernetes.io/"
# Labels and annotations by which kubeadm finds a component and its addresses.
_MARKS: Mapping[str, tuple[str, ...]] = {
    "labels": ("component", "tier"),
    "annotations": (f"{_PREFIX}etcd.advertise-client-urls", f"{_PREFIX}kube-apiserver.advertise-address.endpoint"),
}
# Images that are no component, whatever their registry is.
_IMAGES = ("pause", "coredns", "etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler")
_ANY_NODE = {"kubernetes.io/os": "linux"}
_STATIC = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def weakened(before: Json, after: Json, component: str, schema: Schema) -> list[ResultFinding]:
    """Return what the Pod of a component loses from `before` to `after`."""
    old = ComponentPod(DocumentField(before)["spec"], component, schema)
    new = ComponentPod(DocumentField(after)["spec"], component, schema)
    if old.main is not None and new.main is None:
        message = f"there is no container {component!r} any more"
        return [new.spec["containers"].finding("container-removed", message)]
    lines = (old.line, new.line)
    return [
        *_check_identity(DocumentField(before)["metadata"], DocumentField(after)["metadata"]),
        *_check_program(old, new),
        *_check_image(old, new),
        *(weakened_flags(lines[0], lines[1]) if lines[0] is not None and lines[1] is not None else ()),
        *weakened_probes(old, new),
        *_check_mounts(old, new),
        *_check_pod(old, new),
        *_check_user(old, new),
        *(_check_start(old, new) if component in _STATIC else ()),
    ]


def _check_identity(old: DocumentField, new: DocumentField) -> Found:
    for name in ("name", "namespace"):
        if old[name].text and old[name].text != new[name].text:
            yield new[name].finding("object-renamed", f"it was {old[name].text!r}")
    for kind, names in _MARKS.items():
        for name in names:
            before, after = old[kind][name], new[kind][name]
            if before.text and before.text != after.text:
                message = f"{name}: kubeadm finds the component by it"
                yield ResultFinding("mark-removed", after.path, message, None, bool(after.text) and kind != "labels")


def _check_program(old: ComponentPod, new: ComponentPod) -> Found:
    if new.main is not None and old.program == old.component and new.program != old.component:
        runs = f"the program {new.program!r}" if new.program else "whatever its image says"
        yield new.main["command"].finding("program-changed", f"the container runs {runs} instead of {old.component}")


def _check_image(old: ComponentPod, new: ComponentPod) -> Found:
    if old.main is None or new.main is None or old.main["image"].text == new.main["image"].text:
        return
    image = new.main["image"]
    (was, had), (name, tag) = (_name_and_version(pod.main["image"].text) for pod in (old, new) if pod.main)
    if name in _IMAGES and name != was:
        yield image.finding("image-changed", f"{name} is no image of {old.component}")
    elif had and tag and tag != had:
        is_other_minor = tag.split(".")[:2] != had.split(".")[:2]
        found = image.finding("image-changed", f"its version is {tag}, and that of the cluster {had}")
        yield ResultFinding(found.code, found.path, found.message, found.hint, not is_other_minor)


def _name_and_version(image: str) -> tuple[str, str]:
    """Return the last part of the name of an image, and the version that its tag begins with, if it has one."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    found = re.match(r"v?(\d+\.\d+\.\d+)", tag)
    return name, found[1] if found else ""


def _check_mounts(old: ComponentPod, new: ComponentPod) -> Found:
    left = {mount.path: mount for mount in new.mounts()}
    gone: list[Mount] = []
    for mount in old.mounts():
        other = left.get(mount.path)
        if other is None:
            gone.append(mount)
        elif other.host_path != mount.host_path and mount.host_path:
            message = f"{mount.path} shows {other.host_path or 'another volume'} instead of {mount.host_path}"
            yield other.at["mountPath"].finding("mount-changed", message)
        elif other.below != mount.below:
            yield other.at.finding("mount-changed", f"{mount.path} shows {other.below or 'the whole'} of the volume")
        elif other.at["readOnly"].is_true and not mount.at["readOnly"].is_true:
            yield other.at["readOnly"].finding("mount-changed", f"{mount.path} cannot be written any more")
    if gone and new.main is not None:
        paths = ", ".join(mount.path for mount in gone)
        yield new.main["volumeMounts"].finding("mount-removed", f"the component no longer sees {paths}")


def _check_pod(old: ComponentPod, new: ComponentPod) -> Found:
    if old.spec["hostNetwork"].is_true and not new.spec["hostNetwork"].is_true:
        yield new.spec["hostNetwork"].finding("host-network-off", "the component leaves the network of its node")
    if new.spec["restartPolicy"].text in ("Never", "OnFailure") and old.spec["restartPolicy"].text in ("", "Always"):
        yield new.spec["restartPolicy"].finding("restart-off", "the kubelet does not restart the component")
    if old.spec["priorityClassName"].text == _CRITICAL and new.spec["priorityClassName"].text != _CRITICAL:
        yield new.spec["priorityClassName"].finding("priority-lowered", f"it was {_CRITICAL}")
    if old.main is None or new.main is None:
        return
    policy = new.main["restartPolicy"]
    if policy.text in ("Never", "OnFailure") and old.main["restartPolicy"].text in ("", "Always"):
        yield policy.finding("restart-off", "the kubelet does not restart the component")
    before, after = (pod.main["securityContext"]["privileged"] for pod in (old, new) if pod.main is not None)
    if after.is_true and not before.is_true:
        yield after.finding("privileged-container", "the component gets all rights on its node")


def _check_user(old: ComponentPod, new: ComponentPod) -> Found:
    """Yield a user as which the component cannot run: its image runs as root, and so do its files belong to root."""
    if new.component not in (*_STATIC, "kube-proxy"):
        return
    (_, was), (not_root, user) = (_user(pod) for pod in (old, new))
    if not_root.is_true and not user.number:
        yield not_root.finding("user-changed", "its image runs as root, so the kubelet does not start the container")
    elif user.number and user.number != was.number:
        yield user.finding("user-changed", "the keys and data of the component are root's, and nobody else reads them")


def _user(pod: ComponentPod) -> tuple[DocumentField, DocumentField]:
    """Return whether a component must not be root, and who it is: its container says it, else the Pod."""
    contexts = [] if pod.main is None else [pod.main["securityContext"]]
    contexts.append(pod.spec["securityContext"])
    not_root, user = (
        next((each[name] for each in contexts if each[name].is_given), contexts[-1][name])
        for name in ("runAsNonRoot", "runAsUser")
    )
    return not_root, user


def _check_start(old: ComponentPod, new: ComponentPod) -> Found:
    """Yield fields with which the kubelet does not start a static Pod, or does not keep it running."""
    deadline, handler = new.spec["activeDeadlineSeconds"], new.spec["runtimeClassName"]
    if deadline.is_given and not old.spec["activeDeadlineSeconds"].is_given:
        yield deadline.finding("pod-blocked", "the kubelet ends the Pod for good when this time is over")
    if handler.text and handler.text != old.spec["runtimeClassName"].text:
        yield handler.finding("pod-blocked", "the kubelet asks the API server for it, which may not run yet")
    known = {**_ANY_NODE, **{name: each.text for name, each in old.spec["nodeSelector"].members()}}
    for name, each in new.spec["nodeSelector"].members():
        if known.get(name) != each.text:
            yield each.finding("pod-blocked", "a kubelet whose node has no such label refuses the Pod")
    required = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if new.spec.at(*required).is_given and not old.spec.at(*required).is_given:
        yield new.spec.at(*required).finding("pod-blocked", "a kubelet whose node does not fit refuses the Pod")
    priority = new.spec["priority"]
    is_kept = priority.number in (None, _CRITICAL_PRIORITY, old.spec["priority"].number)
    if new.spec["priorityClassName"].text == _CRITICAL and not is_kept:
        message = f"that of {_CRITICAL} is {_CRITICAL_PRIORITY}, and the API server refuses the mirror of the Pod"
        yield priority.finding("priority-lowered", message)


def weakened_workload(before: Json, after: Json, component: str, schema: Schema) -> list[ResultFinding]:
    """Return what a Deployment or DaemonSet of the cluster loses: in its Pods, and by its own name and number."""
    old, new = DocumentField(before), DocumentField(after)
    found = [*_check_identity(old["metadata"], new["metadata"])]
    replicas = new["spec"]["replicas"]
    if replicas.number == 0 and old["spec"]["replicas"].number != 0:
        found.append(replicas.finding("cluster-dns-removed", "nothing runs that answers"))
    template = old.at("spec", "template")
    found += _check_addon(template["spec"], new.at("spec", "template", "spec"), component)
    pod = pod_of(template)
    return [*found, *template_findings(new, lambda result: weakened(pod, result, component, schema))]


def _check_addon(old: DocumentField, new: DocumentField, component: str) -> Found:
    """Yield what an addon cannot work without: its rights, and for kube-proxy every node."""
    account = new["serviceAccountName"]
    if old["serviceAccountName"].text and old["serviceAccountName"].text != account.text:
        yield account.finding("addon-weakened", f"the addon loses the rights of {old['serviceAccountName'].text!r}")
    if component != "kube-proxy":
        return
    names = [each["name"].text for each in new["containers"].elements()]
    if component in names and _is_privileged(old, component) and not _is_privileged(new, component):
        yield new["containers"].finding("addon-weakened", "kube-proxy may no longer change the network of its node")
    if _tolerates_all(old) and not _tolerates_all(new):
        yield new["tolerations"].finding("addon-weakened", "kube-proxy leaves the nodes that have other taints")
    known = {name: each.text for name, each in old["nodeSelector"].members()}
    for name, each in new["nodeSelector"].members():
        if known.get(name) != each.text:
            yield each.finding("addon-weakened", "kube-proxy leaves the nodes without this label")


def _is_privileged(spec: DocumentField, name: str) -> bool:
    containers = [each for each in spec["containers"].elements() if each["name"].text == name]
    return any(each["securityContext"]["privileged"].is_true for each in containers)


def _tolerates_all(spec: DocumentField) -> bool:
    found = spec["tolerations"].elements()
    return any(each["operator"].text == "Exists" and not each["key"].text and not each["effect"].text for each in found)
