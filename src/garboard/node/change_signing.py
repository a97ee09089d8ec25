"""Certificates of this node that an external authority signs: their keys and requests are written, and then waited for.

Nothing is held meanwhile: the same command goes on once the signed certificates are there.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Protocol

from garboard.change.outcomes import ChangeUnsigned
from garboard.change.plan import NodeChange
from garboard.model.go import join_path
from garboard.node.reporter import Reporter
from garboard.phases.issuing import SignedRequest
from garboard.pki import certificate
from garboard.pki.external import WaitingFiles, asks_for, new_request, signed_problem, usage_names
from garboard.pki.files import NewFiles, write_files
from garboard.pki.keys import SystemKeys


class SigningMachine(Protocol):
    """The machine, as far as folders of certificates are asked for."""

    def folder(self, path: str) -> NewFiles: ...


def wanted_signatures(parts: tuple[NodeChange, ...]) -> tuple[SignedRequest, ...]:
    """Return the certificates of a plan that are not issued here."""
    issues = (issue for part in parts for step in part.steps for issue in step.issues)
    return tuple(each.request for each in issues if isinstance(each.request, SignedRequest))


def write_requests(wanted: tuple[SignedRequest, ...], machine: SigningMachine, reporter: Reporter) -> None:
    """Write a key and a request for each certificate, unless those that wait ask for the same."""
    for each in wanted:
        folder, spec = machine.folder(each.waiting), each.spec
        if asks_for(WaitingFiles.read(folder, spec), spec, each.inputs):
            continue
        files = new_request(spec, each.inputs, SystemKeys(), datetime.now(UTC))
        for file in files:
            if folder.read(file.name) is not None:
                folder.remove(file.name)  # it asked for something else
        write_files(folder, files)
        reporter.report(f"[change] wrote {each.path('key')} and {each.path('csr')}")


def refuse_unsigned(parts: tuple[NodeChange, ...], machine: SigningMachine, reporter: Reporter) -> None:
    """Refuse to begin while certificates are not signed; what has to be signed is written, and told."""
    wanted = wanted_signatures(parts)
    write_requests(wanted, machine, reporter)
    told = [text for each in wanted for text in _unsigned(each, machine)]
    if told:
        raise ChangeUnsigned(
            f"{len(told)} {'certificate has' if len(told) == 1 else 'certificates have'} to be signed first:"
            + "".join(f"\n  {text}" for text in told),
            hint="nothing was changed; once the certificates are there, the same command goes on",
        )


def _unsigned(request: SignedRequest, machine: SigningMachine) -> Iterator[str]:
    """Yield what has to be signed by whom and where it goes; nothing for a certificate that is good."""
    spec, tree = request.spec, machine.folder(request.folder)
    authority = certificate(spec.ca or "ca").base_name
    problem = signed_problem(
        WaitingFiles.read(machine.folder(request.waiting), spec),
        spec,
        request.inputs,
        authority=tree.read(f"{authority}.crt"),
        former=tree.read(f"{spec.base_name}.crt"),
        now=datetime.now(UTC),
    )
    if problem:
        signer = join_path(request.folder, f"{authority}.crt")
        usages = ", ".join(usage_names(spec))
        yield (f"{request.path('crt')}: {problem}; the authority of {signer} signs {request.path('csr')}, for {usages}")
