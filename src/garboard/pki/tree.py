"""Carrying out decisions: the files of everything that is to be issued, signed by what is there or just made."""

from collections.abc import Iterable
from datetime import datetime

from garboard.errors import NotReady
from garboard.pki.decide import Decision, Issue, Refuse
from garboard.pki.files import NewFile
from garboard.pki.issue import IssuedPair, issue_certificate
from garboard.pki.keys import KeySource
from garboard.pki.observed import ObservedPairs
from garboard.pki.spec import PkiInputs, certificate
from garboard.pki.store import pair_files


def refuse_problems(decisions: Iterable[Decision]) -> None:
    """Raise if any decision is a refusal, and then tell them all."""
    refused = [each for each in decisions if isinstance(each, Refuse)]
    if refused:
        raise NotReady(
            "; ".join(each.reason for each in refused),
            hint="restore the files named above, or move them away to have new ones made",
            error_class="unusable-certificates",
        )


def issue_decided(
    decisions: Iterable[Decision], observed: ObservedPairs, inputs: PkiInputs, keys: KeySource, started_at: datetime
) -> tuple[NewFile, ...]:
    """Return the files of all certificates that were decided to be issued; the ones already there sign the rest."""
    decisions = tuple(decisions)
    refuse_problems(decisions)
    issued: dict[str, IssuedPair] = {}
    files: list[NewFile] = []
    for decision in decisions:
        if not isinstance(decision, Issue):
            continue
        spec = certificate(decision.name)
        signer = issued.get(spec.ca) or observed[certificate(spec.ca).base_name].as_signer() if spec.ca else None
        issued[spec.name] = issue_certificate(spec, inputs, signer, keys, started_at)
        files += pair_files(spec.base_name, issued[spec.name])
    return tuple(files)
