"""KubeletConfiguration and KubeProxyConfiguration: what kubeadm fills in, and which values it recommends.

A component configuration stays the document that it is; the components read it, kubeadm only passes it on.
"""

from collections.abc import Mapping
from dataclasses import replace

from garboard.config.decoding import DecodedObject, printed_document
from garboard.config.problems import ConfigNotes
from garboard.documents import Json
from garboard.model.addresses import parse_ip
from garboard.model.cluster import ClusterConfiguration
from garboard.model.go import go_quote, join_path
from garboard.model.minors import MinorFacts
from garboard.model.node import ApiEndpoint
from garboard.model.paths import MANIFESTS_DIR
from garboard.values import dataclass

KUBELET_API, KUBELET_KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
KUBE_PROXY_API, KUBE_PROXY_KIND = "kubeproxy.config.k8s.io/v1alpha1", "KubeProxyConfiguration"
COMPONENT_KINDS: Mapping[str, str] = {KUBELET_KIND: KUBELET_API, KUBE_PROXY_KIND: KUBE_PROXY_API}

_DEFAULT_DNS_IP = "10.96.0.10"
_KUBE_PROXY_KUBECONFIG = "/var/lib/kube-proxy/kubeconfig.conf"
_ANY_IPV4, _ANY_IPV6 = "0.0.0.0", "::"  # noqa: S104 - where kube-proxy listens, nothing here
_IPVS_WARNING = (
    'The "KubeProxyConfiguration" field "mode" is set to "ipvs" which has been deprecated since version v1.35. '
    'For newer Linux kernel versions, we recommend using the "nftables" mode, which has been GA since v1.33. '
    'For older Linux kernel versions, you can use the "iptables" mode which is still the default one.'
)


@dataclass(frozen=True, slots=True)
class ComponentConfig:
    """A component's configuration document, decoded; `is_user_supplied` if the user wrote it."""

    kind: str
    tree: Mapping[str, Json]
    is_user_supplied: bool = False

    def printed(self, facts: MinorFacts) -> dict[str, Json]:
        """Return the document in full, as kubeadm of the minor writes it into files and ConfigMaps."""
        api_version = COMPONENT_KINDS[self.kind]
        return printed_document(self.tree, api_version, self.kind, facts)


@dataclass(frozen=True, slots=True)
class ComponentConfigs:
    kubelet: ComponentConfig = ComponentConfig(KUBELET_KIND, {})
    kube_proxy: ComponentConfig = ComponentConfig(KUBE_PROXY_KIND, {})


def default_components(
    given: ComponentConfigs, cluster: ClusterConfiguration, endpoint: ApiEndpoint, facts: MinorFacts, notes: ConfigNotes
) -> ComponentConfigs:
    """Fill in what is unset. Values that differ from kubeadm's own stay, with a warning."""
    kubelet = _Defaulter(KUBELET_KIND, dict(given.kubelet.tree), notes)
    _default_kubelet(kubelet, cluster)
    kube_proxy = _Defaulter(KUBE_PROXY_KIND, dict(given.kube_proxy.tree), notes)
    _default_kube_proxy(kube_proxy, cluster, endpoint, facts)
    return ComponentConfigs(replace(given.kubelet, tree=kubelet.tree), replace(given.kube_proxy, tree=kube_proxy.tree))


@dataclass(frozen=True, slots=True)
class _Defaulter:
    kind: str
    tree: dict[str, Json]
    notes: ConfigNotes

    def default(self, path: str, recommended: Json, *, only_warn: bool = False) -> None:
        """Set the member at a dotted path if it is unset; if it has another value, warn with the recommended one."""
        *parents, name = path.split(".")
        holder = self.tree
        for parent in parents:
            inner = holder.get(parent)
            holder[parent] = holder = dict(inner) if isinstance(inner, dict) else {}
        if name in holder:
            self.recommend(path, recommended, holder[name])
        elif not only_warn:
            holder[name] = recommended

    def recommend(self, path: str, recommended: Json, found: Json) -> None:
        if found != recommended:
            self.notes.warn(
                f'The recommended value for "{path}" in "{self.kind}" is: {_go_text(recommended)}; '
                f"the provided value is: {_go_text(found)}"
            )


def _default_kubelet(kubelet: _Defaulter, cluster: ClusterConfiguration) -> None:
    kubelet.default("staticPodPath", MANIFESTS_DIR)
    kubelet.default("clusterDNS", [cluster.networking.dns_ip or _DEFAULT_DNS_IP])
    kubelet.default("clusterDomain", cluster.networking.dns_domain)
    kubelet.default("authentication.x509.clientCAFile", join_path(cluster.certificates_dir, "ca.crt"))
    kubelet.default("authentication.anonymous.enabled", False)
    kubelet.default("authorization.mode", "Webhook")
    kubelet.default("authentication.webhook.enabled", True)
    kubelet.default("healthzBindAddress", "127.0.0.1")
    kubelet.default("healthzPort", 10248)
    kubelet.default("readOnlyPort", 0, only_warn=True)
    kubelet.tree["rotateCertificates"] = True  # also where the file says false: Go cannot tell that from unset
    kubelet.tree.setdefault("cgroupDriver", "systemd")


def _default_kube_proxy(
    proxy: _Defaulter, cluster: ClusterConfiguration, endpoint: ApiEndpoint, facts: MinorFacts
) -> None:
    _default_bind_address(proxy, endpoint, facts)
    if cluster.networking.pod_subnet:
        proxy.default("clusterCIDR", cluster.networking.pod_subnet)
    proxy.default("clientConnection.kubeconfig", _KUBE_PROXY_KUBECONFIG)
    if facts.warns_about_ipvs and proxy.tree.get("mode") == "ipvs":
        proxy.notes.warn(_IPVS_WARNING)
    if facts.kube_proxy_mode and not proxy.tree.get("mode"):  # earlier minors stored it empty
        proxy.tree["mode"] = facts.kube_proxy_mode


def _default_bind_address(proxy: _Defaulter, endpoint: ApiEndpoint, facts: MinorFacts) -> None:
    given = DecodedObject(proxy.tree).text("bindAddress")
    if not given or not facts.is_any_wildcard_bind_recommended:
        proxy.default("bindAddress", _any_address(endpoint.advertise_address))
    elif given in (_ANY_IPV4, _ANY_IPV6):
        return
    elif parse_ip(given) is None:
        proxy.notes.warn(f'The bindAddress {go_quote(given)} in "{proxy.kind}" is not a valid IP address')
    else:
        proxy.recommend("bindAddress", _any_address(given), given)


def _any_address(address: str) -> str:
    """Return the wildcard address of the family of `address`."""
    found = parse_ip(address)
    return _ANY_IPV4 if found is not None and found.version == 4 else _ANY_IPV6


def _go_text(value: Json) -> str:
    """Print a value as Go's %v does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{' '.join(_go_text(item) for item in value)}]"
    return str(value)
