"""A static Pod, judged as the kubelet does before it starts it: defaults, validation, references to the API."""

from garboard.documents import Json
from garboard.model import KubernetesVersion
from garboard.model.minors import facts_of
from garboard.rules.field_values import check_values
from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found, ResultFinding
from garboard.rules.formats import dns_label, dns_subdomain, qualified_name
from garboard.rules.pod_containers import PodFacts, check_containers
from garboard.rules.pod_resources import check_pod_resources, check_resources
from garboard.rules.pod_scheduling import check_labels, check_scheduling
from garboard.rules.pod_security import check_pod_security
from garboard.rules.pod_volumes import check_references, check_volume
from garboard.schema import load_schema

_LONGEST_HOST_NAME = 64
_NODE = "-node"  # the kubelet adds the name of the node


def check_pod(document: Json, version: KubernetesVersion) -> list[ResultFinding]:
    """Return what the kubelet of a minor refuses in a static Pod; nothing means that it starts it."""
    shape = load_schema(version).type_of("v1", "Pod")
    assert shape is not None, "the type data lacks Pod"
    pod = DocumentField(document)
    found = [*check_values(pod, shape), *_check_metadata(pod["metadata"]), *_check_spec(pod["spec"])]
    found += check_pod_resources(pod["spec"], fills_requests=not _is_gate_on("PodLevelResourcesFixDefaulting", version))
    if facts_of(version).refuses_empty_image_volume:
        found += _check_image_volumes(pod["spec"])
    policy = pod["spec"]["securityContext"]["seLinuxChangePolicy"]
    if policy.text == "MountOption" and not _is_gate_on("SELinuxMount", version):
        found.append(policy.finding("disabled-feature", "MountOption needs the feature gate SELinuxMount"))
    return list(dict.fromkeys(found))


def _is_gate_on(name: str, version: KubernetesVersion) -> bool:
    """Tell whether a feature gate of the kubelet is on, unless somebody sets it."""
    options = load_schema(version).component("kubelet")
    gate = options.feature_gates.get(name) if options else None
    return gate is not None and gate.default


def _check_metadata(metadata: DocumentField) -> Found:
    name, namespace = metadata["name"], metadata["namespace"]
    if not name.text:
        yield name.finding("required-field", "a static Pod needs a name")
    elif dns_subdomain(f"{name.text}{_NODE}") is not None:
        yield name.finding("bad-name", f"{name.text!r} {dns_subdomain(name.text)}")
    if namespace.text and dns_label(namespace.text) is not None:
        yield namespace.finding("bad-name", f"{namespace.text!r} {dns_label(namespace.text)}")
    yield from check_labels(metadata["labels"])
    for key, value in metadata["annotations"].members():
        problem = qualified_name(key.lower())
        if problem is not None:
            yield value.finding("bad-name", f"the key {key!r} {problem}")


def _check_spec(spec: DocumentField) -> Found:
    names: set[str] = set()
    sound: dict[str, DocumentField] = {}
    for volume in spec["volumes"].elements():
        yield from check_volume(volume)
        name = volume["name"].text
        if name and name in names:
            yield volume["name"].finding("duplicate-name", f"another volume is called {name!r} as well")
        names.add(name)
        sound.setdefault(name, volume)
    yield from check_containers(PodFacts(spec, sound, frozenset(names)))
    yield from check_resources(DocumentField({"limits": spec["overhead"].value}, spec.path))
    yield from check_pod_security(spec)
    yield from check_scheduling(spec)
    yield from check_references(spec)
    yield from _check_host(spec)


def _check_image_volumes(spec: DocumentField) -> Found:
    for image in (volume["image"] for volume in spec["volumes"].elements()):
        if image.is_given and not image["reference"].text:
            yield image["reference"].finding("required-field", "a volume of an image needs it")


def _check_host(spec: DocumentField) -> Found:
    override = spec["hostnameOverride"]
    if override.is_given:
        if spec["hostNetwork"].is_true or spec["setHostnameAsFQDN"].is_true:
            yield override.finding("forbidden-field", "hostNetwork and setHostnameAsFQDN exclude it")
        if len(override.text) > _LONGEST_HOST_NAME:
            yield override.finding("out-of-range", f"it has more than {_LONGEST_HOST_NAME} characters")
    system = spec["os"]["name"]
    if spec["os"].is_given and not system.text:
        yield system.finding("required-field", "os needs a name")
    if system.text == "windows":
        yield system.finding("unsupported-value", "the node runs Linux")
    group = spec["schedulingGroup"]
    if group.is_given and not group["podGroupName"].text:
        yield group["podGroupName"].finding("required-field", "a scheduling group needs it")
