"""kubeadm's own static Pods, to change and to judge."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from garboard.documents import Json, read_yaml

_MANIFESTS = Path(__file__).parents[3] / "examples/patches/manifests"


@cache
def _text(component: str) -> bytes:
    return (_MANIFESTS / f"{component}.yaml").read_bytes()


def component_pod(component: str = "kube-apiserver") -> Any:
    """Return the Pod that kubeadm renders for a component, anew each time."""
    return read_yaml(_text(component), source=component)


def changed_pod(change: Callable[[Any, Any], object], component: str = "kube-apiserver") -> Json:
    """Return kubeadm's Pod after `change` was done to its spec and its first container."""
    pod: Any = component_pod(component)
    change(pod["spec"], pod["spec"]["containers"][0])
    result: Json = pod
    return result
