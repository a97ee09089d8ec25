"""Rows of the attribute table: ClusterConfiguration. What is rendered from a field was measured with kubeadm itself."""

from collections.abc import Iterator

from garboard.change.attribute import ALL_PODS, AttributeRow, path_of

_API_SERVER, _MANAGER, _SCHEDULER, _ETCD = "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"
_KUBE_PODS = (_API_SERVER, _MANAGER, _SCHEDULER)
_SECTIONS = {"apiServer": _API_SERVER, "controllerManager": _MANAGER, "scheduler": _SCHEDULER}
_LATER = "offer clients a renewal as a step of its own: garboard certs renew all"


def _row(text: str, components: tuple[str, ...], code: str, scope: str, why: str, **more: object) -> AttributeRow:
    return AttributeRow(path=path_of(text), components=components, code=code, scope=scope, why=why, **more)  # type: ignore[arg-type]


def _of_component(section: str, component: str) -> Iterator[AttributeRow]:
    """Yield the rows that the three components of the control plane have in common."""
    why = f"{component} restarts with the new command line, one control plane at a time"
    yield _row(f"{section}.extraArgs", (component,), "", "control-plane", why, judge="flag")
    yield _row(
        f"{section}.extraVolumes", (component,), "host-path", "control-plane",
        "a path of type File, Directory or Socket that is missing stops the pod; the *OrCreate types make an empty one",
        route="make the path on every control-plane node first", judge="volume",
    )  # fmt: skip
    why = f"{component} restarts with the new environment, one control plane at a time"
    yield _row(f"{section}.extraEnvs", (component,), "", "control-plane", why)


_COMMON = tuple(row for section, component in _SECTIONS.items() for row in _of_component(section, component))
_ETCD_WHY = "etcd restarts one member at a time, and with each the API server of its node"

CLUSTER_ROWS: tuple[AttributeRow, ...] = (
    *_COMMON,
    _row(
        "kubernetesVersion", (*_KUBE_PODS, "kube-proxy-workload"), "use-upgrade", "",
        "the skew policy, the order of components and the release of etcd belong to an upgrade",
        route="garboard upgrade apply VERSION",
    ),
    _row(
        "apiServer.certSANs", ("certs/apiserver",), "new-certificate", "control-plane",
        "the serving certificate is issued again on each control-plane node and picked up without a restart",
        judge="sans",
    ),
    _row("etcd.local.imageRepository", (_ETCD,), "image-source", "control-plane", _ETCD_WHY,
         follow_ups=("with an image of its own, an upgrade leaves etcd alone",), judge="members"),
    _row("etcd.local.imageTag", (_ETCD,), "etcd-restart", "control-plane", _ETCD_WHY, judge="etcd-tag"),
    _row(
        "etcd.local.dataDir", (_ETCD,), "etcd-data-dir", "",
        "an empty new folder begins a cluster of one member with the same ids: only revisions show the loss",
        route="stop each member, copy its folder, change the manifest and start it, one after the other",
    ),
    _row("etcd.local.extraArgs", (_ETCD,), "etcd-restart", "control-plane", _ETCD_WHY, judge="flag"),
    _row("etcd.local.extraEnvs", (_ETCD,), "etcd-restart", "control-plane", _ETCD_WHY, judge="members"),
    _row("etcd.local.serverCertSANs", ("certs/etcd-server",), "new-certificate", "control-plane",
         "new handshakes show the new certificate at once; connections that stand keep the former one", judge="sans"),
    _row("etcd.local.peerCertSANs", ("certs/etcd-peer",), "new-certificate", "control-plane",
         "new handshakes between members show the new certificate at once, one member at a time", judge="sans"),
    _row(
        "etcd.external.endpoints", (_API_SERVER,), "external-etcd", "control-plane",
        "each endpoint has to be healthy, of the same cluster and not behind: another store would be another cluster",
        route="compare the cluster id and the revision of every endpoint first (etcdctl endpoint status)",
    ),
    _row("etcd.external.httpEndpoints", (), "no-effect", "objects", "only the checks before an upgrade read it"),
    *(
        _row(
            f"etcd.external.{name}", (_API_SERVER,), "external-etcd", "control-plane",
            "the file has to be there on every control-plane node, and etcd has to accept it",
            route="try a connection with these files from each node first",
        )
        for name in ("caFile", "certFile", "keyFile")
    ),
    _row(
        "networking.serviceSubnet", (_API_SERVER, _MANAGER, "certs/apiserver", "kubelet", "dns-service"),
        "service-network", "",
        "the ServiceCIDR object decides the addresses of new Services, and the address of kube-dns cannot be changed",
        judge="service-range",
    ),
    _row(
        "networking.podSubnet", (_MANAGER, "kube-proxy"), "pod-network", "all",
        "nodes keep their podCIDR, and kube-controller-manager ends when one is outside of the range",
        route="add nodes with the new range, or build a new cluster; a range that contains the former one can be set",
        judge="pod-range",
    ),
    _row(
        "networking.dnsDomain", (_API_SERVER, "certs/apiserver", "kubelet", "coredns"), "dns-domain", "",
        "it changes the issuer of service account tokens, which are refused then, and names that running pods use",
        route="serve both zones in the Corefile, list both issuers, change kubelets, then pods, and drop the old last",
    ),
    _row(
        "controlPlaneEndpoint", ("certs/apiserver", "kubeconfigs", "kube-proxy", "cluster-info"),
        "control-plane-endpoint", "",
        "clients that move before every API server has the name in its certificate fail, and join commands hold it",
        judge="endpoint",
    ),
    _row("dns.imageRepository", ("coredns",), "dns-rollout", "objects",
         "only the default registry has the extra path coredns/coredns, which mirrors often miss",
         route="pull the image from a node first"),
    _row("dns.imageTag", ("coredns",), "dns-rollout", "objects",
         "plugins that the Corefile names have to be in that release", route="pull the image from a node first"),
    _row("dns.disabled", (), "addon-handover", "objects",
         "true leaves the objects to you; false writes CoreDNS over whatever serves kube-dns now"),
    _row("proxy.disabled", (), "addon-handover", "objects",
         "true leaves the DaemonSet and its rules behind; false conflicts with a network that replaces kube-proxy",
         follow_ups=("after taking kube-proxy away: kube-proxy --cleanup on each node",)),
    _row("certificatesDir", (*ALL_PODS[:2], "etcd", "kubelet"), "certificates-dir", "",
         "every component and kubelet looks there, and the files would have to move at the same moment",
         route="leave it; a node that joins a new cluster with another certificatesDir begins there"),
    _row(
        "imageRepository", (*ALL_PODS, "kube-proxy-workload", "coredns"), "image-source", "control-plane",
        "all images of the control plane are pulled from elsewhere before anything restarts; overrides of one component"
        " stay in force",
        route="pull the images of `garboard config images list` from a node first; mind the path of coredns",
        follow_ups=("the sandbox (pause) image is a setting of the container runtime, and stays", ),
        judge="members",
    ),
    _row("featureGates.NodeLocalCRISocket", ("kubelet",), "locked-gate", "", "the gate is locked to true",
         route="leave it out"),
    _row("featureGates.PublicKeysECDSA", (), "use-algorithm", "", "the gate is deprecated",
         route="set encryptionAlgorithm to ECDSA-P256"),
    _row("featureGates.RootlessControlPlane", ALL_PODS, "rootless", "control-plane",
         "it makes users on each host and gives them the files; the way back leaves owners behind",
         route="on a test cluster first, with a way to make the nodes anew"),
    _row("featureGates", (), "locked-gate", "", "the gate belongs to init and join, and no running cluster reads it",
         route="leave it out"),
    _row("clusterName", (_MANAGER, "kubeconfigs"), "cluster-name", "control-plane",
         "every kubeconfig has the name in its contexts, and clouds may have it in the names of resources",
         route="leave it, and name the contexts of kubeconfigs as you like: kubectl config rename-context",
         follow_ups=("users merge the new contexts into their kubeconfigs",)),
    _row("encryptionAlgorithm", (), "certificate-later", "objects",
         "authorities and the key of service accounts stay as they are", follow_ups=(_LATER,)),
    _row("certificateValidityPeriod", (), "certificate-later", "objects",
         "certificates that there are keep their end; none outlives its authority", follow_ups=(_LATER,)),
    _row("caCertificateValidityPeriod", (), "certificate-later", "objects",
         "authorities are not issued again: it has no effect on this cluster"),
    _row("apiVersion", (), "", "objects", "the document is converted when it is read"),
    _row("kind", (), "", "objects", "the kind of the document"),
)  # fmt: skip
