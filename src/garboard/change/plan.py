"""A plan of a change: a value that is printed, saved, reviewed, and carried out as it is or refused as stale."""

from dataclasses import field, replace

from garboard.change.codes import Weight
from garboard.documents import Json
from garboard.engine import Issue, Observation
from garboard.phases.static_pods import ReplacedPod
from garboard.values import dataclass

API_VERSION, KIND = "change.garboard.dev/v1alpha1", "ChangePlan"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAttribute:
    """One attribute with its verdict; `accepts` are the codes that would have to be accepted for it."""

    label: str
    before: Json = None
    after: Json = None
    weight: Weight = Weight.ALLOWED
    code: str = ""
    reason: str = ""
    route: str = ""
    accepts: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        return self.weight.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """A file of a node that changes; where nobody has seen the file, what would be rendered stands for it.

    `content` is None for a file that goes, and for certificates, whose bytes nobody knows before.
    """

    path: str
    diff: str
    is_assumed: bool
    former: bytes | None = field(default=None, repr=False)
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One step on a node, with its reason, the files that it changes and the components that it restarts.

    `replaced` is the static pod that it replaces, as it is and as it shall be, which may be the same; `issues` are the
    keys and certificates that it makes, and `url` is where what it waits for says how it is.
    """

    phase: str
    title: str
    cause: str
    files: tuple[PlannedFile, ...] = ()
    restarts: tuple[str, ...] = ()
    replaced: ReplacedPod | None = field(default=None, repr=False)
    issues: tuple[Issue, ...] = field(default=(), repr=False)
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """What is done on one node, in one go."""

    node: str
    steps: tuple[PlannedStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedObject:
    """An object that nodes share; `data` are the keys of a ConfigMap that are written, others stay as they are.

    `patch` is what changes in any other object; None for one that cannot be changed by a patch.
    """

    kind: str
    name: str
    cause: str
    diff: str
    namespace: str = "kube-system"
    data: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    resource_version: str = ""
    patch: Json = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan:
    """All of it in the order of work: nodes and objects, one after the other.

    `observed` is what was looked at; the plan is stale once any of it has moved. `corrects` names the differences
    that it takes away, if that is all it does: nodes that follow find out by these what they have to do.
    """

    attributes: tuple[PlannedAttribute, ...] = ()
    parts: tuple[NodeChange | PlannedObject, ...] = ()
    follow_ups: tuple[str, ...] = ()
    observed: tuple[Observation, ...] = ()
    warnings: tuple[str, ...] = ()
    corrects: tuple[str, ...] = ()

    @property
    def weight(self) -> Weight:
        return max((each.weight for each in self.attributes), default=Weight.ALLOWED)

    @property
    def verdict(self) -> str:
        """none, allowed, advice or blocked."""
        if not self.attributes and not self.parts:
            return "none"
        return self.weight.verdict

    @property
    def is_blocked(self) -> bool:
        return self.weight >= Weight.BLOCKED

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """The codes that have to be accepted before this is carried out."""
        return tuple(dict.fromkeys(code for each in self.attributes for code in each.accepts))

    @property
    def nodes(self) -> tuple[NodeChange, ...]:
        """What is done on each node, in the order in which nodes are first worked on."""
        found: dict[str, list[PlannedStep]] = {}
        for each in self.parts:
            if isinstance(each, NodeChange):
                found.setdefault(each.node, []).extend(each.steps)
        return tuple(NodeChange(node=name, steps=tuple(steps)) for name, steps in found.items())

    def without_parts(self) -> "ChangePlan":
        """Return the plan as it is while it is blocked: what is wrong with it, and nothing to do."""
        return replace(self, parts=(), follow_ups=())

    @property
    def objects(self) -> tuple[PlannedObject, ...]:
        return tuple(each for each in self.parts if isinstance(each, PlannedObject))
