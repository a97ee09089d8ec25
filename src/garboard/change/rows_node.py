"""Rows of the attribute table: Init- and JoinConfiguration, of which a cluster stores nothing. All are refused."""

from garboard.change.attribute import AttributeRow, path_of

_IDENTITY = "take the node out of the cluster (garboard reset) and let it join again"
_OF_COMMANDS = "leave it out here, and give it to the command that reads it"
_ROWS: tuple[tuple[str, str, str, str], ...] = (
    # fields, code, why, route
    (
        "localAPIEndpoint.advertiseAddress controlPlane.localAPIEndpoint.advertiseAddress", "node-identity",
        "certificates, the URLs of etcd, load balancers and clients hold the address", _IDENTITY,
    ),
    (
        "localAPIEndpoint.bindPort controlPlane.localAPIEndpoint.bindPort", "node-identity",
        "the load balancer, kubeconfigs and probes hold the port", _IDENTITY,
    ),
    ("localAPIEndpoint controlPlane.localAPIEndpoint", "node-identity", "it is where clients reach the node",
     _IDENTITY),
    ("nodeRegistration.name", "node-identity", "certificates and the Node object carry the name", _IDENTITY),
    (
        "nodeRegistration.criSocket", "node-setting", "the container runtime of a node is its own matter",
        "drain the node, exchange the runtime, change instance-config.yaml there, and restart its kubelet",
    ),
    ("nodeRegistration.taints", "registration-only", "taints count when a node registers", "kubectl taint node NAME"),
    (
        "nodeRegistration.kubeletExtraArgs", "node-setting", "the flags are in a file of the node alone",
        "change /var/lib/kubelet/kubeadm-flags.env on the node, and restart its kubelet",
    ),
    (
        "nodeRegistration.imagePullPolicy nodeRegistration.imagePullSerial nodeRegistration.ignorePreflightErrors",
        "not-applicable", "only init, join and upgrade read it", _OF_COMMANDS,
    ),
    ("nodeRegistration", "not-applicable", "it is used when a node registers", _IDENTITY),
    ("patches.directory", "use-patches", "which patches a node has, the cluster records", "--patches DIR"),
    ("patches", "use-patches", "which patches a node has, the cluster records", "--patches DIR"),
    (
        "timeouts.controlPlaneComponentHealthCheck", "node-setting",
        "it becomes the patience of four startup probes, and nothing stores it", "patch the startup probe",
    ),
    (
        "timeouts bootstrapTokens certificateKey skipPhases dryRun caCertPath discovery controlPlane", "not-applicable",
        "init and join use it, and nothing on a running node does", _OF_COMMANDS,
    ),
    ("apiVersion kind", "not-applicable", "the type of the document", "leave the document out"),
)  # fmt: skip

NODE_ROWS: tuple[AttributeRow, ...] = tuple(
    AttributeRow(path=path_of(field), code=code, scope="node", why=why, route=route)
    for fields, code, why, route in _ROWS
    for field in fields.split()
)
