"""What must hold for a ClusterConfiguration, each rule in kubeadm's words and order."""

from collections.abc import Iterable, Iterator

from garboard.config.decoding import DecodedObject
from garboard.config.problems import ConfigNotes, FieldPath, Problem
from garboard.errors import InvalidValue
from garboard.model.addresses import IpNetwork, parse_host_port, parse_ip, parse_networks, url_scheme
from garboard.model.cluster import DEFAULT_CA_CERTIFICATE_VALIDITY, DEFAULT_CERTIFICATE_VALIDITY, ClusterConfiguration
from garboard.model.component import Arg, ExternalEtcd, LocalEtcd, arg_value
from garboard.model.minors import LOCAL_MODE_GATE
from garboard.model.names import is_image_repository, subdomain_problems, wildcard_problems

_MIN_SERVICE_ADDRESSES = 10
_MIN_POD_ADDRESSES = 14
_MAX_SERVICE_BITS = 20
_MAX_NODE_MASK_DIFFERENCE = 16
_SITE_LOCAL = "fec0::/10"
_ALGORITHMS = ("ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096")
_DUAL_STACK_RULE = "expected one (IPv4 or IPv6) CIDR or two CIDRs from each family for dual-stack networking"


def cluster_problems(cluster: ClusterConfiguration, notes: ConfigNotes) -> Iterator[Problem]:
    if cluster.dns.image_repository:
        yield from repository_problems(cluster.dns.image_repository, ("dns", "imageRepository"))
    yield from _networking_problems(cluster, notes)
    yield from san_problems(cluster.api_server.cert_sans, ("apiServer", "certSANs"))
    yield from args_problems(cluster.api_server.extra_args, ("apiServer", "extraArgs"))
    yield from args_problems(cluster.controller_manager.extra_args, ("controllerManager", "extraArgs"))
    yield from args_problems(cluster.scheduler.extra_args, ("scheduler", "extraArgs"))
    yield from path_problems(cluster.certificates_dir, ("certificatesDir",))
    yield from _gate_problems(cluster, notes)
    yield from _endpoint_problems(cluster.control_plane_endpoint)
    yield from repository_problems(cluster.image_repository, ("imageRepository",))
    if isinstance(cluster.etcd, ExternalEtcd):
        yield from _external_etcd_problems(cluster.etcd)
    else:
        yield from _local_etcd_problems(cluster.etcd)
    yield from _algorithm_problems(cluster.encryption_algorithm)
    _warn_about_validity(cluster, notes)


def args_problems(args: Iterable[Arg], path: FieldPath) -> Iterator[Problem]:
    for index, arg in enumerate(args):
        if not arg.name:
            yield Problem(path=path, value=f"index {index}", detail="argument has no name")
        if arg.merge_method not in ("", "append", "prepend"):
            yield Problem(path=path, value=f"index {index}", detail="argument has an invalid merge method")


def path_problems(text: str, path: FieldPath) -> Iterator[Problem]:
    if not text.startswith("/"):
        yield Problem(path=path, value=text, detail="path is not absolute")


def repository_problems(text: str, path: FieldPath) -> Iterator[Problem]:
    if not is_image_repository(text):
        yield Problem(path=path, value=text, detail="invalid image repository format")


def san_problems(names: Iterable[str], path: FieldPath) -> Iterator[Problem]:
    for name in names:
        plain, wildcard = subdomain_problems(name), wildcard_problems(name)
        if plain and wildcard and parse_ip(name) is None:
            detail = (
                "altname is not a valid IP address, DNS label or a DNS label with subdomain wildcards: "
                f"{'; '.join(plain)}; {'; '.join(wildcard)}"
            )
            yield Problem(path=path, value=name, detail=detail)


def _networking_problems(cluster: ClusterConfiguration, notes: ConfigNotes) -> Iterator[Problem]:
    networking = cluster.networking
    for detail in subdomain_problems(networking.dns_domain):
        yield Problem(path=("networking", "dnsDomain"), value=networking.dns_domain, detail=detail)
    path: FieldPath = ("networking", "serviceSubnet")
    yield from _subnet_problems(networking.service_subnet, _MIN_SERVICE_ADDRESSES, path, notes)
    yield from _service_size_problems(networking.service_subnet, path)
    if networking.pod_subnet:
        path = ("networking", "podSubnet")
        yield from _subnet_problems(networking.pod_subnet, _MIN_POD_ADDRESSES, path, notes)
        if arg_value(cluster.controller_manager.extra_args, "allocate-node-cidrs") != "false":
            yield from _node_mask_problems(networking.pod_subnet, cluster.controller_manager.extra_args, path)


def _subnet_problems(text: str, min_addresses: int, path: FieldPath, notes: ConfigNotes) -> Iterator[Problem]:
    subnets = parse_networks(text)
    if subnets is None:
        yield Problem(path=path, value=text, detail="couldn't parse subnet")
        return
    if len(subnets) > 2 or (len(subnets) == 2 and subnets[0].version == subnets[1].version):
        yield Problem(path=path, value=text, detail=_DUAL_STACK_RULE)
    for subnet in subnets:
        count = _address_count(subnet)
        if count < min_addresses:
            detail = f"subnet with {count} address(es) is too small, the minimum is {min_addresses}"
            yield Problem(path=path, value=str(subnet), detail=detail)
        if _is_site_local(subnet):
            notes.warn(
                f"the subnet {subnet} contains IPv6 site-local addresses that belong to fec0::/10 "
                "which has been deprecated by rfc3879"
            )


def _address_count(subnet: IpNetwork) -> int:
    """Count the addresses of a subnet as Kubernetes does: a prefix length of 0 or 1 counts as no address."""
    bits = subnet.max_prefixlen - subnet.prefixlen
    if bits >= subnet.max_prefixlen - 1:
        return 0
    return (1 << min(bits, 63)) - (1 if bits >= 63 else 0)


def _is_site_local(subnet: IpNetwork) -> bool:
    site_local = (parse_networks(_SITE_LOCAL) or ())[0]
    return subnet.version == 6 and (subnet.network_address in site_local or site_local.network_address in subnet)


def _service_size_problems(text: str, path: FieldPath) -> Iterator[Problem]:
    for subnet in parse_networks(text) or ():
        bits = subnet.max_prefixlen
        if bits - subnet.prefixlen > _MAX_SERVICE_BITS:
            detail = (
                f"specified service subnet is too large; for {bits}-bit addresses, "
                f"the mask must be >= {bits - _MAX_SERVICE_BITS}"
            )
            yield Problem(path=path, value=str(subnet), detail=detail)


def _node_mask_problems(text: str, args: Iterable[Arg], path: FieldPath) -> Iterator[Problem]:
    for written, subnet in zip(text.split(","), parse_networks(text) or (), strict=False):
        try:
            node_mask = _node_mask(tuple(args), subnet.version)
        except InvalidValue as error:
            yield Problem(path=path, value=str(subnet), detail=error.message)
            continue
        # As it is written: of an IPv4 network in IPv6 kubeadm counts all 128 bits.
        mask, detail = int(written.rpartition("/")[2]), ""
        if mask > node_mask:
            detail = (
                f"the size of pod subnet with mask {mask} is smaller than the size of node subnet with mask {node_mask}"
            )
        elif node_mask - mask > _MAX_NODE_MASK_DIFFERENCE:
            detail = (
                f"pod subnet mask ({mask}) and node-mask ({node_mask}) difference is greater than "
                f"{_MAX_NODE_MASK_DIFFERENCE}"
            )
        if detail:
            yield Problem(path=path, value=str(subnet), detail=detail)


def _node_mask(args: tuple[Arg, ...], ip_version: int) -> int:
    name = f"node-cidr-mask-size-ipv{ip_version}"
    given = arg_value(args, name)
    if not given:
        return 24 if ip_version == 4 else 64
    try:
        # int() takes more than strconv.Atoi: spaces, underscores and other scripts' digits.
        return int(given) if given.isascii() and given.lstrip("+-").isdigit() else int("", 10)
    except ValueError as error:
        raise InvalidValue(
            f"could not parse the value of the kube-controller-manager flag {name} as an integer: "
            f'strconv.Atoi: parsing "{given}": invalid syntax'
        ) from error


def _gate_problems(cluster: ClusterConfiguration, notes: ConfigNotes) -> Iterator[Problem]:
    known = cluster.facts.gate_defaults
    for name in sorted(cluster.feature_gates):
        if name == LOCAL_MODE_GATE:
            notes.warn(_local_mode_note(is_on=cluster.feature_gates[name]))
        elif name not in known:
            detail = f"{name} is not a valid feature name."
            yield Problem(path=("featureGates",), value=dict(cluster.feature_gates), detail=detail)


def _local_mode_note(*, is_on: bool) -> str:
    if is_on:
        return f"{LOCAL_MODE_GATE} is always on: the entry in featureGates changes nothing"
    return (
        f"{LOCAL_MODE_GATE} is off: control-plane nodes join in the older order and their kubelets use the shared "
        "endpoint; kubeadm 1.36 and newer do not know this gate and refuse a configuration that names it"
    )


def _endpoint_problems(endpoint: str) -> Iterator[Problem]:
    if not endpoint:
        return
    try:
        parse_host_port(endpoint)
    except InvalidValue:
        yield Problem(path=("controlPlaneEndpoint",), value=endpoint, detail="endpoint is not valid")


def _local_etcd_problems(etcd: LocalEtcd) -> Iterator[Problem]:
    path: FieldPath = ("etcd", "local")
    yield from path_problems(etcd.data_dir, (*path, "dataDir"))
    yield from san_problems(etcd.server_cert_sans, (*path, "serverCertSANs"))
    yield from san_problems(etcd.peer_cert_sans, (*path, "peerCertSANs"))
    if etcd.image_repository:
        yield from repository_problems(etcd.image_repository, (*path, "imageRepository"))
    yield from args_problems(etcd.extra_args, (*path, "extraArgs"))


def etcd_shape_problems(etcd: DecodedObject) -> list[Problem]:
    if "local" not in etcd or "external" not in etcd:
        return []
    detail = ".Etcd.Local and .Etcd.External are mutually exclusive"
    return [Problem(path=("etcd",), value="", detail=detail)]


def _external_etcd_problems(etcd: ExternalEtcd) -> Iterator[Problem]:
    path: FieldPath = ("etcd", "external")
    if bool(etcd.cert_file) != bool(etcd.key_file):
        detail = "either both or none of .Etcd.External.CertFile and .Etcd.External.KeyFile must be set"
        yield Problem(path=path, value="", detail=detail)
    if etcd.cert_file and etcd.key_file and not etcd.ca_file:
        detail = "setting .Etcd.External.CertFile and .Etcd.External.KeyFile requires .Etcd.External.CAFile"
        yield Problem(path=path, value="", detail=detail)
    if not etcd.endpoints:
        yield Problem(path=(*path, "endpoints"), value="", detail="at least one endpoint must be specified")
    requires_https = bool(etcd.ca_file or etcd.cert_file or etcd.key_file)
    yield from _url_problems(etcd.endpoints, (*path, "endpoints"), requires_https=requires_https)
    yield from _url_problems(etcd.http_endpoints, (*path, "httpEndpoints"), requires_https=False)
    for name, file in (("caFile", etcd.ca_file), ("certFile", etcd.cert_file), ("keyFile", etcd.key_file)):
        if file:
            yield from path_problems(file, (*path, name))


def _url_problems(urls: Iterable[str], path: FieldPath, *, requires_https: bool) -> Iterator[Problem]:
    for url in urls:
        try:
            scheme = url_scheme(url)
        except InvalidValue as error:
            yield Problem(path=path, value=url, detail=f"URL parse error: {error.message}")
            continue
        if requires_https and scheme != "https":
            yield Problem(path=path, value=url, detail="the URL must be using the HTTPS scheme")
        if not scheme:
            yield Problem(path=path, value=url, detail="the URL without scheme is not allowed")


def _algorithm_problems(algorithm: str) -> Iterator[Problem]:
    if algorithm not in _ALGORITHMS:
        detail = f'Invalid encryption algorithm "{algorithm}". Must be one of [{" ".join(_ALGORITHMS)}]'
        yield Problem(path=("encryptionAlgorithm",), value=algorithm, detail=detail)


def _warn_about_validity(cluster: ClusterConfiguration, notes: ConfigNotes) -> None:
    leaf, authority = cluster.certificate_validity_period, cluster.ca_certificate_validity_period
    if leaf > DEFAULT_CERTIFICATE_VALIDITY:
        notes.warn(
            f"WARNING: certificateValidityPeriod: the value {leaf} is more than the recommended default for "
            f"certificate expiration: {DEFAULT_CERTIFICATE_VALIDITY}"
        )
    if authority > DEFAULT_CA_CERTIFICATE_VALIDITY:
        notes.warn(
            f"WARNING: caCertificateValidityPeriod: the value {authority} is more than the recommended default for "
            f"CA certificate expiration: {DEFAULT_CA_CERTIFICATE_VALIDITY}"
        )
    if leaf > authority:
        notes.warn(
            f"WARNING: certificateValidityPeriod: the value {leaf} is more than the caCertificateValidityPeriod: "
            f"{authority}"
        )
