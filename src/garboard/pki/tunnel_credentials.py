"""The credentials of a tunnel's agent in a folder as `tunnel certs` makes it: read, and checked before any use."""

from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import datetime

from garboard.errors import InvalidValue, NotReady
from garboard.model.tunnel import AGENT_CERTIFICATE, AGENT_KEY, CA_FILE
from garboard.pki.chain import chain_problem, period_problem, read_certificates
from garboard.pki.files import Folder
from garboard.pki.keys import read_private_key
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCredentials:
    """What an agent shows to the tunnel's servers, and what it knows them by; each with its file."""

    ca: bytes
    certificate: bytes
    key: bytes = field(repr=False)
    paths: tuple[str, str, str]  # of the three


def read_agent_credentials(folder: Folder, node_name: str, now: datetime) -> AgentCredentials:
    """Read the credentials for a node: a pair of its own (`--agent NAME`), or the one that all agents share.

    What is missing, is not valid now or does not belong together is refused, all of it at once.
    """
    own = f"agent-{node_name}"
    is_own = folder.read(f"{own}.crt") is not None or folder.read(f"{own}.key") is not None
    names = (CA_FILE, f"{own}.crt", f"{own}.key") if is_own else (CA_FILE, AGENT_CERTIFICATE, AGENT_KEY)
    ca, certificate, key = map(folder.read, names)
    missing = [f"there is no {folder.path_of(name)}" for name in names if folder.read(name) is None]
    if ca is None or certificate is None or key is None:
        raise _refused(folder, node_name, missing)
    problems = list(_problems(names, ca, certificate, key, now))
    if problems:
        raise _refused(folder, node_name, problems)
    found = (folder.path_of(names[0]), folder.path_of(names[1]), folder.path_of(names[2]))
    return AgentCredentials(ca=ca, certificate=certificate, key=key, paths=found)


def _problems(names: tuple[str, str, str], ca: bytes, certificate: bytes, key: bytes, now: datetime) -> Iterator[str]:
    """Yield why the three cannot be used together."""
    try:
        authority, chain = read_certificates(ca)[0], read_certificates(certificate)
        private = read_private_key(key)
    except InvalidValue:
        yield from _unreadable(names, ca, certificate, key)
        return
    expired = [(name, period_problem(each, now)) for name, each in ((names[0], authority), (names[1], chain[0]))]
    yield from (f"{name}: {problem}" for name, problem in expired if problem)
    if not any(problem for _, problem in expired) and (problem := chain_problem(chain, authority, now)):
        yield f"{names[1]} is not of the authority {names[0]}: {problem}"
    if chain[0].public_key() != private.public_key():
        yield f"{names[2]} is not the key of {names[1]}"


def _unreadable(names: tuple[str, str, str], ca: bytes, certificate: bytes, key: bytes) -> Iterator[str]:
    readers: tuple[Callable[[bytes], object], ...] = (read_certificates, read_certificates, read_private_key)
    for name, read, data in zip(names, readers, (ca, certificate, key), strict=True):
        try:
            read(data)
        except InvalidValue as error:
            yield f"{name}: {error.message}"


def _refused(folder: Folder, node_name: str, problems: list[str]) -> NotReady:
    place = folder.path_of("").rstrip("/")
    return NotReady(
        f"the credentials of the tunnel in {place} cannot be used; nothing has been changed: {'; '.join(problems)}",
        hint=f"where the tunnel's ca.key is: garboard tunnel certs -o DIR --server-name HOST --agent {node_name}; then "
        f"copy {CA_FILE} and agent-{node_name}.crt and .key here",
        error_class="tunnel-credentials",
    )
