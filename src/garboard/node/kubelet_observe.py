"""What kubelets say that they run with, asked one after the other through the API server; only `change drift` asks."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from urllib.parse import quote

from garboard.change import reads
from garboard.change.snapshot import SnapshotNode
from garboard.documents import Json
from garboard.kube import ConnectionBroken, KubeClient
from garboard.model.paths import KUBELET_CONF
from garboard.node.change_observe import ObservedCluster, kubeconfig_of

_WHAT = "what kubelets run with"
_OPTIONAL = "which is optional (garboard change rbac --kubelets)"
_NO_ANSWER = "it did not answer in time"
_MOST_UNANSWERED, _MOST_NAMED = 3, 10
_KEY = "kubeletconfig"
_OK, _REFUSED = 200, (401, 403)
_SAID = {0: _NO_ANSWER, _OK: "its answer was no configuration"}


class AskedKubelets(StrEnum):
    """Which kubelets are asked; by default that of this node, and elsewhere those of all nodes."""

    OWN = "own"
    ALL = "all"
    NONE = "none"


def with_kubelets(
    observed: ObservedCluster, kubeconfig: str | None, asked: AskedKubelets | None = None
) -> ObservedCluster:
    """Add what kubelets run with; whoever could not be asked is noted.

    There is never more than one request under way, and none to a node that is not ready: that one would not answer.
    """
    asked = asked or (AskedKubelets.OWN if observed.here else AskedKubelets.ALL)
    nodes = tuple(_nodes(observed, asked))
    if not nodes:
        return observed
    admin = kubeconfig_of(kubeconfig)
    if admin.path == KUBELET_CONF:
        return replace(observed, notes=(*observed.notes, f"{_WHAT}: {KUBELET_CONF} may not ask"))
    with admin.connect() as client:
        answers = _Answers()
        answers.ask(client, nodes)
    return replace(observed, kubelets=answers.found, notes=(*observed.notes, *answers.notes()))


@dataclass(slots=True)
class _Answers:
    """What was found, and why of other nodes nothing was."""

    found: dict[str, Json] = field(default_factory=dict)
    missing: dict[str, list[str]] = field(default_factory=dict)  # names, by what was said
    is_forbidden: bool = False

    def ask(self, client: KubeClient, nodes: Iterable[SnapshotNode]) -> None:
        for node in nodes:
            if self.is_forbidden:
                return
            if len(self.missing.get(_NO_ANSWER, ())) >= _MOST_UNANSWERED:
                self.missing.setdefault("not asked, because others did not answer", []).append(node.name)
            elif not node.is_ready:
                self.missing.setdefault("the node is not ready", []).append(node.name)
            else:
                self._ask(client, node.name)

    def _ask(self, client: KubeClient, name: str) -> None:
        status, content = _answer(client, name)
        self.is_forbidden = status in _REFUSED
        if content is not None:
            self.found[name] = content
        elif not self.is_forbidden:
            self.missing.setdefault(_SAID.get(status, f"its answer was {status}"), []).append(name)

    def notes(self) -> Iterator[str]:
        if self.is_forbidden:
            yield f"{_WHAT}: the right to {reads.KUBELETS} is missing, {_OPTIONAL}"
        for said, names in self.missing.items():
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            yield f"what the kubelet of {', '.join(names[:_MOST_NAMED])}{more} runs with: {said}"


def _nodes(observed: ObservedCluster, asked: AskedKubelets) -> Iterable[SnapshotNode]:
    if asked is AskedKubelets.NONE:
        return ()
    nodes = observed.snapshot.nodes
    return nodes if asked is AskedKubelets.ALL else (each for each in nodes if each.name == observed.here)


def _answer(client: KubeClient, node: str) -> tuple[int, Json]:
    """Return the status of an answer, or 0 if there was none, and the configuration, if it held one."""
    try:
        status, text, _ = client.get_text(f"/api/v1/nodes/{quote(node, safe='')}/proxy/configz")
        content = json.loads(text)[_KEY] if status == _OK else None
    except ConnectionBroken:
        return 0, None
    except (ValueError, KeyError, TypeError, RecursionError):
        return _OK, None
    return status, content if isinstance(content, dict) else None
