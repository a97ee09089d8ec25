"""Which version a cluster may be upgraded to: kubeadm's rules, with garboard as the kubeadm of the target's minor.

Every rule that is broken is told at once. Some can be overridden by `--force`, the others never.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from garboard.config import ResolvedVersion
from garboard.errors import BadUsage
from garboard.model.minors import MINORS, facts_of
from garboard.model.version import KubernetesVersion, Minor
from garboard.values import dataclass

_OLDEST_KUBELET = 3  # minors behind the control plane
_RELEASE_CANDIDATE = "-rc."


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRequest:
    """What a cluster runs, and what it shall run; kubelets are known by the names of their nodes."""

    cluster: KubernetesVersion
    target: ResolvedVersion
    kubelets: Mapping[str, KubernetesVersion]
    allows_experimental: bool = False
    allows_candidates: bool = False


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that a request breaks; an absolute one is not for --force."""

    text: str
    is_absolute: bool = True


def refuse_version(request: UpgradeRequest, *, is_forced: bool) -> tuple[str, ...]:
    """Refuse a version that breaks a rule; return what was broken under --force, as warnings."""
    broken = tuple(broken_rules(request))
    absolute = [each.text for each in broken if each.is_absolute]
    others = [each.text for each in broken if not each.is_absolute]
    if absolute:
        raise _refusal("fatal", (*absolute, *others), "choose a version that these rules allow")
    if others and not is_forced:
        raise _refusal("non-fatal", others, "correct them, or pass --force to go on in spite of them")
    return tuple(others)


def _refusal(kind: Literal["fatal", "non-fatal"], texts: Iterable[str], hint: str) -> BadUsage:
    lines = "".join(f"\n\t- {text}" for text in texts)
    return BadUsage(
        f"the version argument is invalid due to these {kind} errors:{lines}", hint=hint, error_class="version-skew"
    )


def broken_rules(request: UpgradeRequest) -> Iterator[BrokenRule]:
    """Yield the rules that a request breaks, in kubeadm's order."""
    target, cluster = request.target.release, request.cluster
    if (unknown := _unknown(target)) is not None:
        yield unknown
        return
    yield from _steps(cluster, target, is_prerelease="-" in request.target.text)
    reference = facts_of(target).reference
    if target > reference:
        text = f"the target {target} is newer than {reference}, the release of its minor that garboard is made for"
        yield BrokenRule(text, is_absolute=False)
    yield from _unstable(request)
    yield from _kubelets(request.kubelets, target)


def _unknown(target: KubernetesVersion) -> BrokenRule | None:
    if target.as_minor in MINORS:
        return None
    return BrokenRule(
        f"the tool must have the minor of the target, and garboard has {_listed(MINORS)}, not {target.as_minor}"
    )


def _steps(cluster: KubernetesVersion, target: KubernetesVersion, *, is_prerelease: bool) -> Iterator[BrokenRule]:
    step = target.minor - cluster.minor
    if target.major != cluster.major or step > 1:
        text = f"a control plane goes up one minor at a time: {cluster} can go to {cluster.major}.{cluster.minor + 1}"
        yield BrokenRule(f"{text}, and {target} is further away", is_absolute=not is_prerelease)
    elif step < 0:
        # kubeadm lets a control plane go down one minor; etcd and stored objects do not follow.
        yield BrokenRule(f"a control plane never goes down a minor: the cluster has {cluster}, the target is {target}")


def _unstable(request: UpgradeRequest) -> Iterator[BrokenRule]:
    text = request.target.text
    if "-" not in text or request.allows_experimental:
        return
    if _RELEASE_CANDIDATE in text:
        if not request.allows_candidates:
            flags = "--allow-release-candidate-upgrades or --allow-experimental-upgrades"
            yield BrokenRule(f"the target {text} is a release candidate: that needs {flags}", is_absolute=False)
        return
    yield BrokenRule(f"the target {text} is unstable: that needs --allow-experimental-upgrades", is_absolute=False)


def _kubelets(kubelets: Mapping[str, KubernetesVersion], target: KubernetesVersion) -> Iterator[BrokenRule]:
    if not kubelets:
        yield BrokenRule("the versions of the kubelets are unknown", is_absolute=False)
    oldest = Minor(target.major, target.minor - _OLDEST_KUBELET)
    if old := _nodes(name for name, version in kubelets.items() if version.as_minor < oldest):
        text = f"a kubelet may be {_OLDEST_KUBELET} minors older than the control plane, not more: with {target}"
        yield BrokenRule(f"{text} these have to be {oldest} at least: {old}", is_absolute=False)
    if new := _nodes(name for name, version in kubelets.items() if version.as_minor > target.as_minor):
        yield BrokenRule(f"a kubelet must not be newer than the control plane, {target}: {new}", is_absolute=False)


def _nodes(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _listed(minors: Iterable[Minor]) -> str:
    return " and ".join(map(str, minors))
