"""The certificates of one cluster's tunnel: an authority of its own, and one certificate for each place of use."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from garboard.errors import InvalidValue
from garboard.pki.chain import read_certificates
from garboard.pki.files import CERTIFICATE_MODE, SECRET_MODE, Folder, NewFile
from garboard.pki.issue import IssuedPair, certificate_pem, issue_ca, issue_leaf
from garboard.pki.keys import KeySource, private_key_pem, read_private_key
from garboard.pki.names import NO_NAMES, AltNames, sort_names
from garboard.pki.spec import (
    BACKDATE,
    CA_CERTIFICATE_VALIDITY,
    CERTIFICATE_VALIDITY,
    CLIENT_AUTH,
    SERVER_AUTH,
    CertRequest,
    KeyAlgorithm,
)

CA: Final = "ca"
AGENT_GROUP: Final = "system:konnectivity-agents"


@dataclass(frozen=True, slots=True)
class Place:
    """One certificate: the name of its files, its subject, and what it is for."""

    base_name: str
    common_name: str
    usage: str
    is_for_agents: bool = False
    names: AltNames = NO_NAMES

    @property
    def organizations(self) -> tuple[str, ...]:
        return (AGENT_GROUP,) if self.is_for_agents else ()


def places(server_names: Iterable[str], agents: Iterable[str]) -> tuple[Place, ...]:
    """Where certificates are used: the port for agents, the port for API servers, API servers, and each agent."""
    sorted_names = sort_names(server_names)
    if sorted_names.rejected:
        raise InvalidValue(
            f"{sorted_names.rejected[0]!r} is neither a DNS name nor an address",
            hint="name the servers as agents call them",
        )
    local = sort_names(("localhost", "127.0.0.1", "::1")).names
    return (
        Place("server", "konnectivity-server", SERVER_AUTH, names=sorted_names.names),
        Place("front", "konnectivity-front", SERVER_AUTH, names=sorted_names.names + local),
        Place("apiserver", "kube-apiserver-konnectivity-client", CLIENT_AUTH),
        *(
            Place("agent" if not name else f"agent-{name}", f"system:konnectivity-agent:{name or 'all'}", CLIENT_AUTH,
                  is_for_agents=True)
            for name in agents
        ),
    )  # fmt: skip


def plan_certificates(
    wanted: Iterable[Place],
    folder: Folder,
    keys: KeySource,
    now: datetime,
    *,
    validity: timedelta = CERTIFICATE_VALIDITY,
) -> tuple[NewFile, ...]:
    """The files that are missing. An authority that is there signs; certificates that are there stay as they are."""
    authority, files = _authority(folder, keys, now)
    for place in wanted:
        if folder.read(f"{place.base_name}.crt") is None or folder.read(f"{place.base_name}.key") is None:
            request = CertRequest(
                common_name=place.common_name,
                organizations=place.organizations,
                usages=(place.usage,),
                alt_names=place.names,
                not_before=now - BACKDATE,
                not_after=now + validity,
            )
            files += _pair(place.base_name, issue_leaf(request, authority, KeyAlgorithm.ECDSA_P256, keys))
    return files


def _authority(folder: Folder, keys: KeySource, now: datetime) -> tuple[IssuedPair, tuple[NewFile, ...]]:
    certificate, key = folder.read(f"{CA}.crt"), folder.read(f"{CA}.key")
    if certificate is not None and key is not None:
        return IssuedPair(read_certificates(certificate)[0], read_private_key(key)), ()
    if certificate is not None or key is not None:
        raise InvalidValue(
            f"of {folder.path_of(f'{CA}.crt')} and {folder.path_of(f'{CA}.key')} only one is there",
            hint="put the other beside it, or move it away to have a new authority made",
        )
    request = CertRequest(
        common_name="konnectivity-ca", not_before=now - BACKDATE, not_after=now + CA_CERTIFICATE_VALIDITY
    )
    made = issue_ca(request, KeyAlgorithm.ECDSA_P256, keys)
    return made, _pair(CA, made)


def _pair(base_name: str, pair: IssuedPair) -> tuple[NewFile, ...]:
    return (
        NewFile(f"{base_name}.crt", certificate_pem(pair.certificate), CERTIFICATE_MODE),
        NewFile(f"{base_name}.key", private_key_pem(pair.key), SECRET_MODE),
    )
