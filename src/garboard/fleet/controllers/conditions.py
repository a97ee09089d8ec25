"""Conditions as Hive writes them: which there are, in which order, and when one is written anew."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Literal, TypeAlias

from garboard.fleet.controllers.stored import Stored, read_time, write_time
from garboard.values import Json, dataclass

Status: TypeAlias = Literal["True", "False", "Unknown"]
POOL_CONDITIONS: Final = (
    "MissingDependencies", "CapacityAvailable", "AllClustersCurrent", "InventoryValid", "DeletionPossible",
)  # fmt: skip
CLAIM_CONDITIONS: Final = ("Pending", "ClusterRunning")
DEPLOYMENT_CONDITIONS: Final = (
    "DNSNotReady", "InstallImagesNotResolved", "ProvisionFailed", "SyncSetFailed", "InstallLaunchError",
    "DeprovisionLaunchError", "ProvisionStopped", "AuthenticationFailure", "RequirementsMet", "Provisioned",
    "ClusterInstallFailed", "ClusterInstallCompleted", "ClusterInstallStopped", "ClusterInstallRequirementsMet",
    "InstallerImageResolutionFailed",
)  # fmt: skip
# Those that are as desired when they are True; all others of a ClusterDeployment when they are False.
_DESIRED_TRUE: Final = frozenset((
    "ActiveAPIURLOverride", "Hibernating", "Ready", "AWSPrivateLinkReady", "ClusterInstallCompleted",
    "ClusterInstallRequirementsMet", "RequirementsMet", "Provisioned",
))  # fmt: skip
_LONGEST_MESSAGE: Final = 32768


@dataclass(frozen=True, slots=True)
class Said:
    """What a condition says."""

    type: str
    status: Status
    reason: str
    message: str


def condition(stored: Stored, type_: str) -> Said | None:
    """Return what a condition of an object says; None if it has none of the type."""
    found = next((each for each in stored.entries("status", "conditions") if each.get("type") == type_), None)
    if found is None:
        return None
    status = str(found.get("status"))
    known: Status = "True" if status == "True" else "False" if status == "False" else "Unknown"
    return Said(type_, known, str(found.get("reason", "")), str(found.get("message", "")))


def is_status(stored: Stored, type_: str, status: Status) -> bool:
    said = condition(stored, type_)
    return said is not None and said.status == status


def reason_of(stored: Stored, type_: str) -> str:
    said = condition(stored, type_)
    return said.reason if said is not None else ""


def since(stored: Stored, type_: str) -> datetime | None:
    """Return since when a condition has its status."""
    for each in stored.entries("status", "conditions"):
        if each.get("type") == type_:
            return read_time(str(each.get("lastTransitionTime", "")))
    return None


def initialized(stored: Stored, types: Sequence[str], now: datetime) -> Stored:
    """Return an object with those of its conditions that it has not yet, as Unknown."""
    missing = [each for each in types if condition(stored, each) is None]
    said = [Said(each, "Unknown", "Initialized", "Condition Initialized") for each in missing]
    return with_conditions(stored, said, now)


def with_conditions(stored: Stored, said: Iterable[Said], now: datetime) -> Stored:
    """Return an object with conditions that say this; one that says it already stays as it is."""
    held: list[Json] = list(stored.entries("status", "conditions"))
    for each in said:
        if condition(stored, each.type) != each:
            held = _written(stored, held, each, now)
    if stored.kind == "ClusterDeployment":
        held.sort(key=_place)
    return (
        stored if held == list(stored.entries("status", "conditions")) else stored.edited(held, "status", "conditions")
    )


def _written(stored: Stored, held: list[Json], said: Said, now: datetime) -> list[Json]:
    before = next((each for each in held if isinstance(each, dict) and each.get("type") == said.type), None)
    moment = write_time(now)
    is_flipped = not isinstance(before, dict) or before.get("status") != said.status
    assert before is None or isinstance(before, dict)
    written: dict[str, Json] = {
        "type": said.type,
        "status": said.status,
        "reason": said.reason,
        "message": said.message[:_LONGEST_MESSAGE],
        "lastTransitionTime": moment if is_flipped or before is None else before.get("lastTransitionTime", moment),
    }
    if stored.kind == "ClusterDeploymentCustomization":  # the shape that Kubernetes' own conditions have
        written["observedGeneration"] = stored.generation
    else:
        written["lastProbeTime"] = moment
    return [written if each is before else each for each in held] if before is not None else [*held, written]


def _place(entry: Json) -> tuple[int, str]:
    """Order the conditions of a ClusterDeployment: what is not as desired comes first, Unknown last."""
    assert isinstance(entry, dict)
    type_, status = str(entry.get("type")), entry.get("status")
    if status not in ("True", "False"):
        return 2, type_
    return int((status == "True") == (type_ in _DESIRED_TRUE)), type_
