"""What must hold for Init-, Join-, Reset- and UpgradeConfiguration, each rule in kubeadm's words and order."""

import re
from collections.abc import Iterator

from garboard.config.decoding import DecodedObject
from garboard.config.dynamic_defaults import HostFacts
from garboard.config.problems import ConfigNotes, FieldPath, Problem
from garboard.config.validate_cluster import args_problems, cluster_problems, path_problems
from garboard.errors import InvalidValue
from garboard.model.addresses import parse_ip, split_host_port, url_scheme
from garboard.model.go import go_quote
from garboard.model.lifecycle import (
    DEFAULT_TOKEN_USAGES,
    BootstrapToken,
    FileDiscovery,
    InitConfiguration,
    JoinConfiguration,
    ResetConfiguration,
    TokenDiscovery,
    UpgradeConfiguration,
)
from garboard.model.names import is_bootstrap_token, is_token_group, subdomain_problems
from garboard.model.node import ApiEndpoint, NodeRegistration

_CERTIFICATE_KEY_SIZE = 32
_UNMOUNT_FLAGS = ("MNT_FORCE", "MNT_DETACH", "MNT_EXPIRE", "UMOUNT_NOFOLLOW")
_GROUP_PATTERN = r"\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z"
_NO_NAME = (
    "--node-name or .nodeRegistration.name in the config file is a required value. It seems like this value couldn't "
    "be automatically detected in your environment, please specify the desired value using the CLI or config file."
)
_UNSAFE_DISCOVERY = (
    "using token-based discovery without caCertHashes can be unsafe. Set unsafeSkipCAVerification as true in your "
    "kubeadm config file or pass --discovery-token-unsafe-skip-ca-verification flag to continue"
)


def init_problems(init: InitConfiguration, notes: ConfigNotes) -> Iterator[Problem]:
    yield from _registration_problems(init.node_registration)
    for index, token in enumerate(init.bootstrap_tokens):
        yield from _token_problems(token, ("bootstrapTokens", index))
    yield from cluster_problems(init.cluster, notes)
    yield from _api_endpoint_problems(init.local_api_endpoint, ("localAPIEndpoint",))
    yield from _certificate_key_problems(init.certificate_key, ("certificateKey",))


def join_problems(join: JoinConfiguration, host: HostFacts) -> Iterator[Problem]:
    yield from _discovery_problems(join, host)
    yield from _registration_problems(join.node_registration)
    if join.control_plane is not None:
        yield from _api_endpoint_problems(join.control_plane.local_api_endpoint, ("controlPlane", "localAPIEndpoint"))
        yield from _certificate_key_problems(join.control_plane.certificate_key, ("controlPlane", "certificateKey"))
    if not join.ca_cert_path.startswith("/") or not join.ca_cert_path.endswith(".crt"):
        detail = "the ca certificate path must be an absolute path"
        yield Problem(path=("caCertPath",), value=join.ca_cert_path, detail=detail)


def reset_problems(reset: ResetConfiguration) -> Iterator[Problem]:
    yield from _socket_problems(reset.cri_socket, ("criSocket",))
    yield from path_problems(reset.certificates_dir, ("certificatesDir",))
    for index, flag in enumerate(reset.unmount_flags):
        if flag not in _UNMOUNT_FLAGS:
            yield Problem(path=("unmountFlags",), value=f"index {index}", detail=f"unknown unmount flag {flag}")


def upgrade_problems(upgrade: UpgradeConfiguration) -> Iterator[Problem]:
    if upgrade.apply.patches_directory is not None:
        yield from path_problems(upgrade.apply.patches_directory, ("apply", "patches", "directory"))
    if upgrade.node.patches_directory is not None:
        yield from path_problems(upgrade.node.patches_directory, ("node", "patches", "directory"))
    yield from _pull_policy_problems(upgrade.apply.image_pull_policy, ("apply", "imagePullPolicy"))
    yield from _pull_policy_problems(upgrade.node.image_pull_policy, ("node", "imagePullPolicy"))


def _registration_problems(node: NodeRegistration) -> Iterator[Problem]:
    path: FieldPath = ("nodeRegistration",)
    if not node.name:
        yield Problem(path=path, is_required=True, detail=_NO_NAME)
    else:
        for detail in subdomain_problems(node.name):
            yield Problem(path=(*path, "name"), value=node.name, detail=detail)
    yield from _socket_problems(node.cri_socket, (*path, "criSocket"))
    yield from args_problems(node.kubelet_extra_args, (*path, "kubeletExtraArgs"))
    yield from _pull_policy_problems(node.image_pull_policy, (*path, "imagePullPolicy"))


def _socket_problems(socket: str, path: FieldPath) -> Iterator[Problem]:
    try:
        scheme = url_scheme(socket)
    except InvalidValue as error:
        yield Problem(path=path, value=socket, detail=f"URL parsing error: {error.message}")
        return
    if scheme != "unix":
        detail = f'only URL scheme "unix" is supported, got {go_quote(scheme)}'
        yield Problem(path=path, value=socket, detail=detail)


def _pull_policy_problems(policy: str, path: FieldPath) -> Iterator[Problem]:
    if policy not in ("Always", "IfNotPresent", "Never"):
        yield Problem(path=path, value=policy, detail="invalid pull policy")


def _token_problems(token: BootstrapToken, path: FieldPath) -> Iterator[Problem]:
    yield from _token_text_problems(token.token, (*path, "token"))
    unknown = sorted(set(token.usages) - set(DEFAULT_TOKEN_USAGES))
    if unknown:
        detail = (
            f"invalid bootstrap token usage string: {','.join(unknown)}, "
            f"valid usage options: {','.join(DEFAULT_TOKEN_USAGES)}"
        )
        yield Problem(path=(*path, "usages"), value=[*token.usages], detail=detail)
    if token.groups and "authentication" not in token.usages:
        detail = 'token groups cannot be specified unless --usages includes "authentication"'
        yield Problem(path=(*path, "groups"), value=[*token.groups], detail=detail)
    for group in token.groups:
        if not is_token_group(group):
            detail = f"bootstrap group {go_quote(group)} is invalid (must match {_GROUP_PATTERN})"
            yield Problem(path=(*path, "groups"), value=[*token.groups], detail=detail)
    if token.expires and token.ttl is not None:
        detail = "the BootstrapToken .TTL and .Expires fields are mutually exclusive"
        yield Problem(path=path, value="", detail=detail)


def _token_text_problems(token: str, path: FieldPath) -> Iterator[Problem]:
    if not is_bootstrap_token(token):
        yield Problem(path=path, value=token, detail="the bootstrap token is invalid", is_secret=True)


def _api_endpoint_problems(endpoint: ApiEndpoint, path: FieldPath) -> Iterator[Problem]:
    if parse_ip(endpoint.advertise_address) is None:
        address = endpoint.advertise_address
        yield Problem(path=(*path, "advertiseAddress"), value=address, detail="ip address is not valid")
    if not 1 <= endpoint.bind_port <= 65535:
        yield Problem(path=(*path, "bindPort"), value=endpoint.bind_port, detail="port number is not valid")


def _certificate_key_problems(key: str, path: FieldPath) -> Iterator[Problem]:
    if not key:
        return
    detail = ""
    bad = re.search("[^0-9a-fA-F]", key)
    if bad is not None:
        detail = f"certificate key decoding error: encoding/hex: invalid byte: U+{ord(bad[0]):04X} '{bad[0]}'"
    elif len(key) % 2:
        detail = "certificate key decoding error: encoding/hex: odd length hex string"
    elif len(key) != 2 * _CERTIFICATE_KEY_SIZE:
        size = len(key) // 2
        detail = f"invalid certificate key size {size}, the key must be an AES key of size {_CERTIFICATE_KEY_SIZE}"
    if detail:
        yield Problem(path=path, value=key, detail=detail, is_secret=True)


def _discovery_problems(join: JoinConfiguration, host: HostFacts) -> Iterator[Problem]:
    if isinstance(join.discovery, TokenDiscovery):
        yield from _token_discovery_problems(join.discovery)
        yield from _token_text_problems(join.tls_bootstrap_token, ("discovery", "tlsBootstrapToken"))
        return
    yield from _file_discovery_problems(join.discovery, host)
    if join.tls_bootstrap_token:
        yield from _token_text_problems(join.tls_bootstrap_token, ("discovery", "tlsBootstrapToken"))


def _token_discovery_problems(discovery: TokenDiscovery) -> Iterator[Problem]:
    path: FieldPath = ("discovery", "bootstrapToken")
    endpoint = discovery.api_server_endpoint
    if not endpoint:
        yield Problem(path=path, is_required=True, detail="APIServerEndpoint is not set")
    if not discovery.ca_cert_hashes and not discovery.unsafe_skip_ca_verification:
        yield Problem(path=(*path, "caCertHashes"), value="", detail=_UNSAFE_DISCOVERY)
    yield from _token_text_problems(discovery.token, (*path, "token"))
    try:
        split_host_port(endpoint)
    except InvalidValue as error:
        yield Problem(path=(*path, "apiServerEndpoint"), value=endpoint, detail=error.message)


def discovery_shape_problems(discovery: DecodedObject, host: HostFacts) -> list[Problem]:
    """Report if both token and file discovery are given, or neither.

    The model holds only one of them. If both are given that is the token, so the file is validated here.
    """
    has_token, has_file = "bootstrapToken" in discovery, "file" in discovery
    if has_token != has_file:
        return []
    detail = "bootstrapToken and file cannot both be set" if has_token else "bootstrapToken or file must be set"
    problems = [Problem(path=("discovery",), value="", detail=detail)]
    if has_file:
        location = discovery.object("file").text("kubeConfigPath")
        problems += _file_discovery_problems(FileDiscovery(kube_config_path=location), host)
    return problems


def _file_discovery_problems(discovery: FileDiscovery, host: HostFacts) -> Iterator[Problem]:
    path: FieldPath = ("discovery", "file", "kubeConfigPath")
    location = discovery.kube_config_path
    try:
        scheme = url_scheme(location)
    except InvalidValue:
        yield Problem(path=path, value=location, detail="not a valid HTTPS URL or a file on disk")
        return
    if not scheme and not host.has_file(location):
        yield Problem(path=path, value=location, detail="not a valid HTTPS URL or a file on disk")
    if scheme not in ("", "https"):
        yield Problem(path=path, value=location, detail="if a URL is used, the scheme must be https")
