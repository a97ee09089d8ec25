"""Rows of the attribute table: KubeProxyConfiguration. The ConfigMap is written, then pods restart node by node."""

from garboard.change.attribute import AttributeRow, path_of

_RESTART = "kube-proxy does not read its configuration again: its pods restart, node by node"
_ROWS: tuple[tuple[str, str, str, str, tuple[str, ...], str], ...] = (
    # fields, code, why, route, follow-ups, judge
    (
        "mode", "proxy-mode",
        "nftables serves NodePorts on primary addresses only; between ipvs and iptables the former rules stay",
        "see that the kernel and nft of every node know the mode", (), "proxy-mode",
    ),
    ("iptables ipvs nftables", "", _RESTART, "", (), "proxy-section"),
    ("winkernel windowsRunAsService", "no-effect", "kubeadm's kube-proxy does not run on Windows", "", (), ""),
    (
        "clusterCIDR detectLocal detectLocalMode", "proxy-source",
        "it tells traffic of pods from other traffic, and has to match the network", "", (), "",
    ),
    (
        "bindAddress bindAddressHardFail healthzBindAddress metricsBindAddress nodePortAddresses", "proxy-address",
        "load balancers probe the health port; metrics on all addresses are seen from outside", "", (), "",
    ),
    ("conntrack", "proxy-kernel", "settings of the kernel are written; entries that there are keep their time", "",
     (), ""),
    ("clientConnection", "proxy-connection", "the file is looked for in the pod: another path stops kube-proxy", "",
     (), ""),
    ("hostnameOverride", "node-setting", "the DaemonSet passes the name of each node; one for all would be wrong",
     "leave it out, and the name of each node is used", (), ""),
    ("featureGates", "proxy-canary", "an unknown gate stops kube-proxy on every node: one goes first", "", (), ""),
    (
        "logging configSyncPeriod enableProfiling oomScoreAdj showHiddenMetricsForVersion portRange", "", _RESTART, "",
        (), "",
    ),
    ("apiVersion kind", "", "the type of the document", "", (), ""),
)  # fmt: skip

KUBE_PROXY_ROWS: tuple[AttributeRow, ...] = tuple(
    AttributeRow(
        path=path_of(field),
        components=("kube-proxy",),
        code=code,
        scope="all",
        why=why,
        route=route,
        follow_ups=follow_ups,
        judge=judge,
    )
    for fields, code, why, route, follow_ups, judge in _ROWS
    for field in fields.split()
)
