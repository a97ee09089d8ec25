"""The files of a node as a part of a snapshot: texts, and of certificates and kubeconfigs what everybody may see."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

import msgspec
from cryptography import x509

from garboard.change.snapshot import CertificateFacts, NodeSettings, SnapshotNode, Texts
from garboard.documents import read_yaml
from garboard.errors import GarboardError
from garboard.manifests.kubelet import CONFIG_FILE, FLAGS_FILE, INSTANCE_CONFIG_FILE
from garboard.model.paths import ADMIN_CONF, CONTROLLER_MANAGER_CONF, KUBELET_CONF, SCHEDULER_CONF, SUPER_ADMIN_CONF
from garboard.pki.chain import names_of, read_certificates
from garboard.pki.keys import algorithm_of
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.pki.spec import CERTIFICATES
from garboard.values import dataclass

KUBECONFIG_PATHS = (ADMIN_CONF, SUPER_ADMIN_CONF, CONTROLLER_MANAGER_CONF, SCHEDULER_CONF, KUBELET_CONF)
KUBELET_PATHS = (CONFIG_FILE, FLAGS_FILE, INSTANCE_CONFIG_FILE)
CERTIFICATE_NAMES = tuple(f"{spec.base_name}.crt" for spec in CERTIFICATES)
# Where the kubelet keeps the certificate that it renews by itself; its kubeconfig names the file.
KUBELET_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
_SOCKET = re.compile(r"(?m)^containerRuntimeEndpoint:\s*\"?([^\"\s]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedFiles:
    """What was read of a node, by path; of `certificates` by the name below their folder."""

    manifests: Mapping[str, bytes] = field(default_factory=dict)  # by component
    kubelet: Mapping[str, bytes] = field(default_factory=dict)
    kubeconfigs: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    certificates: Mapping[str, bytes] = field(default_factory=dict)
    host_paths: Mapping[str, str] = field(default_factory=dict)
    ca_directories: tuple[str, ...] = ()


def with_files(node: SnapshotNode, files: ObservedFiles) -> SnapshotNode:
    """Return a node with what its own files say."""
    socket = _SOCKET.search(_text(files.kubelet.get(INSTANCE_CONFIG_FILE, b"")))
    settings = node.settings
    if socket:
        settings = NodeSettings(
            cri_socket=socket[1],
            taints=settings.taints,
            provider_id=settings.provider_id,
            pod_cidrs=settings.pod_cidrs,
        )
    return msgspec.structs.replace(
        node,
        settings=settings,
        manifests={name: _text(data) for name, data in sorted(files.manifests.items())},
        kubelet_config=_text(files.kubelet.get(CONFIG_FILE, b"")),
        kubelet_flags=_text(files.kubelet.get(FLAGS_FILE, b"")),
        instance_config=_text(files.kubelet.get(INSTANCE_CONFIG_FILE, b"")),
        kubeconfigs=_servers(files.kubeconfigs),
        certificates=[*_certificates(files.certificates), *_embedded(files.kubeconfigs)],
        host_paths=dict(sorted(files.host_paths.items())),
        ca_directories=sorted(files.ca_directories),
    )


def mounted_paths(manifests: Iterable[bytes]) -> tuple[str, ...]:
    """Return the paths of the host that static pods mount; a manifest that cannot be read has none."""
    return tuple(sorted({path for each in manifests for path in _paths(each)}))


def _paths(manifest: bytes) -> Iterator[str]:
    try:
        document = read_yaml(manifest, source="manifest")
    except GarboardError:
        return
    spec = document.get("spec") if isinstance(document, dict) else None
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    for volume in volumes if isinstance(volumes, list) else ():
        source = volume.get("hostPath") if isinstance(volume, dict) else None
        path = source.get("path") if isinstance(source, dict) else None
        if isinstance(path, str):
            yield path


def _servers(kubeconfigs: Mapping[str, bytes]) -> Texts:
    found = {}
    for path, data in sorted(kubeconfigs.items()):
        try:
            found[path] = read_kubeconfig(data, path).server
        except GarboardError:
            found[path] = ""
    return found


def _certificates(files: Mapping[str, bytes]) -> Iterator[CertificateFacts]:
    for name, data in sorted(files.items()):
        yield _facts(name, data)


def _embedded(kubeconfigs: Mapping[str, bytes]) -> Iterator[CertificateFacts]:
    for path, data in sorted(kubeconfigs.items()):
        try:
            certificate = read_kubeconfig(data, path).client_certificate
        except GarboardError:
            continue
        if certificate:
            yield _facts(path, certificate)


def _facts(path: str, pem: bytes) -> CertificateFacts:
    """Return what a certificate says; of one that cannot be read, only that it is there."""
    try:
        found = read_certificates(pem)[0]
        names = names_of(found)
        algorithm = algorithm_of(found.public_key())
        return CertificateFacts(
            path=path,
            subject=found.subject.rfc4514_string(),
            not_after=found.not_valid_after_utc.isoformat().replace("+00:00", "Z"),
            sans=[*names.dns, *map(str, names.ips)],
            key=algorithm.value if algorithm else "",
            issuer=found.issuer.rfc4514_string(),
        )
    except (GarboardError, ValueError, x509.UnsupportedGeneralNameType):
        return CertificateFacts(path=path)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
