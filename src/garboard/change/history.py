"""The revisions of a cluster as people and programs read them, and the way back to one of them."""

from collections.abc import Iterator

from garboard.change.record import state_of
from garboard.change.request import RecordedState
from garboard.documents import Json, without_passwords
from garboard.errors import BadUsage
from garboard.patches.unified import TextDiff
from garboard.phases.change_record import ChangeRecord
from garboard.phases.revision import Revision

NO_REVISIONS = "the cluster has no revisions: garboard init, upgrade or change apply makes the first\n"


def asked_back(record: ChangeRecord, number: int) -> RecordedState:
    """Return what a revision has recorded, to be asked for again; never across a version of Kubernetes."""
    wanted = record.require(number)
    current = record.revisions.get(record.current) if record.current is not None else None
    if current is not None and current.kubernetes_version != wanted.kubernetes_version:
        raise BadUsage(
            f"revision {number} is of Kubernetes {wanted.kubernetes_version}, and the cluster has "
            f"{current.kubernetes_version}",
            hint="a change never goes back across a version; plan the single fields with garboard change plan",
        )
    return state_of(wanted)


def history_document(record: ChangeRecord) -> dict[str, Json]:
    """Return the revisions, the newest first, as plain data."""
    return {"current": record.current, "revisions": [_entry(each) for each in _newest_first(record)]}


def history_text(record: ChangeRecord) -> str:
    if not record.revisions:
        return NO_REVISIONS
    lines = []
    for each in _newest_first(record):
        mark = "*" if each.number == record.current else " "
        said = " ".join(filter(None, (each.message, f"({each.request})" if each.request else "")))
        lines.append(f"{mark} {each.number:>4}  {each.created}  {each.author or '-':20}  {said}".rstrip())
    return "\n".join(lines) + "\n"


def compared(record: ChangeRecord, before: int, after: int | None) -> tuple[Json, str]:
    """Return what is different between two revisions; of one alone, what it has changed."""
    wanted = record.require(before if after is None else after)
    if after is None:
        former = record.require(wanted.parent) if wanted.parent is not None else wanted
    else:
        former = record.require(before)
    diffs = list(_diffs(former, wanted))
    document: Json = {
        "before": former.number,
        "after": wanted.number,
        "revision": _entry(wanted),
        "diffs": [{"name": name, "diff": diff} for name, diff in diffs],
    }
    text = "".join(diff for _, diff in diffs) or "they are the same\n"
    return document, f"revision {former.number} to {wanted.number}\n{text}"


def _diffs(before: Revision, after: Revision) -> Iterator[tuple[str, str]]:
    old, new = map(_texts, (before, after))
    for name in sorted({*old, *new}):
        names = (f"{before.number}/{name}", f"{after.number}/{name}")
        diff = "".join(TextDiff.of(old.get(name, ""), new.get(name, ""), names).lines)
        if diff:
            yield name, without_passwords(diff)


def _texts(revision: Revision) -> dict[str, str]:
    patches = {f"patches/{name}": f"{digest}\n" for name, digest in revision.patch_sets.items() if digest}
    return {**revision.documents, **patches, "kubernetesVersion": f"{revision.kubernetes_version}\n"}


def _newest_first(record: ChangeRecord) -> list[Revision]:
    return sorted(record.revisions.values(), key=lambda each: -each.number)


def _entry(each: Revision) -> dict[str, Json]:
    return {
        "revision": each.number,
        "parent": each.parent,
        "created": each.created,
        "author": each.author,
        "message": each.message,
        "request": each.request,
        "accepted": [*each.accepted],
        "kubernetesVersion": each.kubernetes_version,
        "digest": each.digest,
        **({"corrects": [*each.corrects]} if each.corrects else {}),
    }
