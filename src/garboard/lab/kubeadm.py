"""The documents with which kubeadm makes a cluster of the lab's nodes: the user's, completed by the lab. Pure.

Where the user's documents and what the lab needs disagree, every disagreement is named.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from garboard.documents import Json, equal, write_yaml
from garboard.errors import BadDocument
from garboard.lab.topology import API_PORT, ENDPOINT_NAME, Lab, Node, Role

KUBEADM = "kubeadm.k8s.io/v1beta4"
GROUPS = {
    "InitConfiguration": KUBEADM,
    "ClusterConfiguration": KUBEADM,
    "JoinConfiguration": KUBEADM,
    "KubeletConfiguration": "kubelet.config.k8s.io/v1beta1",
    "KubeProxyConfiguration": "kubeproxy.config.k8s.io/v1alpha1",
}
NODE_FOLDER = "/etc/garboard-lab"
PATCHES = f"{NODE_FOLDER}/patches"
DISCOVERY = f"{NODE_FOLDER}/discovery.conf"
RUNTIME_SOCKET = "unix:///var/run/containerd/containerd.sock"
# A machine that is small, or has cgroup v1, is still good enough for a lab.
IGNORED_PREFLIGHT: tuple[Json, ...] = ("Mem", "NumCPU", "Swap", "SystemVerification")


@dataclass(frozen=True, slots=True)
class ClusterSecrets:
    """What the nodes of one cluster have in common; never shown."""

    token: str = field(repr=False)
    certificate_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Needs:
    """What the machine asks of the cluster's configuration."""

    is_cgroup_v1: bool
    proxy_mode: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field to which the user and the lab give different values."""

    where: str
    yours: Json
    needed: Json

    def __str__(self) -> str:
        return f"{self.where} is {self.yours!r}, the lab needs {self.needed!r}"


Documents = Mapping[str, dict[str, Json]]


def init_documents(lab: Lab, node: Node, secrets: ClusterSecrets, needs: Needs, yours: Documents) -> str:
    """Write the file for `kubeadm init` on `node`."""
    needed: dict[str, dict[str, Json]] = {
        "InitConfiguration": {
            "bootstrapTokens": [{"token": secrets.token, "ttl": "24h0m0s"}],
            "certificateKey": secrets.certificate_key,
            "localAPIEndpoint": _local_endpoint(node),
            "nodeRegistration": _registration(node),
            "patches": {"directory": PATCHES},
        },
        "ClusterConfiguration": cluster_needs(lab),
        "KubeletConfiguration": kubelet_needs(needs),
        "KubeProxyConfiguration": {"mode": needs.proxy_mode, "conntrack": {"maxPerCore": 0, "min": 0}},
    }
    defaults: dict[str, dict[str, Json]] = {
        "InitConfiguration": {"nodeRegistration": _taints(lab)},
        "ClusterConfiguration": CLUSTER_DEFAULTS,
        "KubeletConfiguration": KUBELET_DEFAULTS,
    }
    return _render(needed, defaults, yours)


def join_documents(lab: Lab, node: Node, secrets: ClusterSecrets, yours: Documents) -> str:
    """Write the file for `kubeadm join` on `node`."""
    needed: dict[str, Json] = {
        "discovery": {"file": {"kubeConfigPath": DISCOVERY}, "tlsBootstrapToken": secrets.token},
        "nodeRegistration": _registration(node),
        "patches": {"directory": PATCHES},
    }
    defaults: dict[str, Json] = {}
    if node.role is Role.CONTROL_PLANE:
        needed["controlPlane"] = {"localAPIEndpoint": _local_endpoint(node), "certificateKey": secrets.certificate_key}
        defaults["nodeRegistration"] = _taints(lab)
    only = {kind: document for kind, document in yours.items() if kind == "JoinConfiguration"}
    return _render({"JoinConfiguration": needed}, {"JoinConfiguration": defaults}, only)


def check_documents(lab: Lab, needs: Needs, yours: Documents) -> None:
    """Refuse documents that contradict what the lab needs, before anything is made."""
    trial = ClusterSecrets("aaaaaa.aaaaaaaaaaaaaaaa", "0" * 64)
    init_documents(lab, lab.nodes[0], trial, needs, yours)
    for node in lab.nodes[1:]:
        join_documents(lab, node, trial, yours)


def cluster_needs(lab: Lab) -> dict[str, Json]:
    return {
        "kubernetesVersion": str(lab.version),
        "controlPlaneEndpoint": f"{ENDPOINT_NAME}:{API_PORT}",
        "networking": {"podSubnet": lab.pod_subnet},
        # The machine reaches the cluster through a port of its loopback address.
        "apiServer": {"certSANs": ["127.0.0.1", "localhost"]},
        # The lab gives each node its part of the pod network before there is a cluster to ask.
        "controllerManager": {"extraArgs": [{"name": "allocate-node-cidrs", "value": "false"}]},
    }


def kubelet_needs(needs: Needs) -> dict[str, Json]:
    """Return what the kubelet needs: a node has no systemd, and since 1.35 cgroup v1 has to be allowed by name."""
    return {"cgroupDriver": "cgroupfs", **({"failCgroupV1": False} if needs.is_cgroup_v1 else {})}


# The controller manager makes a service account and a token for each of its forty controllers before one of them works;
# at its usual 20 requests a second that alone takes five seconds. And a component that starts before the API server
# should try again sooner than after two.
CLUSTER_DEFAULTS: dict[str, Json] = {
    "controllerManager": {
        "extraArgs": [
            {"name": "kube-api-qps", "value": "200"},
            {"name": "kube-api-burst", "value": "400"},
            {"name": "leader-elect-retry-period", "value": "500ms"},
        ]
    },
    "scheduler": {"extraArgs": [{"name": "leader-elect-retry-period", "value": "500ms"}]},
}

# The disk is the machine's: a full one must not make every node of the lab throw out its pods.
KUBELET_DEFAULTS: dict[str, Json] = {
    "failSwapOn": False,
    "imageGCHighThresholdPercent": 100,
    "evictionHard": {
        "nodefs.available": "0%",
        "nodefs.inodesFree": "0%",
        "imagefs.available": "0%",
        "imagefs.inodesFree": "0%",
    },
}


def sort_documents(documents: list[tuple[Json, str]]) -> dict[str, dict[str, Json]]:
    """Take the user's documents (each with its place) by kind; refuse a kind that a lab cannot use."""
    found: dict[str, dict[str, Json]] = {}
    for document, place in documents:
        kind = document.get("kind") if isinstance(document, dict) else None
        if not isinstance(document, dict) or kind not in GROUPS:
            raise BadDocument(f"{place}: a lab has no use for kind {kind!r}", hint=f"it takes {', '.join(GROUPS)}")
        if document.get("apiVersion") != GROUPS[str(kind)]:
            raise BadDocument(
                f"{place}: {kind} is {document.get('apiVersion')!r}, a lab takes {GROUPS[str(kind)]}",
                hint="convert it with `garboard config migrate`",
            )
        if kind in found:
            raise BadDocument(f"{place}: a second {kind}", hint="write each kind once")
        found[str(kind)] = document
    return found


def pod_subnet_of(yours: Documents) -> str | None:
    """Return the pod subnet that the user's documents ask for, which the lab then uses."""
    networking = yours.get("ClusterConfiguration", {}).get("networking")
    subnet = networking.get("podSubnet") if isinstance(networking, dict) else None
    return subnet if isinstance(subnet, str) else None


def check_kubelet_patch(document: Json, source: str, needs: Needs) -> list[Conflict]:
    """Return where a patch of the KubeletConfiguration takes away what the lab needs."""
    conflicts: list[Conflict] = []
    needed = kubelet_needs(needs)
    if isinstance(document, dict):
        merge({key: value for key, value in document.items() if key in needed}, needed, source, conflicts)
    for operation in document if isinstance(document, list) else ():
        field_name = str(operation.get("path", "")).lstrip("/") if isinstance(operation, dict) else ""
        if isinstance(operation, dict) and field_name in needed and operation.get("op") != "test":
            merge(operation.get("value", "removed"), needed[field_name], f"{source}.{field_name}", conflicts)
    return conflicts


def _render(needed: Documents, defaults: Documents, yours: Documents) -> str:
    conflicts: list[Conflict] = []
    documents: list[str] = []
    for kind in [*needed, *(each for each in yours if each not in needed and each != "JoinConfiguration")]:
        merged = merge(yours.get(kind), needed.get(kind, {}), kind, conflicts)
        complete = fill(merged, defaults.get(kind, {}))
        assert isinstance(complete, dict)
        documents.append(write_yaml({"apiVersion": GROUPS[kind], "kind": kind, **complete}))
    refuse(conflicts, "your configuration")
    return "---\n".join(documents)


def _registration(node: Node) -> dict[str, Json]:
    return {"name": node.name, "criSocket": RUNTIME_SOCKET, "ignorePreflightErrors": list(IGNORED_PREFLIGHT)}


def _taints(lab: Lab) -> dict[str, Json]:
    """Without workers the control planes must take ordinary pods."""
    return {} if lab.workers else {"taints": []}


def _local_endpoint(node: Node) -> dict[str, Json]:
    return {"advertiseAddress": node.address, "bindPort": API_PORT}


def merge(yours: Json, needed: Json, where: str, conflicts: list[Conflict]) -> Json:
    """Return `yours` with everything of `needed` in it, and note in `conflicts` where they contradict each other."""
    if yours is None:
        return needed
    if isinstance(yours, dict) and isinstance(needed, dict):
        merged = dict(yours)
        for key, value in needed.items():
            merged[key] = merge(yours.get(key), value, f"{where}.{key}", conflicts)
        return merged
    if isinstance(yours, list) and isinstance(needed, list):
        return _merge_lists(yours, needed, where, conflicts)
    if not equal(yours, needed):
        conflicts.append(Conflict(where, yours, needed))
    return yours


def fill(yours: Json, default: Json) -> Json:
    """Return `yours` completed by `default`; a list is completed by the named entries whose name it does not have."""
    if yours is None:
        return default
    if isinstance(yours, dict) and isinstance(default, dict):
        return {**default, **{key: fill(value, default.get(key)) for key, value in yours.items()}}
    if isinstance(yours, list) and isinstance(default, list):
        named = {_name(entry) for entry in yours if isinstance(_name(entry), str)}
        return [*yours, *(entry for entry in default if isinstance(_name(entry), str) and _name(entry) not in named)]
    return yours


def refuse(conflicts: Iterable[Conflict], source: str) -> None:
    """Raise one error that names every conflict, if there is any."""
    found = list(conflicts)
    if found:
        listed = "".join(f"\n  {each}" for each in found)
        raise BadDocument(
            f"{source} contradicts what a lab needs:{listed}",
            hint="leave these fields out; the lab sets them",
            error_class="lab-conflict",
        )


def _merge_lists(yours: list[Json], needed: list[Json], where: str, conflicts: list[Conflict]) -> Json:
    """Unite two lists; entries with a `name` (arguments, volumes) are the same entry when the name is."""
    merged = list(yours)
    for entry in needed:
        same = next((each for each in yours if _name(each) is not None and _name(each) == _name(entry)), None)
        if same is not None:
            merge(same, entry, f"{where}[{_name(entry)}]", conflicts)
        elif not any(equal(each, entry) for each in merged):
            merged.append(entry)
    return merged


def _name(entry: Json) -> Json:
    return entry.get("name") if isinstance(entry, dict) else None
