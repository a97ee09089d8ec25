"""`create ignition-configs` of the installer `garboard`: the edited manifests are checked and become bundles.

A bundle is what one host is given: its kubeadm documents and patches, and for the first control plane the cluster's
authority. The authority is made here, so that a cluster can be told from every other one before a host is changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime

from garboard.config import ConfigFile, FixedFacts, ReadOptions
from garboard.documents import Json, equal, read_yaml, write_yaml
from garboard.errors import BadDocument, GarboardError
from garboard.fleet.installers.contract import InstallMetadata
from garboard.fleet.installers.host_config import FleetHost, HostsConfig
from garboard.fleet.installers.hosts_metadata import HostsMetadata
from garboard.fleet.installers.manifests import host_document, patch_path, patch_skeletons
from garboard.model import DEFAULT_VERSION, KubernetesVersion
from garboard.model.lifecycle import InitConfiguration
from garboard.patches import (
    NodeFacts,
    PatchFile,
    PatchSubject,
    apply_patches,
    copy_of,
    read_patch_tree,
    targets_of,
)
from garboard.pki import KUBECONFIGS, certificate
from garboard.pki.chain import authority_pins
from garboard.pki.credentials import kubeconfig_file
from garboard.pki.files import IssuedPair
from garboard.pki.inputs import PkiInputs, inputs_of
from garboard.pki.issue import certificate_pem, issue_certificate
from garboard.pki.keys import KeySource, private_key_pem
from garboard.schema import Schema, load_schema
from garboard.values import dataclass

CONFIG = "kubeadm.yaml"
AUTHORITY, AUTHORITY_KEY = "pki/ca.crt", "pki/ca.key"
_INIT_KINDS = ("ClusterConfiguration", "KubeletConfiguration", "KubeProxyConfiguration")
_ADDONS = "addons/"
# What joins takes longer than this to be repaired is given a new token, see `garboard.node.fleet`.
_TOKEN_TTL = "24h0m0s"


@dataclass(frozen=True, slots=True)
class BundleSecrets:
    """What the nodes of a cluster share until they have joined; never shown."""

    token: str = field(repr=False)
    certificate_key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundles:
    """What `create ignition-configs` makes: files for each host by their name there, addons, and the credentials."""

    files: Mapping[str, Mapping[str, str]] = field(repr=False)
    addons: tuple[dict[str, Json], ...]
    metadata: HostsMetadata
    kubeconfig: bytes = field(repr=False)


def build_bundles(
    config: HostsConfig,
    tree: Mapping[str, bytes],
    metadata: InstallMetadata,
    secrets: BundleSecrets,
    keys: KeySource,
    now: datetime,
) -> Bundles:
    """Check the manifests as they were edited, and return what `create cluster` needs; all problems are named."""
    manifests = _EditedTree(config, tree)
    init = manifests.init(secrets)
    inputs = inputs_of(init)
    ca = issue_certificate(certificate("ca"), inputs, None, keys, now)
    pem = certificate_pem(ca.certificate)
    version = init.cluster.release
    files = {host.name: manifests.files(host, secrets, pem, version) for host in config.hosts}
    first = config.control_planes[0].name
    files[first] = {**files[first], AUTHORITY: pem.decode(), AUTHORITY_KEY: private_key_pem(ca.key).decode()}
    return Bundles(
        files=files,
        addons=manifests.addons(),
        metadata=HostsMetadata(metadata, authority_pins(pem)[0], config.hosts),
        kubeconfig=_admin(inputs, ca, keys, now),
    )


def _admin(inputs: PkiInputs, ca: IssuedPair, keys: KeySource, now: datetime) -> bytes:
    spec = next(each for each in KUBECONFIGS if each.name == "admin")
    return kubeconfig_file(spec, inputs, ca, keys, now).data


class _EditedTree:
    """The manifests on disk, as patches have left them."""

    def __init__(self, config: HostsConfig, tree: Mapping[str, bytes]) -> None:
        self._config, self._tree = config, tree

    def init(self, secrets: BundleSecrets) -> InitConfiguration:
        """Return the configuration of the first control plane, defaulted and checked."""
        host = self._config.control_planes[0]
        loaded = self._file(host, self._init_text(host, secrets), DEFAULT_VERSION).init()
        self._refuse_other_name(host, loaded.config.node_registration.name)
        return loaded.config

    def files(self, host: FleetHost, secrets: BundleSecrets, ca: bytes, version: KubernetesVersion) -> dict[str, str]:
        """Return the files of a host by their name there."""
        if host == self._config.control_planes[0]:
            text = self._init_text(host, secrets)
        else:
            text = self._join_text(host, secrets, ca)
            joined = self._file(host, text, version).join().config
            self._refuse_other_name(host, joined.node_registration.name)
            if (joined.control_plane is not None) != host.is_control_plane:
                raise _refused(host_document(self._config, host), f"{host.name} has the role {host.role}")
        return {CONFIG: text, **self._patches(host, version)}

    def addons(self) -> tuple[dict[str, Json], ...]:
        return tuple(self._read(path) for path in sorted(self._tree) if path.startswith(_ADDONS))

    def _file(self, host: FleetHost, text: str, version: KubernetesVersion) -> ConfigFile:
        facts = FixedFacts(host=host.name, address=host.address)
        path, options = host_document(self._config, host), ReadOptions(is_strict=True, detects_cri=False)
        return ConfigFile.read(text, file=path, host=facts, options=options, version=version)

    def _init_text(self, host: FleetHost, secrets: BundleSecrets) -> str:
        document = self._read(host_document(self._config, host))
        given = document.get("bootstrapTokens")
        tokens: list[Json] = [{"token": secrets.token, "ttl": _TOKEN_TTL}, *(given if isinstance(given, list) else [])]
        init: dict[str, Json] = {
            **document, "bootstrapTokens": tokens, "certificateKey": secrets.certificate_key
        }  # fmt: skip
        shared = (self._read(f"kubeadm/{kind}.yaml") for kind in _INIT_KINDS)
        return "---\n".join(map(write_yaml, (init, *shared)))

    def _join_text(self, host: FleetHost, secrets: BundleSecrets, ca: bytes) -> str:
        document = self._read(host_document(self._config, host))
        discovery = _mapping(document, "discovery")
        own: dict[str, Json] = {"token": secrets.token, "caCertHashes": list(authority_pins(ca))}
        token = {**_mapping(discovery, "bootstrapToken"), **own}
        joined: dict[str, Json] = {**document, "discovery": {**discovery, "bootstrapToken": token}}
        if host.is_control_plane:
            joined["controlPlane"] = {**_mapping(document, "controlPlane"), "certificateKey": secrets.certificate_key}
        return write_yaml(joined)

    def _patches(self, host: FleetHost, version: KubernetesVersion) -> dict[str, str]:
        """Return the patches that were edited, by the names that kubeadm has for them; others change nothing."""
        edited = {
            f"patches/{target}+strategic.yaml": self._read(patch_path(host, target))
            for target, skeleton in patch_skeletons(host).items()
            if not equal(self._read(patch_path(host, target)), skeleton)
        }
        found = {name: write_yaml(document) for name, document in edited.items()}
        files = [PatchFile(name.removeprefix("patches/"), name, text.encode) for name, text in found.items()]
        try:
            _try(files, host, load_schema(version))
        except GarboardError as error:
            raise _refused(f"hosts/{host.name}", error.message) from error
        return found

    def _read(self, path: str) -> dict[str, Json]:
        data = self._tree.get(path)
        if data is None:
            raise _refused(path, "it has gone")
        document = read_yaml(data, source=path)
        if not isinstance(document, dict):
            raise _refused(path, "it is no object")
        return document

    def _refuse_other_name(self, host: FleetHost, name: str) -> None:
        if name != host.name:
            path = host_document(self._config, host)
            raise _refused(path, f"nodeRegistration.name is {name!r}, and the host is {host.name}")


def _try(files: Sequence[PatchFile], host: FleetHost, schema: Schema) -> None:
    """Apply patches to what changes nothing: what is refused there would be refused on the host, too."""
    patch_set = read_patch_tree(files, schema, NodeFacts(host.name, host.role))
    targets = {each.name: each for each in targets_of(schema.version)}
    for name, skeleton in patch_skeletons(host).items():
        mine = patch_set.for_target(targets[name])
        apply_patches(copy_of(skeleton), mine, PatchSubject.of_target(targets[name], schema))


def _refused(path: str, message: str) -> BadDocument:
    return BadDocument(
        f"{path}: {message}",
        hint="look at what installerManifestPatches make of it: garboard fleet render",
        error_class="bad-manifest",
    )


def _mapping(document: Mapping[str, Json], name: str) -> dict[str, Json]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}
