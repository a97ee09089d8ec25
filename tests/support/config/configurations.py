"""Configurations that kubeadm and garboard must treat alike; `VERSION` stands for the minor's reference patch."""

CLUSTER = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: VERSION\n"
INIT = (
    "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nbootstrapTokens:\n- token: abcdef.0123456789abcdef\n"
)
JOIN = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    token: abcdef.0123456789abcdef
    apiServerEndpoint: lb.example.com:6443
    caCertHashes: ["sha256:0000000000000000000000000000000000000000000000000000000000000000"]
"""
RESET = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ResetConfiguration\n"
UPGRADE = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: UpgradeConfiguration\n"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
KUBE_PROXY = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"


def _file(*documents: str) -> str:
    return "---\n".join(documents)


VALID: dict[str, str] = {
    "defaults": _file(INIT, CLUSTER),
    "an anchor that is used twice": CLUSTER
    + "clusterName: &x one\nnetworking: {dnsDomain: &x a.example}\ncontrolPlaneEndpoint: *x\n",
    "an IPv4 network in IPv6": CLUSTER + "networking: {serviceSubnet: '::ffff:10.7.0.0/112'}\n",
    "dual stack": _file(
        INIT,
        CLUSTER + "networking: {podSubnet: '10.244.0.0/16,fd00:10:244::/56', "
        "serviceSubnet: '10.96.0.0/16,fd00:10:96::/112'}\n",
    ),
    "ipv6": _file(
        INIT + "localAPIEndpoint: {advertiseAddress: 'fd00:0:0::1', bindPort: 7443}\n",
        CLUSTER + "networking: {podSubnet: 'fd00:10:244::/56', serviceSubnet: 'fd00:10:96::/112'}\n"
        "controlPlaneEndpoint: '[fd00::10]:6443'\n",
    ),
    "external etcd": _file(
        INIT,
        CLUSTER + "etcd:\n  external:\n    endpoints: [https://10.0.0.1:2379, https://10.0.0.2:2379]\n"
        "    caFile: /etcd/ca.crt\n    certFile: /etcd/client.crt\n    keyFile: /etcd/client.key\n",
    ),
    "external etcd without tls": _file(
        INIT,
        CLUSTER + "etcd: {external: {endpoints: ['http://10.0.0.1:2379'], httpEndpoints: ['http://10.0.0.1:2382']}}\n",
    ),
    "arguments, volumes and environment": _file(
        INIT
        + "nodeRegistration:\n  kubeletExtraArgs:\n  - {name: v, value: '4'}\n  - {name: node-labels, value: a=b}\n",
        CLUSTER
        + """\
apiServer:
  certSANs: [API.Example.com, '*.example.com', 10.0.0.9]
  extraArgs:
  - {name: profiling, value: 'false'}
  - {name: audit-policy-file, value: ''}
  - {name: feature-gates, value: AllAlpha=true}
  - {name: feature-gates, value: AllBeta=false}
  extraVolumes:
  - {name: audit, hostPath: /etc/audit, mountPath: /etc/audit, readOnly: true, pathType: DirectoryOrCreate}
  - {name: plain, hostPath: /a, mountPath: /b}
  extraEnvs:
  - {name: A, value: b}
  - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
  - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1000m}}}
controllerManager:
  extraArgs: [{name: node-cidr-mask-size-ipv4, value: '25'}]
scheduler:
  extraEnvs: [{name: HTTP_PROXY, value: 'http://proxy:3128'}]
etcd:
  local:
    dataDir: /data/etcd
    imageTag: 3.6.9-0
    imageRepository: example.com/etcd
    extraArgs: [{name: quota-backend-bytes, value: '8589934592'}]
    serverCertSANs: [etcd.example.com]
    peerCertSANs: [10.0.0.7]
""",
    ),
    "image repositories": _file(
        INIT,
        CLUSTER
        + "imageRepository: mirror.example.com:5000/k8s\ndns: {imageRepository: example.com/dns, imageTag: v9}\n",
    ),
    "addons off": _file(INIT, CLUSTER + "dns: {disabled: true}\nproxy: {disabled: true}\n"),
    "keys and validity": _file(
        INIT,
        CLUSTER + "encryptionAlgorithm: ECDSA-P384\ncertificateValidityPeriod: 1h30m\n"
        "caCertificateValidityPeriod: 200000h\ncertificatesDir: /srv/pki\nclusterName: other\n",
    ),
    "rootless": _file(INIT, CLUSTER + "featureGates: {RootlessControlPlane: true}\n"),
    "endpoint without a port": _file(
        INIT + "localAPIEndpoint: {advertiseAddress: 10.1.2.3, bindPort: 8443}\n",
        CLUSTER + "controlPlaneEndpoint: lb.example.com\n",
    ),
    "timeouts and patches": _file(
        INIT + "timeouts: {discovery: 10m, kubernetesAPICall: 1500ms, tlsBootstrap: 0s}\n"
        "patches: {directory: ./patches}\nskipPhases: [addon/kube-proxy]\ndryRun: true\n",
        CLUSTER,
    ),
    "node settings": _file(
        INIT + "nodeRegistration:\n  name: ' Node-1 '\n  criSocket: /var/run/crio/crio.sock\n  imagePullPolicy: Never\n"
        "  imagePullSerial: false\n  ignorePreflightErrors: [Swap, NumCPU]\n"
        "  taints: [{key: a, value: b, effect: NoExecute}]\n",
        CLUSTER,
    ),
    "no taints": _file(INIT + "nodeRegistration: {taints: []}\n", CLUSTER),
    "certificate key": _file(INIT + f"certificateKey: {'ab' * 32}\n", CLUSTER),
    "tokens": _file(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nbootstrapTokens:\n"
        "- {token: abcdef.0123456789abcdef, ttl: 0s, usages: [signing], groups: [], description: 'one: two'}\n"
        "- {token: aaaaaa.bbbbbbbbbbbbbbbb, groups: ['system:bootstrappers:mine'], ttl: 1h}\n".replace(
            "usages: [signing], groups: []", "usages: [authentication]"
        ),
        CLUSTER,
    ),
    "cluster alone": CLUSTER + "networking: {dnsDomain: k8s.example.com}\n",
    "json": '{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", '
    '"kubernetesVersion": "VERSION"}\n',
    "nulls and zeros": _file(
        INIT + "nodeRegistration: null\nlocalAPIEndpoint: {bindPort: 0}\nskipPhases: []\n",
        CLUSTER + "apiServer: null\nclusterName: ''\ndns: {}\nfeatureGates: {}\netcd: {local: {}}\n",
    ),
    "component configurations": _file(
        INIT,
        CLUSTER + "networking: {podSubnet: 10.244.0.0/16}\n",
        KUBELET + "maxPods: 50\ncgroupDriver: cgroupfs\nrotateCertificates: false\nclusterDNS: [10.0.0.10]\n"
        "evictionHard: {memory.available: 100Mi}\nsyncFrequency: 60s\n",
        KUBE_PROXY + "mode: nftables\nbindAddress: 127.0.0.1\nconntrack: {maxPerCore: 0}\n",
    ),
    "join a worker": JOIN,
    "join a control plane": JOIN
    + f"controlPlane:\n  localAPIEndpoint: {{advertiseAddress: 10.0.0.5}}\n  certificateKey: {'0f' * 32}\n"
    "nodeRegistration: {name: cp-2, taints: []}\npatches: {directory: /patches}\ntimeouts: {discovery: 1m}\n",
    "join by file": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n"
    "discovery: {file: {kubeConfigPath: 'https://example.com/conf'}, tlsBootstrapToken: abcdef.0123456789abcdef}\n",
    "reset": RESET + "unmountFlags: [MNT_DETACH]\nforce: true\ncleanupTmpDir: true\ncriSocket: unix:///run/c.sock\n"
    "ignorePreflightErrors: [All]\nskipPhases: [preflight]\ncertificatesDir: /srv/pki\n",
    "kinds together": _file(INIT, CLUSTER, JOIN, RESET),
}

VALID_SINCE_1_37: dict[str, str] = {
    "upgrade": UPGRADE
    + "apply: {kubernetesVersion: VERSION, forceUpgrade: false, etcdUpgrade: false, patches: {directory: /p}, "
    "allowRCUpgrades: true}\nnode: {skipPhases: [a], dryRun: true}\nplan: {printConfig: true}\n"
    "diff: {contextLines: 5}\ntimeouts: {upgradeManifests: 10m}\n",
}

V1BETA3: dict[str, str] = {
    "v1beta3 init": _file(
        INIT.replace("v1beta4", "v1beta3") + "nodeRegistration:\n  kubeletExtraArgs: {v: '4', node-ip: 10.0.0.1}\n",
        """\
apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
kubernetesVersion: VERSION
apiServer:
  extraArgs: {profiling: 'false', audit-log-maxage: '3'}
  timeoutForControlPlane: 6m
scheduler:
  extraArgs: {v: '1', profiling: 'false'}
etcd:
  local: {dataDir: /data, extraArgs: {quota-backend-bytes: '1'}}
""",
    ),
    "v1beta3 cluster with external etcd": "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\n"
    "kubernetesVersion: VERSION\netcd: {external: {endpoints: ['http://10.0.0.1:2379']}}\n",
    "v1beta3 join": JOIN.replace("v1beta4", "v1beta3")
    + "  timeout: 7m\nnodeRegistration: {kubeletExtraArgs: {v: '2'}}\n",
}

_APPENDING = "{name: enable-admission-plugins, value: ',AlwaysPullImages', mergeMethod: append}"
_LISTENING = "{name: listen-metrics-urls, value: ',http://127.0.0.1:2382', mergeMethod: append}"
EXPERIMENTAL: dict[str, str] = {
    name: text.replace("kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1")
    for name, text in {
        "defaults": _file(INIT, CLUSTER),
        "merge methods": _file(
            INIT + "nodeRegistration: {kubeletExtraArgs: [{name: v, value: '4', mergeMethod: prepend}]}\n",
            CLUSTER + f"apiServer: {{extraArgs: [{_APPENDING}, {{name: v, value: '4', mergeMethod: ''}}]}}\n"
            f"etcd: {{local: {{extraArgs: [{_LISTENING}]}}}}\n",
        ),
        "unknown merge methods": CLUSTER
        + "scheduler: {extraArgs: [{name: a, mergeMethod: Append}, {mergeMethod: x}]}\n",
        "join": JOIN,
        "reset": RESET + "force: true\n",
        "upgrade": UPGRADE + "node: {dryRun: true}\n",
        "unknown fields": CLUSTER + "foo: 1\n",
    }.items()
}
EXPERIMENTAL["beside v1beta4"] = _file(INIT, CLUSTER.replace("v1beta4", "v1"))

INVALID: dict[str, str] = {
    "subnets": _file(
        INIT,
        CLUSTER + "networking: {podSubnet: 10.0.0.0/30, serviceSubnet: '10.0.0.0/8,10.1.0.0/16', dnsDomain: A_b}\n",
    ),
    "no subnets": CLUSTER + "networking: {podSubnet: nonsense, serviceSubnet: 10.0.0.0/33}\n",
    "three subnets": CLUSTER + "networking: {podSubnet: '10.1.0.0/16,10.2.0.0/16,fd00::/56'}\n",
    "pod subnet and node mask": CLUSTER + "networking: {podSubnet: '10.0.0.0/26,fd00::/40'}\n",
    "node mask that is no number": CLUSTER + "networking: {podSubnet: 10.244.0.0/16}\n"
    "controllerManager: {extraArgs: [{name: node-cidr-mask-size-ipv4, value: x}]}\n",
    "a key beside the one of a merged mapping": CLUSTER
    + "apiServer: &x {extraArgs: []}\nscheduler: {<<: *x, extraArgs: []}\n"
    "controllerManager:\n  extraArgs: []\n  <<: *x\n",
    "pods in an IPv4 network in IPv6": CLUSTER + "networking: {podSubnet: '::ffff:10.7.0.0/112'}\n",
    "a key in brackets without a value": CLUSTER + "apiServer: {certSANs: [], extraEnvs:}\n",
    "unknown gates": CLUSTER + "featureGates: {Nonsense: true, Other: false}\n",
    "algorithm": CLUSTER + "encryptionAlgorithm: RSA-1024\n",
    "names for the certificate": CLUSTER + "apiServer: {certSANs: ['a b', 10.0.0.300, '*.*.x', ok.example.com]}\n",
    "arguments without names": CLUSTER
    + "apiServer: {extraArgs: [{value: x}]}\nscheduler: {extraArgs: [{name: a, value: b}, {name: ''}]}\n",
    "paths": CLUSTER + "certificatesDir: pki\netcd: {local: {dataDir: data}}\n",
    "repositories": CLUSTER
    + "imageRepository: 'UPPER/case'\ndns: {imageRepository: 'a b'}\netcd: {local: {imageRepository: '-x'}}\n",
    "both etcds": CLUSTER + "etcd: {local: {}, external: {endpoints: ['https://a:1']}}\n",
    "external etcd halves": CLUSTER
    + "etcd: {external: {endpoints: ['http://a:2379', '10.0.0.1:2379', 'host/x'], certFile: c.crt}}\n",
    "external etcd without endpoints": CLUSTER + "etcd: {external: {endpoints: [], keyFile: /k, certFile: /c}}\n",
    "endpoint": CLUSTER + "controlPlaneEndpoint: 'bad_host:6443'\n",
    "endpoint port": CLUSTER + "controlPlaneEndpoint: 'lb.example.com:99999'\n",
    "node": _file(
        INIT + "nodeRegistration: {name: 'a_b', criSocket: 'tcp://1.2.3.4', imagePullPolicy: Sometimes}\n"
        "localAPIEndpoint: {bindPort: 70000}\n",
        CLUSTER,
    ),
    "advertise address": _file(INIT + "localAPIEndpoint: {advertiseAddress: host.example.com}\n", CLUSTER),
    "token": _file(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nbootstrapTokens:\n"
        "- {token: abcdef.0123456789abcdef, usages: [signing, sleeping], groups: [mine], ttl: 1h, "
        "expires: '2030-01-01T00:00:00Z'}\n",
        CLUSTER,
    ),
    "token text": _file(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nbootstrapTokens: [{token: x}]\n", CLUSTER
    ),
    "join without discovery": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ncaCertPath: ca.pem\n",
    "join with half a discovery": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n"
    "discovery: {bootstrapToken: {token: abc}}\n",
    "join with both discoveries": JOIN + "  file: {kubeConfigPath: https://a/b}\n",
    "join by a missing file": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n"
    "discovery: {file: {kubeConfigPath: /no/such/file}}\n",
    "join by http": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n"
    "discovery: {file: {kubeConfigPath: 'http://example.com'}}\n",
    "reset": RESET + "unmountFlags: [MNT_FORCE, NONSENSE]\ncertificatesDir: pki\ncriSocket: tcp://x\n",
    "upgrade": UPGRADE + "apply: {patches: {directory: p}, imagePullPolicy: x}\nnode: {patches: {}}\n",
    "unknown fields": CLUSTER
    + "foo: 1\nnetworking: {podsubnet: 10.0.0.0/16}\napiServer: {extraArgs: [{name: a, value: b, x: 1}]}\n",
    "repeated keys": CLUSTER
    + "clusterName: a\nnetworking:\n  podSubnet: 10.0.0.0/16\n  podSubnet: 10.1.0.0/16\nclusterName: b\n",
    "wrong types": CLUSTER + "networking: 5\n",
    "number for text": CLUSTER + "clusterName: 5\n",
    "text for a number": _file(INIT + "localAPIEndpoint: {bindPort: '6443'}\n", CLUSTER),
    "bad duration": CLUSTER + "certificateValidityPeriod: 1d\n",
    "duration without a unit": CLUSTER + "certificateValidityPeriod: '5'\n",
    "foreign kind": _file(CLUSTER, "apiVersion: v1\nkind: ConfigMap\n".replace("v1\n", "example.com/v1\n", 1)),
    "kind twice": _file(CLUSTER, CLUSTER),
    "no kind": _file(CLUSTER, "a: b\n"),
    "empty document": CLUSTER + "---\n# nothing\n",
    "old api": CLUSTER.replace("v1beta4", "v1beta2"),
    "component config of another version": _file(CLUSTER, KUBELET.replace("v1beta1", "v1")),
    "unknown field of a component": _file(CLUSTER, KUBELET + "maxPodz: 5\n"),
    "separator with text": CLUSTER + "--- text\n" + INIT,
    "not yaml": "a: [b\n",
    "flow style that begins like json": "{apiVersion: kubeadm.k8s.io/v1beta4, kind: ClusterConfiguration, "
    "kubernetesVersion: VERSION}\n",
    "component in flow style": _file(
        CLUSTER, "{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration}\n"
    ),
    "build with an underscore": CLUSTER.replace("VERSION", "VERSION+build_5"),
    "pre-release with a leading zero": CLUSTER.replace("VERSION", "VERSION-rc.01"),
    "experimental api": CLUSTER.replace("v1beta4", "v1"),
}

COMPONENTS: dict[str, str] = {
    "defaults": CLUSTER,
    "networks": CLUSTER + "networking: {podSubnet: 'fd00::/56', serviceSubnet: 'fd01::/112', dnsDomain: k8s.local}\n",
    "certificates elsewhere": CLUSTER + "certificatesDir: /srv//pki/\n",
    "ipv6 node": _file(INIT + "localAPIEndpoint: {advertiseAddress: 'fd00::9'}\n", CLUSTER),
    "kubelet settings": _file(
        CLUSTER,
        KUBELET
        + """\
maxPods: 50
cgroupDriver: cgroupfs
rotateCertificates: false
serverTLSBootstrap: true
clusterDNS: []
staticPodPath: /manifests
authentication: {anonymous: {enabled: true}, webhook: {cacheTTL: 120s}}
authorization: {mode: AlwaysAllow}
healthzPort: 0
readOnlyPort: 10255
evictionHard: {memory.available: 100Mi, nodefs.available: 10%}
featureGates: {B: true, A: false}
shutdownGracePeriod: 90s
logging:
  flushFrequency: 5000000000
  options: {json: {infoBufferSize: 1024Mi}}
  vmodule: [{filePattern: a, verbosity: 3}]
reservedMemory: [{numaNode: 0, limits: {memory: 1024Mi}}]
registerWithTaints: [{key: a, effect: NoSchedule, timeAdded: '2030-01-01T10:00:00+02:00'}]
systemReserved: {}
tlsCipherSuites: []
memoryThrottlingFactor: 0.9
containerLogMaxSize: ''
resolvConf: ''
failSwapOn: false
syncFrequency: 1.5h
unknownField: 1
""",
    ),
    "kube-proxy settings": _file(
        CLUSTER + "networking: {podSubnet: 10.244.0.0/16}\n",
        KUBE_PROXY
        + """\
mode: ipvs
bindAddress: '::'
clusterCIDR: 10.0.0.0/8
clientConnection: {qps: 1.5, burst: 10, kubeconfig: /x}
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 24h}
iptables: {masqueradeBit: 14, syncPeriod: 30s}
nodePortAddresses: []
featureGates: {}
logging: {flushFrequency: 5s, verbosity: 2}
oomScoreAdj: -999
""",
    ),
    "kube-proxy on one address": _file(CLUSTER, KUBE_PROXY + "bindAddress: 127.0.0.1\nmode: nftables\n"),
    "kube-proxy on no address": _file(CLUSTER, KUBE_PROXY + "bindAddress: nowhere\n"),
}
