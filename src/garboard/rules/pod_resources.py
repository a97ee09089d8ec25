"""Requests and limits of containers and Pods."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil

from garboard.documents import Json
from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found
from garboard.rules.formats import qualified_name
from garboard.rules.quantities import amount
from garboard.schema import suggest
from garboard.schema.scalars import READERS, Mismatch

_STANDARD = ("cpu", "memory", "ephemeral-storage")
_HUGE = "hugepages-"
_DIVISORS = ("1", *(f"1{suffix}" for suffix in ("k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")))
_QUOTA_PREFIX = "requests."


def check_resources(resources: DocumentField, is_known: "Callable[[str], str | None] | None" = None) -> Found:
    """Yield what is wrong with `requests` and `limits`; `is_known` judges the names of resources."""
    judge = is_known or container_resource
    for part in ("limits", "requests"):
        for name, quantity in resources[part].members():
            yield from _check_resource(name, quantity, judge)
    yield from _check_limits(resources)
    for claim in resources["claims"].elements():
        yield claim.finding("api-reference", "a static Pod cannot have resource claims")
    named = {name for part in ("limits", "requests") for name, _ in resources[part].members()}
    if any(name.startswith(_HUGE) for name in named) and not {"cpu", "memory"} & named:
        yield resources.finding("required-field", "huge pages need a request or limit of cpu or memory beside them")


def _check_resource(name: str, quantity: DocumentField, judge: "Callable[[str], str | None]") -> Found:
    problem = judge(name)
    if problem is not None:
        near = suggest(name, _STANDARD)
        yield quantity.finding("unknown-resource", problem, f"did you mean {near!r}?" if near else None)
    value = amount(quantity.value)
    if value is None:
        yield quantity.finding("bad-quantity", "this is no quantity, such as 500m or 1Gi")
        return
    if value < 0:
        yield quantity.finding("out-of-range", "a quantity must not be negative")
    if not _is_native(name) and value.denominator != 1:
        yield quantity.finding("out-of-range", "devices are counted in whole numbers")
    if name.startswith(_HUGE):
        size = amount(name.removeprefix(_HUGE))
        if size is None or size <= 0 or size.denominator != 1 or ceil(value) % size:
            yield quantity.finding("out-of-range", "it must be a multiple of the size of a page")


def _check_limits(resources: DocumentField) -> Found:
    limits = dict(resources["limits"].members())
    for name, request in resources["requests"].members():
        wanted = amount(request.value)
        limit = amount(limits[name].value) if name in limits else None
        is_fixed = name.startswith(_HUGE) or not _is_native(name)
        if wanted is None or (name in limits and limit is None):
            continue
        if limit is None and is_fixed:
            yield request.finding("required-field", f"{name} needs a limit that equals the request")
        elif limit is not None and is_fixed and wanted != limit:
            yield request.finding("requests-above-limits", f"the request of {name} must equal its limit")
        elif limit is not None and wanted > limit:
            yield request.finding("requests-above-limits", f"the request of {name} is above its limit")


def container_resource(name: str) -> str | None:
    """Say why containers do not have a resource, if they have not."""
    problem = qualified_name(name)
    if problem is not None:
        return f"{name!r} {problem}"
    if "/" not in name:
        is_standard = name in _STANDARD or name.startswith(_HUGE)
        return None if is_standard else f"containers have no resource {name!r}"
    if not _is_native(name) and (name.startswith(_QUOTA_PREFIX) or qualified_name(_QUOTA_PREFIX + name) is not None):
        return f"{name!r} is no name of a device"
    return None


def pod_resource(name: str) -> str | None:
    """Say why Pods do not have a resource at their own level, if they have not."""
    return None if name in ("cpu", "memory") or name.startswith(_HUGE) else f"Pods have no resource {name!r}"


def check_pod_resources(spec: DocumentField, *, fills_requests: bool) -> Found:
    """Yield what is wrong with the resources of the whole Pod, and with those of containers beside them.

    `fills_requests`: a Pod that has a limit and no request requests what its containers do.
    """
    own = spec["resources"]
    if not own.is_given:
        return
    yield from check_resources(own, pod_resource)
    if own["claims"].is_given:
        yield own["claims"].finding("forbidden-field", "claims are for containers")
    requests = _total_requests(spec)
    unasked = [(name, limit) for name, limit in own["limits"].members() if not own["requests"][name].is_given]
    for name, most in (*own["requests"].members(), *(unasked if fills_requests else ())):
        value = amount(most.value)
        if value is not None and requests.get(name, 0) > value:
            yield most.finding("requests-above-limits", f"the containers request more {name} than the Pod")
    limits = {name: amount(limit.value) for name, limit in own["limits"].members()}
    for container in spec["containers"].elements():
        for name, limit in container["resources"]["limits"].members():
            value, allowed = amount(limit.value), limits.get(name)
            if value is not None and allowed is not None and value > allowed:
                yield limit.finding("requests-above-limits", f"the limit of {name} is above that of the Pod")


def _total_requests(spec: DocumentField) -> Mapping[str, Fraction]:
    """Return what the containers request together; a sidecar counts as one of them, an init container alone."""
    totals: dict[str, Fraction] = {}
    for container in spec["containers"].elements():
        for name, value in _requests(container).items():
            totals[name] = totals.get(name, Fraction(0)) + value
    sidecars: dict[str, Fraction] = {}
    most: dict[str, Fraction] = {}
    for container in spec["initContainers"].elements():
        is_sidecar = container["restartPolicy"].text == "Always"
        for name, value in _requests(container).items():
            beside = sidecars.get(name, Fraction(0))
            most[name] = max(most.get(name, Fraction(0)), beside + value)
            if is_sidecar:
                sidecars[name] = beside + value
                totals[name] = totals.get(name, Fraction(0)) + value
    return {name: max(totals.get(name, Fraction(0)), most.get(name, Fraction(0))) for name in {*totals, *most}}


def _requests(container: DocumentField) -> dict[str, Fraction]:
    """Return the requests of a container; a limit without a request is its request too."""
    resources = container["resources"]
    found = {name: amount(each.value) for part in ("limits", "requests") for name, each in resources[part].members()}
    return {name: value for name, value in found.items() if value is not None}


def divisor_problem(resource: str, value: Json) -> str | None:
    """Say why a resource cannot be divided by a quantity for a variable or a file, if it cannot."""
    try:
        text = READERS["quantity"](value)
    except Mismatch:
        return None
    if text == "0":
        return None
    kind = resource.partition(".")[2]
    allowed = ("1m", "1") if kind == "cpu" else _DIVISORS
    is_limited = kind in _STANDARD or kind.startswith(_HUGE)
    return f"{text} is none of {', '.join(allowed)}" if is_limited and text not in allowed else None


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name
