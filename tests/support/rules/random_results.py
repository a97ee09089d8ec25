"""Random static Pods, kubelet configurations and command lines: near what works, with one to three changes each."""

from collections.abc import Callable
from random import Random
from typing import Any

from garboard.documents import Json
from garboard.schema import ComponentFlag, FieldType, Schema, StructType
from tests.support.rules.component_pods import component_pod
from tests.support.rules.workloads import KINDS, workload

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
PODS = ("etcd", *COMPONENTS)
NAMES = ("a", "audit", "k8s-certs", "Audit", "a_b", "a.b", "-a", "a-", "", "x" * 63, "x" * 64, "9", "etcd-data")
NUMBERS = (-1, 0, 1, 2, 5, 30, 100, 101, 255, 256, 1000, 65535, 65536, 2**31 - 1)
QUANTITIES = ("0", "1", "100m", "2", "1Gi", "512Mi", "-1", "1GB", "x", "1.5", "2Mi", "3Mi")
DURATIONS = ("0s", "1s", "-1s", "500ms", "1m", "2m", "5m", "300s", "301s", "1h", "100ms", "3s")
PATHS = ("/a", "/a/b", "a/b", "../a", "/a/../b", "", "..a", "/etc/ssl/certs", "/")
WORDS = {
    "apiVersion": ("v1", "v2", ""),
    "action": ("Restart", "RestartAllContainers", "restart"),
    "conditionType": ("a.b/c", "a", "", "a b"),
    "dnsPolicy": ("ClusterFirst", "Default", "None", "none", ""),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule", "", "Evict"),
    "fieldPath": ("metadata.name", "status.podIP", "spec.nope", "metadata.labels['a']", "metadata.labels", ""),
    "fsGroupChangePolicy": ("Always", "OnRootMismatch", "Never"),
    "hostIP": ("", "127.0.0.1", "10.0.0.01"),
    "image": (
        *("registry.k8s.io/pause:3.10", "", "a ", " ", "a b", "A", "A/b", "a.B/c", "localhost:5000/a", "a:b:c", "a__b"),
        *("a:", "a@sha256:00", "[::1]:5000/a/b:c", "a//b", "a.b/c.-d", f"a@sha256:{'0' * 64}", "0" * 64, "a/B:c"),
    ),
    "imagePullPolicy": ("Always", "Never", "IfNotPresent", "Sometimes", ""),
    "ip": ("10.0.0.1", "fd00::1", "10.0.0.01", "::ffff:1.2.3.4", "a", ""),
    "key": ("a", "a/b", "example.com/a", "a b", "", "metadata.name"),
    "localhostProfile": ("a.json", "/a", "../a", "", " a"),
    "medium": ("", "Memory", "HugePages"),
    "mode": ("Plaintext", "TLS", "x"),
    "mountPropagation": ("None", "HostToContainer", "Bidirectional", "Both"),
    "name": NAMES,
    "nodeAffinityPolicy": ("Honor", "Ignore", "Never"),
    "nodeTaintsPolicy": ("Honor", "Ignore", "Never"),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "", "exists"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority", "Always"),
    "priorityClassName": ("system-node-critical", "", "A"),
    "procMount": ("Default", "Unmasked", "Other"),
    "protocol": ("TCP", "UDP", "SCTP", "", "tcp", "HTTP1", "HTTP2"),
    "recursiveReadOnly": ("Disabled", "Enabled", "IfPossible", "Yes"),
    "resource": ("limits.cpu", "requests.memory", "cpu", "limits.hugepages-2Mi", ""),
    "resourceName": ("cpu", "memory", "storage", ""),
    "restartPolicy": ("Always", "OnFailure", "Never", "always", "", "NotRequired", "RestartContainer"),
    "scheme": ("HTTP", "HTTPS", "", "http"),
    "seLinuxChangePolicy": ("Recursive", "MountOption", "None"),
    "stopSignal": ("SIGTERM", "SIGRTMIN+3", "SIGRTMAX-15", "TERM"),
    "supplementalGroupsPolicy": ("Merge", "Strict", "None"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError", "Log", ""),
    "topologyKey": ("kubernetes.io/hostname", "a", "", "a b"),
    "type": ("", "File", "Directory", "DirectoryOrCreate", "Folder", "Localhost", "RuntimeDefault", "Unconfined"),
    "volumeName": ("k8s-certs", "a", ""),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway", "Never", ""),
    # KubeletConfiguration
    "containerLogMaxSize": ("10Mi", "10MB", "1.5", "0", "100m", ""),
    "hairpinMode": ("none", "hairpin-veth", "promiscuous-bridge", "veth", ""),
    "imagePullCredentialsVerificationPolicy": ("", "NeverVerify", "AlwaysVerify", "Always"),
    "memoryReservationPolicy": ("", "None", "TieredReservation", "Tiered"),
    "podLogsDir": ("", "/var/log/pods", "logs", "/a/../b", "/a/", "/ä"),
    "reservedSystemCPUs": ("", "0", "0-3", "3-1", "a", "0-3,8"),
    "tlsCipherSuites": ("TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA", "FOO", ""),
    "tlsMinVersion": ("", "VersionTLS12", "TLS13"),
    "swapBehavior": ("", "NoSwap", "LimitedSwap", "All"),
    "topologyManagerPolicy": ("", "none", "restricted", "strict"),
    "topologyManagerScope": ("", "container", "pod", "node"),
    "format": ("", "text", "json", "xml"),
    "filePattern": ("a", "a=b", ""),
}
KUBELET_LISTS = {
    "enforceNodeAllocatable": ("pods", "none", "system-reserved", "kube-reserved", "kube-reserved-compressible", "pod"),
}
SIGNALS = ("memory.available", "nodefs.available", "pid.available", "imagefs.inodesFree", "memory.free")
THRESHOLDS = ("100Mi", "10%", "0", "1G5", "", "-1", "110%", "5.5%")
# What the rules leave to Kubernetes: statuses, volumes of vendors, Windows, what the answer of a machine decides, and
# what only a kubelet that starts would refuse. docs/compatibility.md lists them.
LEFT_OUT = frozenset(
    {
        *("status", "windowsOptions", "annotations", "evictionResponders", "schedulingGroup"),
        *("managedFields", "ownerReferences", "generateName", "finalizers", "uid", "resourceVersion", "selfLink"),
        *("generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
        *("iscsi", "fc", "quobyte", "flocker", "azureDisk", "storageos", "flexVolume"),
        *("featureGates", "showHiddenMetricsForVersion", "tracing", "failCgroupV1", "singleProcessOOMKill"),
        *("preloadedImagesVerificationAllowlist", "defaultPodSysctls"),
        *("cgroupDriver", "cpuManagerPolicy", "memoryManagerPolicy", "authorization"),
        *("configMapAndSecretChangeDetectionStrategy", "tlsCurvePreferences"),
        *("cpuManagerPolicyOptions", "topologyManagerPolicyOptions", "allowedUnsafeSysctls"),
        *("tlsCertFile", "tlsPrivateKeyFile"),
    }
)
# Of templates: what the rules leave out of the objects that only these may refer to; and images, whose blanks are
# refused in the Pods that a template makes.
WORKLOADS_LEFT_OUT = frozenset(
    {
        *("ephemeral", "glusterfs", "azureFile", "csi", "persistentVolumeClaim", "resourceClaims", "claims", "image"),
        *(
            "nodeName",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
            "secretRef",
            "volumeClaimTemplate",
        ),
        *("imagePullSecrets", "deprecatedServiceAccount", "serviceAccount", "rbd", "cephfs", "scaleIO", "cinder"),
    }
)
# Flags that read files, end the program, change the whole process, or have a grammar that the rules leave out.
FLAGS_LEFT_OUT = frozenset(
    {
        *("version", "help", "emulated-version", "min-compatibility-version", "emulation-forward-compatible"),
        *("runtime-config-emulation-forward-compatible", "authorization-config", "admission-control"),
        *("log-flush-frequency", "allow-metric-labels-manifest", "service-account-signing-endpoint"),
        # The answers depend on how the program was built, and on a file.
        *("show-hidden-metrics-for-version", "config"),
    }
)
HTTP2_SUITE = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"  # without one like this the server of HTTP/2 does not start
# What is refused only when a controller or a client starts, or by code that the older minor does not have.
FOUND_BY_STARTS = ("allocate-node-cidrs", "tls-curve-preferences", "kube-api-burst", "endpoint-reconciler-type")
# Words that are no flags of a component, and some that are.
STRAY_WORDS = (
    *("hello", "", "-", "--", "-x", "-v", "-v=2", "-v2", "-v=", "-vx", "-h", "-hx", "--=a", "---a", "-=", "\u2014v=2"),
    *("--v", "true", " "),
)
PLUGINS_FOUND_BY_STARTS = ("EventRateLimit", "ImagePolicyWebhook")
# Addresses and ports that the machine may not have, and programs elsewhere that would have to be there.
OF_THE_MACHINE = ("bind-address", "advertise-address", "secure-port", "master", "log-outputs")
# What kube-apiserver does not start without.
API_SERVER = (
    "--etcd-servers=https://127.0.0.1:2379",
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-account-key-file=/sa.pub",
    "--service-account-signing-key-file=/sa.key",
)


class RandomResults:
    """Makes results of one minor from a seed."""

    def __init__(self, schema: Schema, random: Random) -> None:
        self.schema = schema
        self.random = random
        self.left_out = LEFT_OUT

    def pod(self) -> Json:
        """Return a Pod of kubeadm with a few changes."""
        pod: Any = component_pod(self.random.choice(PODS))
        shape = self.schema.type_of("v1", "Pod")
        assert shape is not None
        if self.random.random() < 0.5:
            self._extend(pod["spec"])
        else:
            for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))):
                self._change(pod, shape, depth=0)
        result: Json = pod
        return result

    def workload(self) -> Json:
        """Return the Deployment of CoreDNS or the DaemonSet of kube-proxy with a few changes."""
        kind, self.left_out = self.random.choice(KINDS), LEFT_OUT | WORKLOADS_LEFT_OUT
        document: Any = workload(kind)
        shape = self.schema.type_of("apps/v1", kind)
        assert shape is not None
        if self.random.random() < 0.3:
            self._extend(document["spec"]["template"]["spec"])
        else:
            for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))):
                self._change(document, shape, depth=0)
        result: Json = document
        return result

    def _extend(self, spec: dict[str, Any]) -> None:
        """Add one whole volume, or one whole field of a container or of the Pod."""
        kind = self.random.choice(("Volume", "Container", "Container", "PodSpec"))
        fields = self.schema.type_named(f"core/v1.{kind}").fields
        name = self.random.choice([name for name in fields if name not in (*self.left_out, "containers", "volumes")])
        value = self._value(name, fields[name], depth=5)
        if kind == "Volume":
            spec["volumes"].append({"name": "extra", name: value})
        elif kind == "PodSpec":
            spec[name] = value
        elif self.random.random() < 0.3:
            spec["initContainers"] = [{"name": "extra", "image": "a", name: value}]
        else:
            spec["containers"][0][name] = value

    def kubelet(self) -> Json:
        config: dict[str, Any] = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        }
        shape = self.schema.type_of("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration")
        assert shape is not None
        for _ in range(self.random.choice((1, 1, 2, 3, 4))):
            name = self.random.choice([name for name in shape.fields if name not in self.left_out])
            if name not in config:
                config[name] = self._value(name, shape.fields[name], 2)
        if self.random.random() < 0.1:
            gate = self.random.choice(("MemoryQoS", "NoSuchGate", "KubeletCrashLoopBackOffMax", "NodeSwap"))
            config["featureGates"] = {gate: self.random.random() < 0.3}
        return config

    def flags(self) -> tuple[str, list[Json]]:
        component = self.random.choice(COMPONENTS)
        options = self.schema.component(component)
        assert options is not None
        left_out = (*FLAGS_LEFT_OUT, *FOUND_BY_STARTS)
        known = [flag for name, flag in options.flags.items() if name not in left_out]
        needed = API_SERVER if component == "kube-apiserver" else ()
        words: list[Json] = [word for word in needed if self.random.random() > 0.01]
        if component == "kube-apiserver":  # else the machine is asked
            words.append("--advertise-address=10.0.0.1")
        chosen = self.random.choices(known, k=self.random.choice((1, 1, 2, 3)))
        words += [f"--{flag.name}={self._flag_value(flag, options.choices.get(flag.name))}" for flag in chosen]
        if self.random.random() < 0.03:
            words.append("--no-such-flag")
        if self.random.random() < 0.2:
            words = self._mangled(words, self.random.choice(chosen))
        return component, words

    def _mangled(self, words: list[Json], flag: ComponentFlag) -> list[Json]:
        """Return a command line with a word that is no flag, or with a flag in another of its forms."""
        pick = self.random.choice
        if self.random.random() < 0.5:
            at = self.random.randrange(len(words) + 1)
            return [*words[:at], pick(STRAY_WORDS), *words[at:]]
        last = str(words[-1])
        name, equals, value = last.removeprefix("--").partition("=")
        if name == "feature-gates":  # the other program reads them by themselves
            return words
        forms: tuple[list[Json], ...] = (
            [f"--{name}", value],  # two words
            [f"--{name}"] if equals else [last],
            [f"-{name}={value}"],
            [f" --{name}={value}"],
            [f"{name}={value}"],
            [f"\u2014{name}={value}"],
            [f"---{name}={value}"],
            [f"--{name.replace('-', '_')}={value}"],
            [last, f"--{flag.name}"],
        )
        return [*words[:-1], *pick(forms)]

    def more_flags(self, component: str) -> list[str]:
        """Return one to three flags of a component, without those whose effect depends on the machine."""
        options = self.schema.component(component)
        assert options is not None
        known = [flag for name, flag in options.flags.items() if name not in (*FLAGS_LEFT_OUT, *OF_THE_MACHINE)]
        chosen = self.random.choices(known, k=self.random.choice((1, 2, 3)))
        return [f"--{flag.name}={self._flag_value(flag, options.choices.get(flag.name))}" for flag in chosen]

    def _change(self, members: dict[str, Any], shape: StructType, depth: int) -> None:
        """Change one field somewhere below: mostly in what is there, else something new."""
        names = [
            name for name in shape.fields if name not in (*self.left_out, "kind", *(() if depth else ("apiVersion",)))
        ]
        inside = [name for name in names if isinstance(members.get(name), dict | list) and members[name]]
        if inside and (depth == 0 or self.random.random() < 0.6):
            name = self.random.choice(inside)
            field, value = shape.fields[name], members[name]
            below = self.random.choice(value) if isinstance(value, list) else value
            type_ = field.type or (field.of.type if field.of else None)
            if isinstance(below, dict) and type_ is not None and not type_.self_written:
                self._change(below, type_, depth + 1)
                return
        name = self.random.choice(names)
        if name in members and self.random.random() < 0.15:
            del members[name]
        else:
            new = self._value(name, shape.fields[name], 3)
            if isinstance(new, list) and isinstance(members.get(name), list) and self.random.random() < 0.7:
                members[name] += new
            else:
                members[name] = new

    def _value(self, name: str, field: FieldType, depth: int) -> Json:
        pick = self.random.choice
        if field.kind == "list" and field.of is not None:
            if name in KUBELET_LISTS:
                return [pick(KUBELET_LISTS[name]) for _ in range(pick((1, 1, 2)))]
            return [self._value(name, field.of, depth - 1) for _ in range(pick((0, 1, 1, 2)))]
        if field.kind == "map" and field.of is not None:
            return self._map(name, field.of, depth)
        if field.kind == "struct" and field.type is not None:
            names = [each for each in field.type.fields if each not in self.left_out]
            chosen = self.random.sample(names, k=min(len(names), pick((1, 2, 3, 4)))) if depth > 0 else []
            return {each: self._value(each, field.type.fields[each], depth - 1) for each in chosen}
        return self._scalar(name, field.scalar)

    def _map(self, name: str, of: FieldType, depth: int) -> Json:
        pick = self.random.choice
        if name in ("limits", "requests", "kubeReserved", "systemReserved"):
            keys = pick((("cpu",), ("memory",), ("cpu", "memory"), ("memroy",), ("hugepages-2Mi", "cpu"), ("a.b/c",)))
            return {key: pick(QUANTITIES) for key in keys}
        if name == "evictionSoftGracePeriod":
            return {pick(SIGNALS): pick(DURATIONS)}
        if name.startswith("eviction"):
            return {pick(SIGNALS): pick(THRESHOLDS)}
        if of.scalar == "string":
            return {pick(("a", "example.com/a", "a b", "/a", "A.b")): pick(("", "b", "b c", "x" * 64))}
        return {"a": self._value(name, of, depth - 1)}

    def _scalar(self, name: str, scalar: str) -> Json:
        pick = self.random.choice
        if name == "mode" and scalar.startswith("int"):
            return pick((0, 0o644, 0o777, 0o1777, 0o2000, -1))
        by_type: dict[str, Callable[[], Json]] = {
            "bool": lambda: pick((True, False)),
            "quantity": lambda: pick(QUANTITIES),
            "duration": lambda: pick(DURATIONS),
            "durationOrNanoseconds": lambda: pick(("1s", "5s")),
            "float64": lambda: pick((0.5, 0.9, 1, 0, 1.5, -1)),
            "intOrString": lambda: pick((80, 0, 65536, "http", "HTTP", "", "a--b", "80")),
        }
        if scalar in by_type:
            return by_type[scalar]()
        if scalar.startswith(("int", "uint")):
            return pick([number for number in NUMBERS if number >= 0 or scalar.startswith("int")])
        if "path" in name.lower() and name not in WORDS:
            return pick(PATHS)
        return pick(WORDS.get(name, NAMES))

    def _flag_value(self, flag: ComponentFlag, choices: "frozenset[str] | None") -> str:
        pick = self.random.choice
        if choices is not None:
            known = [each for each in sorted(choices) if each not in PLUGINS_FOUND_BY_STARTS]
            return ",".join(pick((*known[:4], "*" if flag.name == "controllers" else "Nope")) for _ in "ab")
        if flag.name == "feature-gates":
            return pick(
                ("AllAlpha=false", "AllBeta=true", "kube:AllAlpha=false", "Nope=true", "AllAlpha", "AllAlpha=tRUE")
            )
        values = {
            "authorization-mode": ("Node,RBAC", "RBAC", "AlwaysAllow", "RBCA", "Node,Node", "ABAC", "Webhook", ""),
            "audit-log-mode": ("batch", "blocking", "blocking-strict", "async"),
            "audit-webhook-mode": ("batch", "blocking", "async"),
            "audit-log-format": ("json", "legacy", "xml"),
            "audit-log-version": ("audit.k8s.io/v1", "audit.k8s.io/v1beta1", "v1"),
            "audit-webhook-version": ("audit.k8s.io/v1", "audit.k8s.io/v1beta1"),
            "storage-media-type": ("application/json", "application/vnd.kubernetes.protobuf", "text/plain"),
            "storage-backend": ("etcd3", "etcd2", ""),
            "leader-elect-resource-lock": ("leases", "endpoints"),
            "tls-min-version": ("VersionTLS12", "VersionTLS13", "TLS13", ""),
            "tls-cipher-suites": (HTTP2_SUITE, f"TLS_RSA_WITH_RC4_128_SHA,{HTTP2_SUITE}", "FOO", ""),
            "logging-format": ("text", "json", "xml", ""),
            "service-cluster-ip-range": ("10.96.0.0/12", "fd00::/112", "10.0.0.0/8,fd00::/112", "10.0.0.0/30", "a", ""),
            "runtime-config": (
                "api/all=true",
                "api/all=false",
                "apps/v1=true",
                "app/v1=true",
                "batch/v1/jobs=false",
                "x",
            ),
            "cors-allowed-origins": ("^https://a$", "//a:", "a", "^a"),
            "strict-transport-security-directives": ("max-age=1", "preload", "x", "max-age=1=2"),
            "etcd-servers-overrides": ("/events#https://a;https://b", "apps/x#a", "a", "a#b"),
            "watch-cache-sizes": ("pods#10", "pods", "pods#a", "pods#-1"),
            "cloud-provider": ("", "external", "aws"),
            "cidr-allocator-type": ("", "RangeAllocator", "CloudAllocator"),
            "advertise-address": ("10.0.0.1", "fd00::1", "10.0.0.01", "a"),
            "allow-metric-labels": ("a,b=c", "a=b", "a", "1,b=c"),
            "disabled-metrics": ("a", "a,b", "1a", ""),
            "requestheader-uid-headers": ("X-Remote-Uid", "x", ""),
            "oidc-issuer-url": ("https://a", ""),  # others are refused when the authenticator is made
            "service-account-jwks-uri": ("https://a", "http://a", "a", ""),
            "service-account-max-token-expiration": ("1h", "5m", "0", "24h"),
        }.get(flag.name) or _FLAG_VALUES.get(flag.type, ("a", "a,b", '"a"', "a=b", "", "/a/b"))
        return str(pick(values))


_WHOLE = (
    "0",
    "1",
    "-1",
    "10",
    "0x10",
    "010",
    "1_000",
    "1__0",
    "_1",
    "a",
    "",
    "1.5",
    "+5",
    "99999999999999999999",
    "4294967296",
)
_FLAG_VALUES: dict[str, tuple[str, ...]] = {
    "bool": ("true", "false", "1", "T", "yes", "", "TRUE", "tRUE"),
    "duration": ("1s", "5m", "1h30m", "0", "1d", "", "15", "-5s", "1.5h", "-0s"),
    **dict.fromkeys(("int", "int32", "int64", "uint", "uint32", "uint64"), _WHOLE),
    **dict.fromkeys(
        ("float32", "float64"), ("1", "0.5", "1e3", "1e400", "nan", "inf", "a", "", "1_0", ".5", "-0.1", "0.01")
    ),
    "ip": ("10.0.0.1", "::1", "10.0.0.01", "a", "", " 10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0"),
    "stringSlice": ("a,b", '"a,b"', 'a"b', "", "a", '"a', '"a"b', 'a,"b""c"'),
    "stringToString": ("a=b", "a", "a=b,c=d", "a=b,c", "", '"a=b,c=d"', "a=b=c"),
    "mapStringString": ("a=b", "a", "", "a=b,c=d"),
    "portRange": ("30000-32767", "30000+10", "80", "0-0", "32767-30000", "1-70000", "a", "", "1-2-3", " 80-90 "),
    "int32Slice": ("1", "1,2", "a", "", "0x1d", "1,,2", "4294967296"),
    "namedCertKey": ("a,b", "a,b:c", "a", "a,b:", "a,b,c", "a,b:c,d", ""),
    "quantity": ("64Ki", "1M", "64KB", "", "a", "0", "1.5"),
    "Level": ("2", "-1", "a", "", "2147483648"),
    "pattern=N,...": ("a=1", "a", "a=1,b=2", "a=b", "", "=1", "a=1=2"),
}
