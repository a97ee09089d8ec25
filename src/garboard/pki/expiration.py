"""When certificates expire: the table and the document of `certs check-expiration`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.pki.chain import read_certificates
from garboard.pki.credentials import ObservedKubeconfig
from garboard.pki.decide import authority_state
from garboard.pki.files import ObservedPairs, Unreadable
from garboard.pki.spec import KUBECONFIGS, CertSpec, KubeconfigSpec, certificate, expected_certificates

_API_VERSION = "output.kubeadm.k8s.io/v1alpha3"


class ExpiringSoon(GarboardError):
    """A certificate that expires within the time that was asked about."""

    exit_code = 10
    default_class = "expiring"


@dataclass(frozen=True, slots=True)
class Expiration:
    """One line of the answer; without `expires_at` there is no such certificate. A CA has no `ca_name`."""

    name: str
    expires_at: datetime | None = None
    ca_name: str = ""
    is_externally_managed: bool = False


@dataclass(frozen=True, slots=True)
class ExpirationReport:
    certificates: tuple[Expiration, ...]
    authorities: tuple[Expiration, ...]


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """The certificates and kubeconfigs of one node, for expiration and renewal."""

    pairs: ObservedPairs
    kubeconfigs: Mapping[str, ObservedKubeconfig | None]


def expiration_report(observed: ObservedNode, now: datetime, *, has_external_etcd: bool = False) -> ExpirationReport:
    """Return when each certificate and each CA expires, in the order of their names."""
    specs = expected_certificates(has_external_etcd=has_external_etcd)
    leafs = [_of_leaf(spec, observed, now) for spec in specs if not spec.is_ca]
    leafs += [_of_kubeconfig(spec, observed, now) for spec in KUBECONFIGS if spec.is_renewable]
    authorities = [_of_authority(spec, observed, now) for spec in specs if spec.is_ca]
    return ExpirationReport(_by_name(leafs), _by_name(authorities))


def _by_name(entries: Iterable[Expiration]) -> tuple[Expiration, ...]:
    return tuple(sorted(entries, key=lambda each: each.name))


def _of_leaf(spec: CertSpec, observed: ObservedNode, now: datetime) -> Expiration:
    pair = observed.pairs[spec.base_name]
    if pair.chain is None or spec.ca is None:
        return Expiration(spec.name)
    is_external = is_externally_managed(spec.ca, observed, now)
    if isinstance(pair.chain, Unreadable):
        raise _unreadable(pair.chain.reason)
    return Expiration(spec.name, pair.chain[0].not_valid_after_utc, spec.ca, is_external)


def _of_kubeconfig(spec: KubeconfigSpec, observed: ObservedNode, now: datetime) -> Expiration:
    found = observed.kubeconfigs.get(spec.file_name)
    if found is None:
        return Expiration(spec.file_name)
    is_external = is_externally_managed("ca", observed, now)
    return Expiration(spec.file_name, embedded_certificate(found).not_valid_after_utc, "ca", is_external)


def _of_authority(spec: CertSpec, observed: ObservedNode, now: datetime) -> Expiration:
    pair = observed.pairs[spec.base_name]
    if pair.chain is None:
        return Expiration(spec.name)
    is_external = is_externally_managed(spec.name, observed, now)
    assert pair.certificate is not None, "an unreadable CA has been refused just above"
    return Expiration(spec.name, pair.certificate.not_valid_after_utc, "", is_external)


def expiring(report: ExpirationReport, now: datetime, within: timedelta) -> tuple[Expiration, ...]:
    """Return the certificates and authorities that have expired, or do so within a time; the first one first."""
    every = (*report.certificates, *report.authorities)
    found = [each for each in every if each.expires_at and each.expires_at <= now + within]
    return tuple(sorted(found, key=lambda each: (each.expires_at or now, each.name)))


def refuse_expiring(report: ExpirationReport, now: datetime, within: timedelta) -> None:
    """Raise `ExpiringSoon` if anything expires within a time."""
    found = expiring(report, now, within)
    if found:
        told = ", ".join(f"{each.name} on {each.expires_at:%Y-%m-%d %H:%M} UTC" for each in found)
        renew = "garboard certs renew all --restart, on each control-plane node"
        hint = f"{renew}; an authority is not renewed by that: plan its replacement"
        is_leaf = not any(each in report.authorities for each in found)
        raise ExpiringSoon(f"these certificates expire: {told}", hint=renew if is_leaf else hint)


def is_externally_managed(ca: str, observed: ObservedNode, now: datetime) -> bool:
    """Whether the key of the CA is elsewhere; a CA that is not usable, or externally managed in part, is refused."""
    state = authority_state(ca, observed.pairs, now)
    if state.problem:
        name = certificate(ca).base_name
        raise GarboardError(
            f"cannot tell whether the certificate authority {name} is external: {state.problem}",
            hint="pass --cert-dir if the certificates live elsewhere, or restore the file",
            error_class="bad-authority",
        )
    return state.is_external


def embedded_certificate(found: ObservedKubeconfig) -> x509.Certificate:
    """Return the client certificate inside a kubeconfig; one without it is refused."""
    if isinstance(found.current, Unreadable):
        raise _unreadable(found.current.reason)
    if not found.current.ca:
        raise _unreadable(f"{found.path} does not have an embedded server certificate", _EMBED_HINT)
    if not found.current.client_certificate:
        raise _unreadable(f"{found.path} does not have an embedded client certificate", _EMBED_HINT)
    try:
        return read_certificates(found.current.client_certificate)[0]
    except GarboardError:
        raise _unreadable(f"{found.path} does not contain a valid client certificate") from None


_EMBED_HINT = (
    "put the signed certificate into it as client-certificate-data and the authority's as certificate-authority-data,"
    " both in base64"
)


def _unreadable(reason: str, hint: str = "restore the file from a backup") -> GarboardError:
    return GarboardError(reason, hint=hint, error_class="unreadable")


def report_document(report: ExpirationReport, now: datetime) -> dict[str, Json]:
    """Return the report as the document that kubeadm prints with `-o json`."""
    return {
        "kind": "CertificateExpirationInfo",
        "apiVersion": _API_VERSION,
        "certificates": [_entry(each, now) for each in report.certificates],
        "certificateAuthorities": [_entry(each, now) for each in report.authorities],
    }


def _entry(entry: Expiration, now: datetime) -> dict[str, Json]:
    expires_at = entry.expires_at
    fields: dict[str, Json] = {
        "name": entry.name,
        "expirationDate": f"{expires_at:%Y-%m-%dT%H:%M:%SZ}" if expires_at else None,
        "residualTime": _residual_s(expires_at, now) if expires_at else 0,
        "externallyManaged": entry.is_externally_managed,
        "caName": entry.ca_name,
        "missing": expires_at is None,
    }
    return {key: value for key, value in fields.items() if key != "caName" or value}


def report_text(report: ExpirationReport, now: datetime) -> str:
    """Return the two tables that kubeadm prints."""
    leafs = ["CERTIFICATE", "EXPIRES", "RESIDUAL TIME", "CERTIFICATE AUTHORITY", "EXTERNALLY MANAGED"]
    authorities = ["CERTIFICATE AUTHORITY", "EXPIRES", "RESIDUAL TIME", "EXTERNALLY MANAGED"]
    return (
        _table([leafs, *(_row(each, now, [each.ca_name]) for each in report.certificates)])
        + "\n"
        + _table([authorities, *(_row(each, now, []) for each in report.authorities)])
    )


def _row(entry: Expiration, now: datetime, ca: list[str]) -> list[str]:
    if entry.expires_at is None:
        return [f"!MISSING! {entry.name}", "", "", *("" for _ in ca), ""]
    residual = human_duration(_residual_s(entry.expires_at, now))
    managed = "yes" if entry.is_externally_managed else "no"
    return [entry.name, f"{entry.expires_at:%b %d, %Y %H:%M} UTC", residual, *ca, f"{managed:<8}"]


def _residual_s(expires_at: datetime, now: datetime) -> int:
    # Towards zero, as Go divides.
    return int((expires_at - now).total_seconds())


def _table(rows: list[list[str]]) -> str:
    """Align all columns but the last: three spaces between them, none narrower than ten."""
    widths = [max(10, *(len(row[column]) + 3 for row in rows)) for column in range(len(rows[0]) - 1)]
    lines = ("".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)) + row[-1] for row in rows)
    return "".join(f"{line}\n" for line in lines)


def human_duration(seconds: int) -> str:
    """Return a length of time as kubectl shows ages: two units while that says something, then one."""
    if seconds < 0:
        return "0s" if seconds == -1 else "<invalid>"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two_units(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two_units(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    return _two_units(days // 365, "y", days % 365, "d") if days < 8 * 365 else f"{days // 365}y"


def _two_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}" + (f"{small}{small_unit}" if small else "")
