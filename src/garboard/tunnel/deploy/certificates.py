"""The certificates of one cluster's tunnel: an authority of its own, and one certificate for each use."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from garboard.errors import InvalidValue
from garboard.pki.chain import read_certificates
from garboard.pki.files import CERTIFICATE_MODE, SECRET_MODE, Folder, IssuedPair, NewFile
from garboard.pki.inputs import CA_CERTIFICATE_VALIDITY, CERTIFICATE_VALIDITY, KeyAlgorithm
from garboard.pki.issue import certificate_pem, issue_ca, issue_leaf
from garboard.pki.keys import KeySource, private_key_pem, read_private_key
from garboard.pki.names import NO_NAMES, AltNames, sort_names
from garboard.pki.spec import BACKDATE, CLIENT_AUTH, SERVER_AUTH, CertRequest

CA: Final = "ca"
AGENT_GROUP: Final = "system:konnectivity-agents"


@dataclass(frozen=True, slots=True)
class TunnelCertificate:
    """One certificate: the name of its files, its subject, and what it is for."""

    base_name: str
    common_name: str
    usage: str
    is_for_agents: bool = False
    names: AltNames = NO_NAMES

    @property
    def organizations(self) -> tuple[str, ...]:
        return (AGENT_GROUP,) if self.is_for_agents else ()


def tunnel_certificates(server_names: Iterable[str], agents: Iterable[str]) -> tuple[TunnelCertificate, ...]:
    """The certificates of the port for agents, the port for API servers, the API servers, and each agent."""
    sorted_names = sort_names(server_names)
    if sorted_names.rejected:
        raise InvalidValue(
            f"{sorted_names.rejected[0]!r} is neither a DNS name nor an address",
            hint="name the servers as agents call them",
        )
    local = sort_names(("localhost", "127.0.0.1", "::1")).names
    return (
        TunnelCertificate("server", "konnectivity-server", SERVER_AUTH, names=sorted_names.names),
        TunnelCertificate("front", "konnectivity-front", SERVER_AUTH, names=sorted_names.names + local),
        TunnelCertificate("apiserver", "kube-apiserver-konnectivity-client", CLIENT_AUTH),
        *(
            TunnelCertificate(f"agent-{name}" if name else "agent", f"system:konnectivity-agent:{name or 'all'}",
                              CLIENT_AUTH, is_for_agents=True)
            for name in agents
        ),
    )  # fmt: skip


def plan_certificates(
    wanted: Iterable[TunnelCertificate],
    folder: Folder,
    keys: KeySource,
    now: datetime,
    *,
    validity: timedelta = CERTIFICATE_VALIDITY,
) -> tuple[NewFile, ...]:
    """The files that are missing. An authority that is there signs; certificates that are there stay as they are."""
    authority, files = _authority(folder, keys, now)
    for each in wanted:
        if not _has_pair(folder, each.base_name):
            request = CertRequest(
                common_name=each.common_name,
                organizations=each.organizations,
                usages=(each.usage,),
                alt_names=each.names,
                not_before=now - BACKDATE,
                not_after=now + validity,
            )
            files += _pair(each.base_name, issue_leaf(request, authority, KeyAlgorithm.ECDSA_P256, keys))
    return files


def _authority(folder: Folder, keys: KeySource, now: datetime) -> tuple[IssuedPair, tuple[NewFile, ...]]:
    certificate, key = folder.read(f"{CA}.crt"), folder.read(f"{CA}.key")
    if certificate is not None and key is not None:
        return IssuedPair(read_certificates(certificate)[0], read_private_key(key)), ()
    _has_pair(folder, CA)
    request = CertRequest(
        common_name="konnectivity-ca", not_before=now - BACKDATE, not_after=now + CA_CERTIFICATE_VALIDITY
    )
    made = issue_ca(request, KeyAlgorithm.ECDSA_P256, keys)
    return made, _pair(CA, made)


def _has_pair(folder: Folder, base_name: str) -> bool:
    """Say whether a certificate and its key are there; half of a pair is refused, and never replaced."""
    names = (f"{base_name}.crt", f"{base_name}.key")
    found = [name for name in names if folder.read(name) is not None]
    if len(found) == 1:
        raise InvalidValue(
            f"of {' and '.join(map(folder.path_of, names))} only one is there",
            hint="put the other beside it, or move it away to have both made",
        )
    return bool(found)


def _pair(base_name: str, pair: IssuedPair) -> tuple[NewFile, ...]:
    return (
        NewFile(f"{base_name}.crt", certificate_pem(pair.certificate), CERTIFICATE_MODE),
        NewFile(f"{base_name}.key", private_key_pem(pair.key), SECRET_MODE),
    )
