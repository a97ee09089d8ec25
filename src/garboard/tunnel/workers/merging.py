"""The pages of several workers as one: metrics summed, status merged. Pure: text and documents in, text and one out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from garboard.values import Json

# How many agents there are: every agent is at every worker, so that the largest number is that of the server.
_LARGEST: Final = ("_ready_backends", "_ready_backend_connections")
_GROWING: Final = ("counter", "histogram")


@dataclass(slots=True)
class MetricFamily:
    """One family as it was read: its lines of HELP and TYPE, and its numbers by name and labels."""

    head: list[str] = field(default_factory=list)
    kind: str = ""
    samples: dict[str, float] = field(default_factory=dict)


Families = dict[str, MetricFamily]


def read_families(text: str) -> Families:
    """What a page of metrics says, in its order."""
    found: Families = {}
    family = MetricFamily()
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            family = found.setdefault(name, MetricFamily())
            family.head.append(line)
            family.kind = rest if word == "TYPE" else family.kind
        elif line:
            sample, _, number = line.rpartition(" ")
            family.samples[sample] = float(number)
    return found


def merge_families(parts: Iterable[Families]) -> Families:
    """The sums over the parts, or the largest where a sum would count the same thing more than once."""
    merged: Families = {}
    for part in parts:
        for name, family in part.items():
            into = merged.setdefault(name, MetricFamily(family.head, family.kind))
            for sample, number in family.samples.items():
                before = into.samples.get(sample, 0.0)
                into.samples[sample] = max(before, number) if name.endswith(_LARGEST) else before + number
    return merged


def growing(families: Families) -> Families:
    """Those that never become smaller, and stay with the server when the worker that counted them has ended."""
    return {name: each for name, each in families.items() if each.kind in _GROWING}


def families_text(families: Families) -> str:
    lines = (line for each in families.values() for line in (*each.head, *_sample_lines(each)))
    return "\n".join([*lines, ""])


def _sample_lines(family: MetricFamily) -> Iterable[str]:
    return (f"{sample} {_number_text(number)}" for sample, number in family.samples.items())


def _number_text(number: float) -> str:
    return str(int(number)) if number.is_integer() else f"{number:.10g}"


def merge_status(server_id: str, documents: Sequence[Any], workers: Json, tenants_file: Json) -> Json:
    """One document in the form that a server without workers gives, with its workers."""
    by_name: dict[str, list[Any]] = {}
    for document in documents:
        for tenant in document["tenants"]:
            by_name.setdefault(tenant["name"], []).append(tenant)
    tenants: list[Json] = [_merge_tenant(parts) for parts in by_name.values()]
    return {"end": "server", "id": server_id, "tenants": tenants, "tenantsFile": tenants_file, "workers": workers}


def _merge_tenant(parts: list[Any]) -> Json:
    by_id: dict[tuple[str, str], list[Any]] = {}
    for part in parts:
        for agent in part["agents"]:
            by_id.setdefault((agent["id"], agent["identity"]), []).append(agent)
    agents: list[Json] = [_merge_agent(each) for each in by_id.values()]
    sums = {name: _sum(part[name] for part in parts) for name in ("connections", "queuedBytes", "dialFailures")}
    groups = {group: _sum(part["denials"][group] for part in parts) for group in parts[0]["denials"]}
    is_ready = any(part["isReady"] for part in parts)
    return {**parts[0], "isReady": is_ready, "agents": agents, **sums, "denials": groups}


def _merge_agent(parts: list[Any]) -> Json:
    """An agent as all workers see it; `streams` is how many of them have it."""
    sums = {name: sum(part[name] for part in parts) for name in ("connections", "pendingDials", "queuedBytes")}
    is_draining = any(part["isDraining"] for part in parts)
    return {**parts[0], **sums, "isDraining": is_draining, "streams": len(parts)}


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for part in parts:
        for name, number in part.items():
            found[name] = int(str(found.get(name, 0))) + number
    return found
