"""Deployments and DaemonSets as the API server judges them: the workload itself, and its template as a Pod."""

import re
from collections.abc import Callable, Iterable, Mapping

from garboard.documents import DocumentPath, Json
from garboard.model import KubernetesVersion
from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found, ResultFinding
from garboard.rules.formats import dns_label, dns_subdomain, label_value, local_path, qualified_name
from garboard.rules.pod import check_pod
from garboard.rules.pod_scheduling import check_labels

TEMPLATE: DocumentPath = ("spec", "template")
_STRATEGIES = {"Deployment": ("strategy", "Recreate"), "DaemonSet": ("updateStrategy", "OnDelete")}
# Of maxUnavailable and maxSurge.
_DEFAULTS: Mapping[str, tuple[Json, Json]] = {"Deployment": ("25%", "25%"), "DaemonSet": (1, 0)}
_DEFAULT_DEADLINE_S = 600
_MOST_MODE, _MOST_USER = 0o777, 2**31 - 1
_OF_STATIC_PODS: DocumentPath = ("spec", "schedulingGates")  # which are bound to their node
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
# What a volume of the API cannot do without.
_NAMES = {"configMap": "name", "secret": "secretName", "persistentVolumeClaim": "claimName", "csi": "driver"}
_REFERENCES = ("configMapKeyRef", "secretKeyRef", "configMapRef", "secretRef")


def check_workload(document: Json, kind: str, version: KubernetesVersion) -> list[ResultFinding]:
    """Return what the API server of a minor refuses in a Deployment or DaemonSet."""
    workload = DocumentField(document)
    found = [
        *_check_metadata(workload["metadata"]),
        *_check_numbers(workload["spec"], kind),
        *_check_strategy(workload["spec"], kind),
        *_check_selector(workload["spec"], kind),
        *_check_template(workload["spec"]["template"]),
        *template_findings(workload, lambda pod: check_pod(pod, version)),
    ]
    return list(dict.fromkeys(found))


def template_findings(workload: DocumentField, judge: Callable[[Json], Iterable[ResultFinding]]) -> Found:
    """Yield what is wrong with the template as a Pod, at its place; objects of the API are allowed to it."""
    template = workload.at("spec", "template")
    for each in judge(pod_of(template)):
        if each.code != "api-reference" and each.path != _OF_STATIC_PODS:
            yield ResultFinding(each.code, (*TEMPLATE, *each.path), each.message, each.hint)


def pod_of(template: DocumentField) -> Json:
    """Return the Pod that a template makes; its name is not the template's to give."""
    metadata = template["metadata"].value
    members = metadata if isinstance(metadata, dict) else {}
    given = template["spec"].value
    spec = given if isinstance(given, dict) else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**members, "name": "pod", "namespace": ""}, "spec": spec}


def _check_metadata(metadata: DocumentField) -> Found:
    name, namespace = metadata["name"], metadata["namespace"]
    if not name.text:
        yield name.finding("required-field", "an object needs a name")
    elif dns_subdomain(name.text) is not None:
        yield name.finding("bad-name", f"{name.text!r} {dns_subdomain(name.text)}")
    if not namespace.text:
        yield namespace.finding("required-field", "an object of this kind is in a namespace")
    elif dns_label(namespace.text) is not None:
        yield namespace.finding("bad-name", f"{namespace.text!r} {dns_label(namespace.text)}")
    yield from check_labels(metadata["labels"])


def _check_numbers(spec: DocumentField, kind: str) -> Found:
    names = ("replicas",) if kind == "Deployment" else ()
    for each in (spec[name] for name in (*names, "minReadySeconds", "revisionHistoryLimit")):
        if (each.number or 0) < 0:
            yield each.finding("out-of-range", "it must not be negative")
    if kind == "Deployment":
        deadline = spec["progressDeadlineSeconds"]
        seconds = _DEFAULT_DEADLINE_S if deadline.number is None else deadline.number
        if seconds <= (spec["minReadySeconds"].number or 0):
            yield deadline.finding("out-of-range", "it must be above minReadySeconds")


def _check_strategy(spec: DocumentField, kind: str) -> Found:
    name, other = _STRATEGIES[kind]
    strategy = spec[name]
    rolling = strategy["rollingUpdate"]
    if strategy["type"].text == other:
        if kind == "Deployment" and rolling.is_given:
            yield rolling.finding("forbidden-field", f"the type {other} excludes it")
        return
    if strategy["type"].text not in ("", "RollingUpdate"):
        yield strategy["type"].finding("unsupported-value", f"it is none of {other}, RollingUpdate")
        return
    counts = {}
    for field, default in zip(("maxUnavailable", "maxSurge"), _DEFAULTS[kind], strict=True):
        value = rolling[field].value
        counts[field] = _count(default if value is None else value)
        if counts[field] is None:
            yield rolling[field].finding("bad-format", "it must be a number or a percentage, such as 25%")
        elif _is_above_all(value) and (field == "maxUnavailable" or kind == "DaemonSet"):
            yield rolling[field].finding("out-of-range", "it must not be above 100%")
    unavailable, surge = counts["maxUnavailable"], counts["maxSurge"]
    if unavailable == 0 and surge == 0:
        yield rolling["maxUnavailable"].finding("out-of-range", "it cannot be zero if maxSurge is zero as well")
    if kind == "DaemonSet" and unavailable and surge:
        yield rolling["maxSurge"].finding("forbidden-field", "it must be zero unless maxUnavailable is")


def _count(value: Json) -> int | None:
    """Return a number, or that of a percentage; nothing if it is neither, or negative."""
    if isinstance(value, str):
        return int(value[:-1]) if re.fullmatch("[0-9]+%", value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _is_above_all(value: Json) -> bool:
    return isinstance(value, str) and (_count(value) or 0) > 100


def _check_selector(spec: DocumentField, kind: str) -> Found:
    selector, labels = spec["selector"], spec["template"]["metadata"]["labels"]
    if not selector.is_given:
        yield selector.finding("required-field", f"a {kind} needs it")
        return
    wanted = dict(selector["matchLabels"].members())
    expressions = selector["matchExpressions"].elements()
    if not wanted and not expressions:
        yield selector.finding("required-field", "an empty selector selects nothing")
    for key, value in wanted.items():
        if qualified_name(key) is not None or label_value(value.text) is not None:
            yield value.finding("bad-name", f"{key!r} is no label, or its value is none")
    for each in expressions:
        yield from _check_expression(each)
    given = {key: value.text for key, value in labels.members()}
    if not all(given.get(key) == value.text for key, value in wanted.items()) or not all(
        _is_met(each, given) for each in expressions
    ):
        yield labels.finding("selector-mismatch", "the selector does not match the labels of the template")


def _check_expression(expression: DocumentField) -> Found:
    operator, values = expression["operator"], expression["values"]
    if qualified_name(expression["key"].text) is not None:
        yield expression["key"].finding("bad-name", f"{expression['key'].text!r} is no label")
    if operator.text not in _OPERATORS:
        yield operator.finding("unsupported-value", f"it is none of {', '.join(_OPERATORS)}")
    elif bool(values.elements()) != operator.text.endswith("In"):
        yield values.finding("required-field", f"{operator.text} {'needs' if not values.value else 'has no'} values")
    for each in values.elements():
        if label_value(each.text) is not None:
            yield each.finding("bad-name", f"{each.text!r} {label_value(each.text)}")


def _is_met(expression: DocumentField, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"].text), expression["values"].words
    match expression["operator"].text:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:  # refused already
            return True


def _check_template(template: DocumentField) -> Found:
    """Yield what the Pods of a workload may not have, and Pods may."""
    spec = template["spec"]
    if spec["restartPolicy"].text in ("OnFailure", "Never"):
        yield spec["restartPolicy"].finding("unsupported-value", "the only one is Always")
    if spec["activeDeadlineSeconds"].is_given:
        yield spec["activeDeadlineSeconds"].finding("forbidden-field", "the Pods of a workload have none")
    gates = [each["name"].text for each in spec["schedulingGates"].elements()]
    if len(set(gates)) != len(gates):
        yield spec["schedulingGates"].finding("duplicate-name", "a gate stands twice")
    for gate in spec["schedulingGates"].elements():
        if qualified_name(gate["name"].text) is not None:
            yield gate["name"].finding("bad-name", f"{gate['name'].text!r} {qualified_name(gate['name'].text)}")
    for volume in spec["volumes"].elements():
        for source, name in _NAMES.items():
            if volume[source].is_given and not volume[source][name].text:
                yield volume[source][name].finding("required-field", f"{source} needs it")
        projections = volume["projected"]["sources"].elements()
        for source in ("configMap", "secret"):
            for each in (projection[source] for projection in projections):
                if each.is_given and not each["name"].text:
                    yield each["name"].finding("required-field", f"{source} needs it")
            for each in (projection[source] for projection in (volume, *projections)):
                yield from _check_items(each)
    for container in (*spec["containers"].elements(), *spec["initContainers"].elements()):
        yield from _check_environment(container)


def _check_items(source: DocumentField) -> Found:
    """Yield what is wrong with the files of a ConfigMap or Secret."""
    limits = (("defaultMode", _MOST_MODE), ("mode", _MOST_MODE), ("defaultUser", _MOST_USER), ("user", _MOST_USER))
    for name, most in limits:
        for number in (each[name] for each in (source, *source["items"].elements())):
            if number.number is not None and not 0 <= number.number <= most:
                yield number.finding("out-of-range", f"it must be 0 to {most}")
    for item in source["items"].elements():
        for name in ("key", "path"):
            if not item[name].text:
                yield item[name].finding("required-field", "a file needs it")
        problem = local_path(item["path"].text) if item["path"].text else None
        if problem is not None:
            yield item["path"].finding("bad-path", f"{item['path'].text!r} {problem}")


def _check_environment(container: DocumentField) -> Found:
    """Yield references to objects without a name, or without the key of a value."""
    sources = [each["valueFrom"] for each in container["env"].elements()] + container["envFrom"].elements()
    for reference in (source[name] for source in sources for name in _REFERENCES if source[name].is_given):
        if not reference["name"].text:
            yield reference["name"].finding("required-field", "a reference needs a name")
        elif dns_subdomain(re.sub("(?<=.)-$", "a", reference["name"].text)) is not None:  # a prefix would do
            yield reference["name"].finding("bad-name", f"{reference['name'].text!r} is no name of an object")
        if str(reference.path[-1]).endswith("KeyRef") and not reference["key"].text:
            yield reference["key"].finding("required-field", "a reference needs a key")
