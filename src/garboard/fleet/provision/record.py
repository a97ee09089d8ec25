"""What a work folder remembers of a provision: its attempts, how far each came, and which infraID each one owns."""

import json
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.values import dataclass

# In their order. `record` keeps the infraID before anything costs money, `collect` takes out what the user is given.
StageName: TypeAlias = Literal[
    "create manifests", "patch", "create ignition-configs", "record", "create cluster", "collect"
]
STAGES: tuple[StageName, ...] = get_args(StageName)
# How an attempt has ended: nothing was made, what was made is gone, or it is the cluster.
AttemptEnd: TypeAlias = Literal["", "discarded", "destroyed", "complete"]
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One attempt; `stage` is the one that was begun last, and all before it are done."""

    number: int
    stage: StageName = STAGES[0]
    is_done: bool = False  # the stage
    infra_id: str = ""  # known as soon as the attempt may own something
    end: AttemptEnd = ""
    is_destroying: bool = False
    failure: Json = None
    digest: str = ""  # of the documents that it was begun with

    @property
    def folder(self) -> str:
        return f"attempt-{self.number}"

    @property
    def may_own(self) -> bool:
        """Whether something may exist outside of the work folder."""
        return bool(self.infra_id) and self.end != "destroyed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionRecord:
    """Everything about one deployment in one work folder."""

    namespace: str
    deployment: str
    installer: str
    attempts: tuple[AttemptRecord, ...] = ()

    @property
    def last(self) -> AttemptRecord | None:
        return self.attempts[-1] if self.attempts else None

    def with_attempt(self, attempt: AttemptRecord) -> "ProvisionRecord":
        """Return the record with an attempt added, or replaced by its number."""
        others = [each for each in self.attempts if each.number != attempt.number]
        return replace(self, attempts=tuple(sorted((*others, attempt), key=lambda each: each.number)))

    def attempt(self, number: int) -> AttemptRecord:
        return next(each for each in self.attempts if each.number == number)


def record_bytes(record: ProvisionRecord) -> bytes:
    attempts: list[Json] = [
        {
            "number": each.number,
            "stage": each.stage,
            "done": each.is_done,
            "infraID": each.infra_id,
            "end": each.end,
            "destroying": each.is_destroying,
            "failure": each.failure,
            "digest": each.digest,
        }
        for each in record.attempts
    ]
    document: dict[str, Json] = {
        "format": _FORMAT,
        "namespace": record.namespace,
        "deployment": record.deployment,
        "installer": record.installer,
        "attempts": attempts,
    }
    return (json.dumps(document, indent=2) + "\n").encode()


def read_record(data: bytes, *, source: str) -> ProvisionRecord:
    try:
        document = json.loads(data)
        if document["format"] != _FORMAT:
            raise ValueError(f"format {document['format']} is not known")
        attempts = tuple(map(_attempt, document["attempts"]))
        names = (str(document[each]) for each in ("namespace", "deployment", "installer"))
        namespace, deployment, installer = names
    except (ValueError, KeyError, TypeError) as error:
        raise BadDocument(
            f"{source} cannot be read: {error}",
            hint="it says what was made for this deployment: restore it rather than remove it",
            error_class="bad-record",
        ) from error
    return ProvisionRecord(namespace=namespace, deployment=deployment, installer=installer, attempts=attempts)


def _attempt(entry: dict[str, Json]) -> AttemptRecord:
    stage, end = str(entry["stage"]), str(entry["end"])
    if stage not in STAGES or end not in get_args(AttemptEnd):
        raise ValueError(f"{stage!r} or {end!r} is not known")
    return AttemptRecord(
        number=int(str(entry["number"])),
        stage=stage,
        is_done=entry["done"] is True,
        infra_id=str(entry["infraID"]),
        end=end,  # type: ignore[arg-type]  # it is one of them
        is_destroying=entry["destroying"] is True,
        failure=entry["failure"],
        digest=str(entry["digest"]),
    )
