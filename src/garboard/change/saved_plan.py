"""A plan that was saved, reviewed and is applied later: unchanged, or refused as stale.

A document holds what a plan does, and not what was typed. What is asked for is what its diffs make of the ConfigMaps,
which have to be as they were.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import msgspec

from garboard.change.codes import CODES
from garboard.change.configuration import MAP_OF_KIND
from garboard.change.document import plan_document
from garboard.change.drift_names import DriftNames
from garboard.change.drift_request import DriftRequest
from garboard.change.plan import API_VERSION, KIND, ChangePlan
from garboard.change.request import RecordedState
from garboard.change.snapshot import ClusterSnapshot
from garboard.documents import HIDDEN
from garboard.errors import BadDocument, StalePlan
from garboard.manifests.uploaded import CONFIG_KEYS
from garboard.values import dataclass

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
_ACCEPTED = " (accepted)"
_AGAIN = "nothing was changed; plan again, and look at what the plan says now"


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """The document of a plan, with the name of its file, and where that is known each thing it was made from."""

    document: Mapping[str, Any]
    source: str = "the plan"
    observed: Mapping[str, str] = field(default_factory=dict)

    @property
    def first(self) -> str:
        """The node where it begins; empty if it touches none."""
        return next((str(each["node"]) for each in self.document["nodes"]), "")

    @property
    def accepted(self) -> tuple[str, ...]:
        """The codes that had been accepted when it was made."""
        said = [(str(each["code"]), str(each["reason"])) for each in self.document["attributes"]]
        known = [code for code, each in CODES.items() if each.is_acceptable]
        return tuple(
            code
            for code in known
            if any(_ACCEPTED in reason and (code == own or f"{code}: " in reason) for own, reason in said)
        )

    @property
    def correction(self) -> DriftRequest | None:
        """What it asks for, if all that it does is to take hand edits away."""
        names = self.document.get("corrects")
        return DriftRequest(policy="overwrite", names=DriftNames.parse(names)) if names else None

    def request(self, snapshot: ClusterSnapshot) -> RecordedState:
        """Return what it asks for; a ConfigMap that its diff does not fit any more makes it stale."""
        kinds = {name: kind for kind, name in MAP_OF_KIND.items()}
        texts: dict[str, str] = {}
        for each in self.document["objects"]:
            name = str(each["name"])
            if each["kind"] == "ConfigMap" and name in CONFIG_KEYS:
                diff = str(each["diff"])
                if HIDDEN in diff:
                    raise BadDocument(
                        f"{self.source} hides a password of ConfigMap {name}",
                        hint="give the arguments of change plan to change apply instead of the plan",
                        error_class="bad-plan",
                    )
                found = patched(snapshot.stored_text(name) or "", diff)
                if found is None:
                    raise StalePlan(
                        f"the plan is stale: ConfigMap kube-system/{name} is not what it was made from", hint=_AGAIN
                    )
                texts[kinds[name]] = found
            elif each["name"] == "garboard-patches":
                raise BadDocument(
                    f"{self.source} is about another patch set, and a plan holds no patches",
                    hint="garboard change apply --patches DIR, or for hand edits garboard change drift --adopt",
                    error_class="bad-plan",
                )
        return RecordedState(texts=texts, source=self.source)

    def refuse_stale(self, plans: Sequence[ChangePlan]) -> None:
        """Refuse to go on unless one of the plans, made now from what can be seen in one way or another, is this one.

        Off the node, files are not seen: what was assumed of them then is not compared.
        """
        documents = [plan_document(each) for each in plans]
        same = [each for each in documents if each["digest"] == self.document["digest"]]
        if not same:
            raise StalePlan(f"the plan is stale: {self._moved(plans)} moved", hint=_AGAIN)
        if not any(_work(each) == _work(self.document) for each in documents):
            raise StalePlan("the plan is stale: another one would be made now", hint=_AGAIN)

    def _moved(self, plans: Sequence[ChangePlan]) -> str:
        """Name what has moved since, if that is known: in the view in which the least has."""
        views = [{each.name: each.digest for each in plan.observed} for plan in plans]
        moved = [sorted(name for name in {*view, *self.observed} if view.get(name) != self.observed.get(name))
                 for view in views]  # fmt: skip
        least = min(moved, key=len, default=[]) if self.observed else []
        return f"{', '.join(least)} {'has' if len(least) == 1 else 'have'}" if least else "what it was made from has"


def read_plan(data: bytes, *, source: str) -> SavedPlan:
    """Read a plan that was saved with `change plan -o json`; what is none, or is blocked, is refused."""
    hint = "make one with garboard change plan -o json"
    try:
        document = msgspec.json.decode(data, type=dict[str, Any])
        found = (document.get("apiVersion"), document.get("kind"))
        if found != (API_VERSION, KIND):
            raise BadDocument(
                f"{source} is a {found[1]} of {found[0]}, and not a {KIND} of {API_VERSION}",
                hint=hint,
                error_class="bad-plan",
            )
        _refuse_misshapen(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError) as error:
        raise BadDocument(f"{source} is no {KIND}: {error}", hint=hint, error_class="bad-plan") from error
    return SavedPlan(document, source)


def _refuse_misshapen(document: Mapping[str, Any]) -> None:
    """Raise what is caught as the mistake of a document, if a member is missing or of another kind."""
    for attribute in document["attributes"]:
        attribute["code"], attribute["reason"]
    for node in document["nodes"]:
        for step in node["steps"]:
            step["phase"], step["restarts"], [(file["path"], file["diff"], file["assumed"]) for file in step["files"]]
        node["node"]
    for each in document["objects"]:
        each["kind"], each["name"], each["diff"]
    document["digest"]
    if not all(isinstance(each, str) for each in document.get("corrects", ())):
        raise TypeError("corrects holds names")


def _work(document: Mapping[str, Any]) -> list[Any]:
    """Return what is done, in an order that does not depend on where it begins.

    Equal digests mean that it was made from the same; so this only tells what a person has changed in the document.
    """
    nodes = sorted(document["nodes"], key=lambda each: str(each["node"]))
    objects = [[each["kind"], each["name"], each["diff"]] for each in document["objects"]]
    return [[[each["node"], sorted(_steps(each["steps"]))] for each in nodes], objects]


def _steps(steps: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    for step in steps:
        # Who goes first takes the snapshot of etcd, and that may be another node now.
        if step["phase"] != "etcd-snapshot":
            yield [step["phase"], [*step["restarts"]], [file["path"] for file in step["files"]]]


def patched(text: str, diff: str) -> str | None:
    """Return a text with a unified diff applied, exactly where it was made; None if the text is another one."""
    lines, made = text.splitlines(keepends=True), list[str]()
    at = 0
    for number, line in enumerate(diff.splitlines(keepends=True)):
        if number < 2 and line.startswith(("--- ", "+++ ")):
            continue
        if hunk := _HUNK.match(line):
            start = int(hunk[1]) - (hunk[2] != "0")
            if start < at or start > len(lines):
                return None
            made += lines[at:start]
            at = start
        elif line.startswith("\\"):
            continue
        elif line.startswith("+"):
            made.append(line[1:])
        elif at < len(lines) and lines[at].rstrip("\n") == line[1:].rstrip("\n"):
            made += [lines[at]] if line.startswith(" ") else []
            at += 1
        else:
            return None
    return "".join([*made, *lines[at:]])
