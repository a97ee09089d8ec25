"""Random configurations and patches: mostly right, sometimes wrong, often odd.

Each table tells for the fields of a kind what a careful author would write and what only a careless one would. A
document takes some of the fields; how often a value is taken from the wrong ones is up to the caller.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

Tree = dict[str, Any]
Choice = tuple[Sequence[Any], Sequence[Any]]  # right values, wrong values
ODD = (
    "", " ", "a b", "ü", "true", "1", "null", "~", "a:b", "#x", "'", '"', "a\nb", "-", "0x1", "1e3", "2020-01-01", "no",
    "=", "a\tb", "\\", "<&>", "$(X)", "\u2028", "*a", "!x", "%a", "@a", "? a", "- a", "a #b", "a: b", "end ", "{", "07",
    "12:30:45", ".inf", "on", "y", "<<", "x" * 90,
)  # fmt: skip
_DURATIONS: Choice = (
    ("1h", "30m", "90s", "1h30m", "0s", "1.5h", "100ms", "876000h", "0", "+1h", "61s"),
    ("1d", "", 5, None, "1 h", "10", "99999999999999h", "1."),
)
_TEXTS: Choice = (("a", "value-1", "/etc/x", "a=b,c=d", *ODD), (5, None, True, []))
_SWITCHES: Choice = ((True, False), ("true", 1, None))
_TAINTS: Choice = (
    ([], [{"key": "a", "effect": "NoSchedule"}], [{"key": "x.y/z", "value": "v", "effect": "NoExecute"}, {"key": "b"}]),
    ("x", [{"key": 3}], [{"key": "a", "timeAdded": "x"}]),
)
_ENVS: Choice = (
    (
        [],
        [{"name": "A", "value": "b"}, {"name": "HTTP_PROXY", "value": "a: b"}],
        [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, {"name": "A"}],
        [{"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}}],
        [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "", "key": "k", "optional": True}}}],
    ),
    ("x", [{"name": 5}], [{"name": "C", "valueFrom": {"resourceFieldRef": {"divisor": "x"}}}]),
)
_VOLUMES: Choice = (
    (
        [],
        [{"name": "k8s-certs", "hostPath": "/mine", "mountPath": "/b"}],
        [{"name": "zz", "hostPath": "/a", "mountPath": "/c", "pathType": "File", "readOnly": True}, {"name": "audit"}],
    ),
    ("x", [{"name": 5}], [{"name": "a", "readOnly": "x"}]),
)
_ARGS = "args"  # stands for a list that `_args` makes
_ENDPOINT: Mapping[str, Choice] = {
    "advertiseAddress": (
        ("192.0.2.10", "192.0.2.77", "fd00::10", "fd00:0:0::77", "::ffff:10.0.0.1", "010.0.0.1"),
        ("host", "1.2.3", "fe80::1", "169.254.1.1", "127.0.0.1", "1.2.3.4/24", 5, "::"),
    ),
    "bindPort": ((443, 7443, 0, 65535), (-1, 65536, "6443", 1.5, 2**40)),
}
_TIMEOUTS = ("controlPlaneComponentHealthCheck", "kubeletHealthCheck", "kubernetesAPICall", "etcdAPICall", "discovery")
_NODE: Mapping[str, Choice] = {
    "nodeRegistration.name": (("node-1", "Other", " n2 ", "a.b.c"), ("a_b", "-a", "n" * 254, 5)),
    "nodeRegistration.criSocket": (("unix:///x.sock", "/run/x.sock"), ("tcp://1.2.3.4:5", "unix://%zz", 1)),
    "nodeRegistration.taints": _TAINTS,
    "nodeRegistration.kubeletExtraArgs": ((_ARGS,), ("x",)),
    "nodeRegistration.ignorePreflightErrors": (([], ["Swap"], ["ALL"], ["swap", "Swap"]), ("x", [1], ["all", "Swap"])),
    "nodeRegistration.imagePullPolicy": (("Always", "Never", ""), ("Sometimes", 1)),
    "nodeRegistration.imagePullSerial": _SWITCHES,
    "skipPhases": ((["preflight"], ["addon/kube-proxy"], []), ("preflight", [1])),
    **{f"timeouts.{name}": _DURATIONS for name in _TIMEOUTS},
}
_TOKENS: Choice = (
    (
        [{"token": "abcdef.0123456789abcdef", "description": "a: b"}],
        [{"token": "abcdef.0123456789abcdef", "ttl": "0s", "usages": ["authentication"]}],
        [{"token": "aaaaaa.bbbbbbbbbbbbbbbb", "groups": ["system:bootstrappers:a"]}, {}],
        [],
    ),
    ([{"token": "x"}], [{"usages": ["b", "a"]}], [{"groups": ["x"]}], [{"expires": "2030-01-01T00:00:00Z"}], "x"),
)
_INIT: Mapping[str, Choice] = {
    **_NODE,
    **{f"localAPIEndpoint.{name}": values for name, values in _ENDPOINT.items()},
    "bootstrapTokens": _TOKENS,
    "certificateKey": (("ab" * 32, ""), ("x", "ab", "g" * 64)),
}
_SANS: Choice = (
    (["B.Example", "1.2.3.4", "*.x.example", "fd00::5"], [], ["a", "A", "010.1.1.1", "::ffff:1.2.3.4"]),
    (["a b"], ["*"], [""], [5], "x"),
)
_PEER_SANS: Choice = ((["e.example", "1.2.3.4"], []), (["E.Example"], ["_"]))
_SERVICE_SUBNETS: Choice = (
    ("10.111.0.0/16", "fd00:1::/112", "10.111.0.0/16,fd00:1::/112", "fd00:1::/112,10.111.0.0/16", "10.96.0.5/12"),
    ("10.0.0.0/8", "10.0.0.0/30", "x", "10.0.0.0/16,10.1.0.0/16", "fd00::/64", " 10.0.0.0/16", ",", 5),
)
_POD_SUBNETS: Choice = (
    ("10.244.0.0/16", "fd00:10:244::/56", "10.244.0.0/16,fd00:10:244::/56", ""),
    ("10.244.0.0/26", "10.0.0.0/7", "fd00::/40", "fd00::/65", "x"),
)
_EXTERNAL_ETCD: Choice = (
    (
        {"endpoints": ["https://a:1", "https://b:2"], "caFile": "/e/ca.crt", "certFile": "/f/c.crt", "keyFile": "/g/k"},
        {"endpoints": ["http://10.0.0.1:2379"]},
    ),
    ({"endpoints": []}, {"endpoints": ["10.0.0.1:2379"]}, {"endpoints": ["https://a:1"], "keyFile": "rel"}, None, 5),
)
_CLUSTER: Mapping[str, Choice] = {
    "controlPlaneEndpoint": (
        ("lb.example", "lb.example:7443", "10.1.1.1", "[fd00::99]:6443", "fd00::99"),
        ("a_b", "lb:99999", "lb:x", "[fd00::99", "LB.Example", "lb:", 5),
    ),
    "clusterName": (("prod", "a b", "ü", "1", "true", "a:b"), (5, True)),
    "certificatesDir": (("/etc/kubernetes/pki/", "/etc/kubernetes//mine", "/srv/a b"), ("pki", 5)),
    "imageRepository": (("my.example/repo", "localhost:5000/a/b", "a"), ("UPPER/x", "a b", "x/", "192.0.2.1:5000")),
    "certificateValidityPeriod": (("1h", "9000h", "25m"), _DURATIONS[1]),
    "caCertificateValidityPeriod": (("2000h", "99999h"), _DURATIONS[1]),
    "featureGates": (({}, {"RootlessControlPlane": False}), ({"X": True, "A": False}, {"PublicKeysECDSA": "x"}, [])),
    "networking.serviceSubnet": _SERVICE_SUBNETS,
    "networking.podSubnet": _POD_SUBNETS,
    "networking.dnsDomain": (("x.example", "a", "1.2.3.4"), ("A.b", "a_b", "local.", 5)),
    "apiServer.certSANs": _SANS,
    **{f"{name}.extraArgs": ((_ARGS,), ("x", {"a": "b"})) for name in ("apiServer", "controllerManager", "scheduler")},
    **{f"{name}.extraVolumes": _VOLUMES for name in ("apiServer", "controllerManager", "scheduler")},
    **{f"{name}.extraEnvs": _ENVS for name in ("apiServer", "scheduler", "etcd.local")},
    "etcd.local.extraArgs": ((_ARGS,), ("x",)),
    "etcd.local.imageTag": (("3.5.9-0", "custom", ""), (5,)),
    "etcd.local.dataDir": (("/var/lib/etcd", "/srv/etcd/"), ("data", 5)),
    "etcd.local.serverCertSANs": _PEER_SANS,
    "etcd.local.peerCertSANs": _PEER_SANS,
    "dns.imageRepository": (("d.example/x", "registry.k8s.io"), ("A B", 5)),
    "dns.imageTag": _TEXTS,
    "dns.disabled": _SWITCHES,
    "proxy.disabled": _SWITCHES,
}
_QUANTITIES: Choice = (("1Gi", "1024Mi", "1073741824", 5, "0.5Gi", "100m", "1e3", "12E"), ("x", "1 Gi", []))
_KUBELET: Mapping[str, Choice] = {
    "maxPods": ((50, 0), ("x", 1.5)),
    "cgroupDriver": (("systemd", "cgroupfs", ""), (5,)),
    "clusterDNS": ((["10.0.0.10"], []), ("x", [1])),
    "rotateCertificates": _SWITCHES,
    "authentication.anonymous.enabled": _SWITCHES,
    "authentication.webhook.cacheTTL": _DURATIONS,
    "authorization.mode": (("AlwaysAllow", ""), (5,)),
    "healthzPort": ((0, 10248), ("x",)),
    "healthzBindAddress": (("0.0.0.0", "::1"), (5,)),
    "evictionHard": (({"memory.available": "100Mi"}, {}), ({"a": 5}, "x")),
    "syncFrequency": _DURATIONS,
    "logging.flushFrequency": (("5s", 5000000000, 0), ("x",)),
    "logging.options.json.infoBufferSize": _QUANTITIES,
    "registerWithTaints": _TAINTS,
    "memoryThrottlingFactor": ((0.9, 1, 1e-7, 1e21, 3.0), ("x",)),
    "resolvConf": (("/x", ""), (5,)),
    "featureGates": (({"B": True, "A": False}, {}), ({"A": "x"},)),
    "shutdownGracePeriodByPodPriority": (([{"priority": 5, "shutdownGracePeriodSeconds": 10}], []), ("x",)),
}
_KUBE_PROXY: Mapping[str, Choice] = {
    "mode": (("", "iptables", "ipvs", "x"), (5,)),
    "bindAddress": (("0.0.0.0", "::", "127.0.0.1", "x"), (5,)),
    "clientConnection.qps": ((1.5, 3, 1e10), ("x",)),
    "conntrack.tcpEstablishedTimeout": _DURATIONS,
    "nodePortAddresses": (([], ["primary"]), ("x",)),
    "hostnameOverride": _TEXTS,
}
_JOIN: Mapping[str, Choice] = {
    **_NODE,
    **{f"controlPlane.localAPIEndpoint.{name}": values for name, values in _ENDPOINT.items()},
    "caCertPath": (("/x.crt",), ("x.crt", "/ca.pem", 5)),
    "discovery.bootstrapToken.token": (("abcdef.0123456789abcdef",), ("x", 5)),
    "discovery.bootstrapToken.apiServerEndpoint": (("lb:6443", "[fd00::1]:6443"), ("lb", "a:b:c", "lb:x", 5)),
    "discovery.bootstrapToken.unsafeSkipCAVerification": ((True,), ("x", False)),
    "discovery.tlsBootstrapToken": (("zzzzzz.zzzzzzzzzzzzzzzz",), ("x", 5)),
}
_NEEDED = ("discovery.bootstrapToken.",)
_PATCHED = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@dataclass(frozen=True)
class RandomCase:
    """A configuration file and, for some, a directory of patches that it names."""

    seed: int
    text: str
    patches: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Author:
    """Writes documents from a seed; `carelessness` is how often a value is wrong."""

    draw: random.Random
    carelessness: float

    def init(self, version: str, seed: int) -> RandomCase:
        """Write what init reads; keys are of the kind that costs little to make."""
        patches = self._patches() if self._happens(0.3) else {}
        directory: Tree = {"patches": {"directory": "/patches"}} if patches else {}
        cluster = {"kubernetesVersion": version, "encryptionAlgorithm": "ECDSA-P256", **self._fields(_CLUSTER, 0.12)}
        if self._happens(0.15):
            cluster["etcd"] = {"external": self._value(*_EXTERNAL_ETCD)}
        kubeadm = "kubeadm.k8s.io/v1beta4"
        documents = [
            {"apiVersion": kubeadm, "kind": "InitConfiguration", **self._fields(_INIT, 0.12), **directory},
            {"apiVersion": kubeadm, "kind": "ClusterConfiguration", **cluster},
        ]
        if self._happens(0.3):
            head = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
            documents.append({**head, **self._fields(_KUBELET, 0.2)})
        if self._happens(0.2):
            head = {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration"}
            documents.append({**head, **self._fields(_KUBE_PROXY, 0.3)})
        return RandomCase(seed, self._file(documents), patches)

    def join(self, seed: int) -> RandomCase:
        head = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "JoinConfiguration"}
        return RandomCase(seed, self._file([{**head, **self._fields(_JOIN, 0.15)}]))

    def _happens(self, share: float) -> bool:
        return self.draw.random() < share

    def _value(self, right: Sequence[Any], wrong: Sequence[Any]) -> Any:
        found = self.draw.choice(wrong if self._happens(self.carelessness) else right)
        return self._args() if found == _ARGS else found

    def _fields(self, table: Mapping[str, Choice], share: float) -> Tree:
        tree: Tree = {}
        for path, values in table.items():
            if path.startswith(_NEEDED) or self._happens(share):
                _put(tree, path.split("."), self._value(*values))
        if self._happens(self.carelessness):
            tree[self.draw.choice(("nonsense", "Networking", "clustername"))] = self.draw.choice((1, {}, None))
        return tree

    def _args(self) -> list[Tree]:
        names = ("v", "bind-address", "feature-gates", "authorization-mode", "hostname-override", "cert-dir", "a", "z",
                 "listen-metrics-urls", "advertise-client-urls")  # fmt: skip
        return [
            {"name": self._value(names, ("", 5)), "value": self._value(*_TEXTS)} for _ in range(self.draw.randint(0, 4))
        ]

    def _patches(self) -> dict[str, str]:
        target = self.draw.choice(_PATCHED)
        container: Tree = {
            "name": target,
            "env": self._value(*_ENVS),
            "imagePullPolicy": self._value(("Always",), (5,)),
        }
        container["resources"] = {"limits": {"memory": self._value(*_QUANTITIES)}}
        pod: Tree = {"metadata": {"annotations": {"a": self._value(*_TEXTS)}}, "spec": {"containers": [container]}}
        json_patch = [{"op": "add", "path": "/spec/containers/0/command/-", "value": self._value(*_TEXTS)}]
        files = {
            f"{target}.yaml": self._text(pod),
            f"{target}1+merge.json": self._text({"metadata": {"labels": {"tier": None, "x": self._value(*_TEXTS)}}}),
            f"{target}2+json.yaml": self._text(json_patch),
            "kubeletconfiguration.yaml": self._text(self._fields(_KUBELET, 0.1)),
            "README.md": "hello",
        }
        return {name: text for name, text in files.items() if self._happens(0.6)} or {"etcd.json": "{}"}

    def _file(self, documents: list[Tree]) -> str:
        self.draw.shuffle(documents)
        return "---\n".join(self._text(each) for each in documents)

    def _text(self, value: object) -> str:
        style = self.draw.random()
        if style < 0.3:
            return json.dumps(value, ensure_ascii=style < 0.15) + "\n"
        text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000, default_flow_style=False)
        return text


def _put(tree: Tree, path: Sequence[str], value: object) -> None:
    *folders, last = path
    for name in folders:
        tree = tree.setdefault(name, {})
        if not isinstance(tree, dict):
            return
    tree[last] = value
