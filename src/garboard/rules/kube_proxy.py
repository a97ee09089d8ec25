"""KubeProxyConfiguration, judged as kube-proxy does when it starts; sections of a mode that is not in use are not."""

from collections.abc import Iterator, Mapping

from garboard.documents import Json
from garboard.errors import InvalidValue
from garboard.model import KubernetesVersion
from garboard.model.addresses import is_port, parse_ip, parse_networks, split_host_port
from garboard.model.minors import facts_of
from garboard.rules.field_values import check_values, nanoseconds
from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found, ResultFinding
from garboard.rules.flags import flag_rules
from garboard.rules.kubelet import check_hidden_metrics, check_logging
from garboard.schema import Schema, load_schema

API_VERSION, KIND = "kubeproxy.config.k8s.io/v1alpha1", "KubeProxyConfiguration"
_DEFAULT_SYNC = 30 * 10**9
_DEFAULT_MINIMUM = 10**9
_BITS = range(32)
_INTERFACES = {"BridgeInterface": "bridgeInterface", "InterfaceNamePrefix": "interfaceNamePrefix"}


def check_kube_proxy(document: Json, version: KubernetesVersion) -> list[ResultFinding]:
    """Return what the kube-proxy of a minor refuses in its configuration."""
    schema = load_schema(version)
    shape = schema.type_of(API_VERSION, KIND)
    assert shape is not None, "the type data lacks KubeProxyConfiguration"
    config = DocumentField(document)
    found = [
        *check_values(config, shape),
        *_check_gates(config, schema),
        *_check_mode(config, schema),
        *_check_periods(config),
        *_check_addresses(config, facts_of(version).node_port_keywords),
        *_check_local_traffic(config),
        *check_hidden_metrics(config, version),
        *check_logging(config["logging"]),
    ]
    return list(dict.fromkeys(found))


def _check_gates(config: DocumentField, schema: Schema) -> Found:
    rules = flag_rules(schema, "kube-proxy")
    for name, gate in config["featureGates"].members():
        for problem in rules.gate(name, gate.value if isinstance(gate.value, bool) else None) if rules else ():
            yield ResultFinding(problem.code, gate.path, problem.message, problem.hint)


def _check_mode(config: DocumentField, schema: Schema) -> Found:
    mode, options = config["mode"], schema.component("kube-proxy")
    has_gate = options is not None and "KubeProxyIPVS" in options.feature_gates
    if mode.text == "ipvs" and has_gate and config.at("featureGates", "KubeProxyIPVS").is_false:
        yield mode.finding("disabled-feature", "the feature gate KubeProxyIPVS is off")
    bit = config.at("nftables", "masqueradeBit")
    if mode.text == "nftables" and bit.number is not None and bit.number not in _BITS:
        yield bit.finding("out-of-range", f"{bit.number} is outside the range: 0 to 31")


def _check_periods(config: DocumentField) -> Found:
    """Yield what is wrong with the times of the mode in use, and with those of ipvs."""
    mode = config["mode"].text
    section = config[mode if mode in ("ipvs", "nftables") else "iptables"]
    longest, shortest = section["syncPeriod"], section["minSyncPeriod"]
    length = nanoseconds(longest.value) or _DEFAULT_SYNC
    least = nanoseconds(shortest.value) or (0 if mode == "ipvs" else _DEFAULT_MINIMUM)
    if length < 0:
        yield longest.finding("out-of-range", "it must be above zero")
    if least < 0:
        yield shortest.finding("out-of-range", "it must not be negative")
    elif least > length >= 0:
        at = shortest if shortest.is_given else longest
        yield at.finding("out-of-range", "minSyncPeriod must not be longer than syncPeriod")
    if mode != "ipvs":
        return
    for name in ("tcpTimeout", "tcpFinTimeout", "udpTimeout"):
        if (nanoseconds(section[name].value) or 0) < 0:
            yield section[name].finding("out-of-range", "it must not be negative")
    for each in section["excludeCIDRs"].elements():
        if not _is_network(each.text):
            yield each.finding("bad-address", f"{each.text!r} is no network, such as 10.0.0.0/8")


def _check_addresses(config: DocumentField, keywords: tuple[str, ...]) -> Found:
    bound = config["bindAddress"]
    if bound.text and parse_ip(bound.text) is None:
        yield bound.finding("bad-address", f"{bound.text!r} is no IP address")
    for name in ("healthzBindAddress", "metricsBindAddress"):
        text = config[name].text
        if text and parse_ip(text) is None and not _is_endpoint(text):
            yield config[name].finding("bad-address", f"{text!r} is neither an IP address nor one with a port")
    listed = config["nodePortAddresses"]
    for index, each in enumerate(listed.elements()):
        if each.text in keywords:
            if each.text in listed.words[:index]:
                yield each.finding("duplicate-name", f"{each.text!r} stands twice")
            elif len(keywords) == 1 and len(listed.words) > 1:
                yield each.finding("forbidden-field", f"{each.text} stands alone, or networks do")
        elif not _is_network(each.text):
            known = " or ".join(keywords)
            yield each.finding("bad-address", f"{each.text!r} is no network, such as 10.0.0.0/8, and not {known}")


def _is_endpoint(text: str) -> bool:
    try:
        host, port = split_host_port(text)
    except InvalidValue:
        return False
    return parse_ip(host) is not None and is_port(port)


def _is_network(text: str) -> bool:
    networks = parse_networks(text)
    return networks is not None and len(networks) == 1


def _check_local_traffic(config: DocumentField) -> Iterator[ResultFinding]:
    """Yield what kube-proxy cannot tell traffic of pods by."""
    mode = config["detectLocalMode"].text
    interface: Mapping[str, str] = _INTERFACES
    if mode in interface and not config.at("detectLocal", interface[mode]).text:
        yield config.at("detectLocal", interface[mode]).finding("required-field", f"detectLocalMode: {mode} needs it")
    range_ = config["clusterCIDR"]
    if range_.text and mode in ("", "ClusterCIDR"):
        networks = parse_networks(range_.text)
        versions = [each.version for each in networks or ()]
        if networks is None:
            yield range_.finding("bad-address", f"{range_.text!r} is no network, such as 10.244.0.0/16")
        elif len(versions) > 2 or len(set(versions)) < len(versions):
            yield range_.finding("bad-address", f"{range_.text!r} is more than one network of each family")
