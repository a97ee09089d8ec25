"""The containers of a static Pod as the kubelet validates them: names, images, ports, variables, mounts, probes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found
from garboard.rules.formats import image_reference, qualified_name
from garboard.rules.pod_resources import check_resources, divisor_problem
from garboard.rules.pod_security import check_security

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_VARIABLE_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_VARIABLE_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_RESOURCE_FIELDS = tuple(
    f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_SIGNALS = re.compile(
    "SIG(ABRT|ALRM|BUS|CHLD|CLD|CONT|FPE|HUP|ILL|INT|IO|IOT|KILL|PIPE|POLL|PROF|PWR|QUIT|SEGV|STKFLT|STOP|SYS|TERM|TRAP"
    "|TSTP|TTIN|TTOU|URG|USR1|USR2|VTALRM|WINCH|XCPU|XFSZ|RTMIN([+]([1-9]|1[0-5]))?|RTMAX(-([1-9]|1[0-4]))?)"
)
_DEFAULT_GRACE_S, _SHORTEST_GRACE_S = 30, 1  # the second is what a negative one is taken for
_MOST_RULES, _MOST_EXIT_CODES = 20, 255


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What the rules of a container need to know of its Pod."""

    spec: DocumentField
    volumes: Mapping[str, DocumentField]  # those without a fault of their own, by name
    volume_names: frozenset[str]

    @property
    def grace_period_s(self) -> int:
        given = self.spec["terminationGracePeriodSeconds"].number
        return _DEFAULT_GRACE_S if given is None else given if given >= 0 else _SHORTEST_GRACE_S


def check_containers(pod: PodFacts) -> Found:
    """Yield what is wrong with containers and init containers."""
    containers, init = pod.spec["containers"], pod.spec["initContainers"]
    if not containers.elements():
        yield containers.finding("required-field", "a Pod needs at least one container")
    for each in containers.elements():
        yield from _check_common(each, pod)
        yield from _check_probes(each, pod)
        yield from _check_restart(each, is_init=False)
        if pod.spec["hostNetwork"].is_true:
            yield from _check_host_ports(each)
    for each in init.elements():
        yield from _check_common(each, pod)
        yield from _check_init(each, pod)
        yield from _host_ports([each])
    yield from _names([*containers.elements(), *init.elements()])
    yield from _host_ports(containers.elements())
    if pod.spec["ephemeralContainers"].elements():
        yield pod.spec["ephemeralContainers"].finding("forbidden-field", "a new Pod cannot have ephemeral containers")


def _names(containers: Iterable[DocumentField]) -> Found:
    seen: set[str] = set()
    for each in containers:
        name = each["name"].text
        if name and name in seen:
            yield each["name"].finding("duplicate-name", f"another container is called {name!r} as well")
        seen.add(name)


def _check_common(container: DocumentField, pod: PodFacts) -> Found:
    if not container["name"].text:
        yield container["name"].finding("required-field", "a container needs a name")
    image = container["image"]
    if not image.text:
        yield image.finding("required-field", "a container needs an image")
    elif image.text != image.text.strip():
        yield image.finding("bad-format", "the image begins or ends with a blank")
    elif image_reference(image.text) is not None:
        yield image.finding("bad-format", f"it {image_reference(image.text)}")
    yield from _check_ports(container)
    for variable in container["env"].elements():
        yield from _check_variable(variable, pod)
    for source in container["envFrom"].elements():
        if sum(source[name].is_given for name in ("configMapRef", "secretRef")) != 1:
            yield source.finding("several-sources", "it needs either configMapRef or secretRef")
    yield from _check_mounts(container, pod)
    yield from check_resources(container["resources"])
    yield from _check_resize(container, pod)
    yield from check_security(container["securityContext"], uses_host_users=not pod.spec["hostUsers"].is_false)


def _check_ports(container: DocumentField) -> Found:
    names: set[str] = set()
    for port in container["ports"].elements():
        name = port["name"].text
        if name and name in names:
            yield port["name"].finding("duplicate-name", f"another port is called {name!r} as well")
        names.add(name)
        if not port["containerPort"].is_given:
            yield port["containerPort"].finding("required-field", "a port needs its number")


def _check_host_ports(container: DocumentField) -> Found:
    """Yield ports that a container of the host's network cannot have."""
    for port in container["ports"].elements():
        number = port["hostPort"].number
        if number and number != port["containerPort"].number:
            message = "with hostNetwork it must be the same number as containerPort"
            yield port["hostPort"].finding("port-mismatch", message)


def _host_ports(containers: Iterable[DocumentField]) -> Found:
    taken: set[tuple[str, str, int]] = set()
    for port in (port for each in containers for port in each["ports"].elements()):
        number = port["hostPort"].number
        if number:
            key = (port["protocol"].text or "TCP", port["hostIP"].text, number)
            if key in taken:
                yield port["hostPort"].finding("duplicate-port", f"{number} of the host is taken by another container")
            taken.add(key)


def _check_variable(variable: DocumentField, pod: PodFacts) -> Found:
    if not variable["name"].text:
        yield variable["name"].finding("required-field", "a variable needs a name")
    source = variable["valueFrom"]
    if not source.is_given:
        return
    given = [name for name in _VARIABLE_SOURCES if source[name].is_given]
    if not given:
        yield source.finding("required-field", f"it needs one of {', '.join(_VARIABLE_SOURCES)}")
    elif variable["value"].text or len(given) > 1:
        yield source.finding("several-sources", "a variable has either a value or one source")
    if source["fieldRef"].is_given:
        yield from check_field_reference(source["fieldRef"], _VARIABLE_FIELDS)
    if source["resourceFieldRef"].is_given:
        yield from check_resource_reference(source["resourceFieldRef"])
    if source["fileKeyRef"].is_given:
        yield from _check_file_reference(source["fileKeyRef"], pod)


def check_field_reference(reference: DocumentField, known: Iterable[str]) -> Found:
    """Yield what is wrong with a field of the Pod that a variable or a file names."""
    path = reference["fieldPath"]
    if not path.text:
        yield path.finding("required-field", "it needs the name of a field")
        return
    if reference["apiVersion"].text not in ("", "v1"):
        yield reference["apiVersion"].finding("unsupported-value", "fields are named as in v1")
    holder, bracket, key = path.text.partition("['")
    if bracket and key.endswith("']") and holder in ("metadata.annotations", "metadata.labels"):
        name = key.removesuffix("']")
        problem = qualified_name(name.lower() if holder.endswith("annotations") else name)
        if problem:
            yield path.finding("bad-name", f"{name!r} {problem}")
    elif path.text not in known:
        yield path.finding("unsupported-value", f"{path.text!r} is none of {', '.join(known)}")


def check_resource_reference(reference: DocumentField, *, is_file: bool = False) -> Found:
    """Yield what is wrong with a resource that a variable or a file names."""
    resource = reference["resource"]
    if is_file and not reference["containerName"].text:
        yield reference["containerName"].finding("required-field", "it needs the name of a container")
    elif not resource.text:
        yield resource.finding("required-field", "it needs the name of a resource")
    elif resource.text not in _RESOURCE_FIELDS and not resource.text.startswith(
        ("requests.hugepages-", "limits.hugepages-")
    ):
        yield resource.finding("unsupported-value", f"{resource.text!r} is none of {', '.join(_RESOURCE_FIELDS)}")
    problem = divisor_problem(resource.text, reference["divisor"].value)
    if problem is not None:
        yield reference["divisor"].finding("unsupported-value", problem)


def _check_file_reference(reference: DocumentField, pod: PodFacts) -> Found:
    for needed in ("key", "volumeName", "path"):
        if not reference[needed].text:
            yield reference[needed].finding("required-field", "a reference to a file needs it")
    name = reference["volumeName"]
    if name.text not in pod.volume_names:
        yield name.finding("missing-volume", f"the Pod has no volume {name.text!r}")
    elif name.text in pod.volumes and not pod.volumes[name.text]["emptyDir"].is_given:
        yield name.finding("unsupported-value", f"the volume {name.text!r} is no emptyDir")


def _check_mounts(container: DocumentField, pod: PodFacts) -> Found:
    paths: set[str] = set()
    devices = {each["name"].text: each["devicePath"].text for each in container["volumeDevices"].elements()}
    is_privileged = container["securityContext"]["privileged"].is_true
    for mount in container["volumeMounts"].elements():
        name, path = mount["name"], mount["mountPath"]
        if not name.text:
            yield name.finding("required-field", "a mount needs the name of a volume")
        elif name.text not in pod.volume_names:
            yield name.finding(
                "missing-volume",
                f"{path.text} mounts the volume {name.text!r}, which the Pod does not have",
                "add it to spec.volumes",
            )
        if not path.text:
            yield path.finding("required-field", "a mount needs a path")
        elif path.text in paths:
            yield path.finding("duplicate-mount-path", f"another volume is mounted at {path.text} as well")
        paths.add(path.text)
        if name.text in devices or (path.text and path.text in devices.values()):
            yield name.finding("forbidden-field", "the volume or path is among the volumeDevices as well")
        yield from _check_mount_options(mount, is_privileged=is_privileged)
    for device in container["volumeDevices"].elements():
        # Block devices come from claims, and a static Pod cannot have those.
        yield device.finding("forbidden-field", "only volumes of claims are devices, and a static Pod has no claims")


def _check_mount_options(mount: DocumentField, *, is_privileged: bool) -> Found:
    if mount["subPath"].text and mount["subPathExpr"].text:
        yield mount["subPathExpr"].finding("several-sources", "subPath and subPathExpr exclude each other")
    propagation = mount["mountPropagation"]
    if propagation.text == "Bidirectional" and not is_privileged:
        yield propagation.finding("forbidden-field", "Bidirectional needs a privileged container")
    recursive = mount["recursiveReadOnly"]
    if recursive.text in ("Enabled", "IfPossible"):
        if not mount["readOnly"].is_true:
            yield recursive.finding("forbidden-field", "it needs readOnly: true")
        if propagation.text not in ("", "None"):
            yield recursive.finding("forbidden-field", "it needs mountPropagation: None")
    options = mount["bindMountOptions"].words
    if len(options) != len(set(options)):
        yield mount["bindMountOptions"].finding("duplicate-name", "an option stands twice")


def _check_resize(container: DocumentField, pod: PodFacts) -> Found:
    seen: set[str] = set()
    for policy in container["resizePolicy"].elements():
        name = policy["resourceName"]
        for each in (name, policy["restartPolicy"]):
            if not each.text:
                yield each.finding("required-field", "a resize policy needs it")
        if name.text in seen:
            yield name.finding("duplicate-name", f"another policy is for {name.text!r} as well")
        seen.add(name.text)
        if pod.spec["restartPolicy"].text == "Never" and policy["restartPolicy"].text != "NotRequired":
            yield policy["restartPolicy"].finding("forbidden-field", "the Pod is never restarted")


def _check_init(container: DocumentField, pod: PodFacts) -> Found:
    is_sidecar = container["restartPolicy"].text == "Always"
    if is_sidecar:
        yield from _check_probes(container, pod)
    else:
        for name in ("lifecycle", *_PROBES):
            if container[name].is_given:
                message = "an init container cannot have it, unless its restartPolicy is Always"
                yield container[name].finding("forbidden-field", message)
        for policy in container["resizePolicy"].elements():
            if policy["restartPolicy"].text == "RestartContainer":
                yield policy["restartPolicy"].finding("forbidden-field", "an init container is not restarted")
    yield from _check_restart(container, is_init=True)


def _check_restart(container: DocumentField, *, is_init: bool) -> Found:
    rules = container["restartPolicyRules"].elements()
    if rules and not container["restartPolicy"].is_given:
        yield container["restartPolicy"].finding("required-field", "restartPolicyRules need it")
    if len(rules) > _MOST_RULES:
        yield container["restartPolicyRules"].finding("out-of-range", f"there are more than {_MOST_RULES} rules")
    if is_init and not container["restartPolicy"].is_given:
        return
    for rule in rules:
        for name in ("action", "exitCodes"):
            if not rule[name].is_given:
                yield rule[name].finding("required-field", "a restart rule needs it")
        codes = rule["exitCodes"]
        if codes.is_given and not codes["operator"].is_given:
            yield codes["operator"].finding("required-field", "exit codes need it")
        if len(codes["values"].elements()) > _MOST_EXIT_CODES:
            yield codes["values"].finding("out-of-range", f"there are more than {_MOST_EXIT_CODES} exit codes")


def _check_probes(container: DocumentField, pod: PodFacts) -> Found:
    for name in _PROBES:
        probe = container[name]
        if not probe.is_given:
            continue
        yield from _check_handler(probe, _PROBE_HANDLERS, pod)
        threshold = probe["successThreshold"]
        if name != "readinessProbe" and threshold.number not in (None, 0, 1) and (threshold.number or 0) > 0:
            yield threshold.finding("out-of-range", f"it must be 1 in a {name}")
        if name == "readinessProbe" and probe["terminationGracePeriodSeconds"].is_given:
            message = "a readinessProbe ends no container"
            yield probe["terminationGracePeriodSeconds"].finding("forbidden-field", message)
    lifecycle = container["lifecycle"]
    for hook in ("postStart", "preStop"):
        if lifecycle[hook].is_given:
            yield from _check_handler(lifecycle[hook], _HOOK_HANDLERS, pod)
    signal = lifecycle["stopSignal"]
    if signal.is_given and not pod.spec["os"].is_given:
        yield signal.finding("forbidden-field", "it needs spec.os.name")
    elif signal.is_given and not _SIGNALS.fullmatch(signal.text):
        yield signal.finding("unsupported-value", f"{signal.text!r} is no signal", "write it as SIGTERM")


def _check_handler(holder: DocumentField, known: tuple[str, ...], pod: PodFacts) -> Found:
    given = [name for name in known if holder[name].is_given]
    if not given:
        yield holder.finding("required-field", f"it needs one of {', '.join(known)}")
        return
    if len(given) > 1:
        yield holder.finding("several-sources", f"it has {' and '.join(given)}, and can have one of them")
    if given[0] == "exec" and not holder["exec"]["command"].elements():
        yield holder["exec"]["command"].finding("required-field", "exec needs a command")
    if given[0] in ("httpGet", "tcpSocket", "grpc") and not holder[given[0]]["port"].is_given:
        yield holder[given[0]]["port"].finding("required-field", f"{given[0]} needs a port")
    if given[0] == "httpGet":
        yield from _check_request(holder["httpGet"])
    seconds = holder["sleep"]["seconds"].number or 0
    if given[0] == "sleep" and not 0 <= seconds <= pod.grace_period_s:
        message = f"it must be between 0 and terminationGracePeriodSeconds ({pod.grace_period_s})"
        yield holder["sleep"]["seconds"].finding("out-of-range", message)


def _check_request(request: DocumentField) -> Found:
    for header in request["httpHeaders"].elements():
        if not header["name"].is_given:
            yield header["name"].finding("required-field", "a header needs a name")
    if request["protocol"].text == "HTTP2":
        if request["scheme"].text not in ("", "HTTP"):
            yield request["protocol"].finding("forbidden-field", "HTTP2 needs the scheme HTTP")
        elif request["host"].text:
            yield request["host"].finding("forbidden-field", "with HTTP2 the host must be empty")
