"""The rules about results, by their codes: what Kubernetes refuses, and what a cluster loses."""

from collections.abc import Mapping

from garboard.rules.rule import Rule, RuleKind


def _validity(id_: str, summary: str, help_: str, mend: str) -> Rule:
    return Rule(id_, summary, help_, mend, RuleKind.VALIDITY)


def _danger(id_: str, summary: str, help_: str, mend: str) -> Rule:
    return Rule(id_, summary, help_, mend, RuleKind.DANGER)


_VALIDITY = (
    _validity(
        "required-field",
        "A field that must be there is missing or empty",
        "A Pod needs containers, a container a name and an image, a mount its path, a probe a handler. The kubelet"
        " refuses the manifest, and the component does not run.",
        "Add the field. A merge patch replaces lists whole: write the list in full, or use a strategic patch.",
    ),
    _validity(
        "unsupported-value",
        "A word that its field does not know",
        "The field takes one of a few words, in this spelling: `Always`, not `always`.",
        "Use one of the words that the message lists.",
    ),
    _validity(
        "out-of-range",
        "A number outside its range",
        "Ports are 1 to 65535, percentages 0 to 100, user and group IDs 0 to 2147483647; counts and times are not"
        " negative.",
        "Use a number of the range that the message gives.",
    ),
    _validity(
        "bad-name",
        "A name that is not of its form",
        "Containers, volumes and host names are DNS labels, label keys are qualified names, ports have names of at most"
        " 15 characters.",
        "Use lower-case letters, digits and dashes, beginning and ending with a letter or digit.",
    ),
    _validity(
        "bad-quantity",
        "A quantity that cannot be read",
        "Quantities are numbers with one of the suffixes n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei: `10M` or"
        " `10Mi`, not `10MB`.",
        "Use one of these suffixes.",
    ),
    _validity(
        "bad-duration",
        "A duration that cannot be read",
        "Durations are numbers with the units ns, us, ms, s, m and h; there is no unit for days.",
        "Write `24h` for a day.",
    ),
    _validity(
        "bad-path",
        "A path that is not allowed",
        "A path may not step up with `..`, and some must be absolute, others relative.",
        "Write the path without `..`, absolute or relative as the message says.",
    ),
    _validity(
        "bad-address",
        "An IP address that cannot be read",
        "Leading zeros and IPv4 addresses written as IPv6 are refused as well.",
        "Write the address as `10.0.0.1` or `fd00::1`.",
    ),
    _validity(
        "bad-format",
        "A value that is not of the form its field needs",
        "The field has a grammar of its own, such as a set of CPUs, an image pattern or a URL.",
        "Write it as the message says.",
    ),
    _validity(
        "unknown-resource",
        "A resource that containers do not have",
        "`requests` and `limits` take cpu, memory, ephemeral-storage, hugepages-SIZE and qualified names of devices."
        " The API server refuses anything else.",
        "Correct the name; the message suggests the nearest.",
    ),
    _validity(
        "requests-above-limits",
        "A request above its limit",
        "A container cannot be guaranteed more than it may use. Huge pages and devices need a request equal to the"
        " limit.",
        "Raise the limit or lower the request; mind values that kubeadm or another patch sets.",
    ),
    _validity(
        "missing-volume",
        "A mount of a volume that the Pod does not have",
        "Every volumeMount names a volume of the same Pod. The classic case: an audit log or a policy file is mounted,"
        " and the volume is forgotten.",
        "Add the volume to `spec.volumes`, or correct the name.",
    ),
    _validity(
        "several-sources",
        "More than one source, handler or value where one is allowed",
        "A volume has one source, a probe one handler, a variable either a value or one source. A strategic patch"
        " merges the new one beside the old one.",
        "Remove the old one in the same patch: `hostPath: null`, or `$retainKeys`.",
    ),
    _validity(
        "duplicate-name",
        "Two elements with one name",
        "Names of containers, volumes, ports and sysctls are unique in their list.",
        "Rename one of the two, or remove it.",
    ),
    _validity(
        "duplicate-mount-path",
        "Two mounts at one path",
        "A container can mount one volume at a path.",
        "Remove one of the two mounts, or mount it elsewhere.",
    ),
    _validity(
        "duplicate-port",
        "Two containers that take one port of the host",
        "Each port of the host, for one protocol and address, can be used once.",
        "Change one of the ports.",
    ),
    _validity(
        "port-mismatch",
        "A host port that is not the container's",
        "With hostNetwork the container listens on the host: hostPort and containerPort are the same number.",
        "Leave out hostPort, or make the two equal.",
    ),
    _validity(
        "forbidden-field",
        "A field that may not be set here",
        "Some fields exclude each other, or are not for this kind of container or Pod: probes of an init container,"
        " runOnce of the kubelet.",
        "Remove the field, or what excludes it.",
    ),
    _validity(
        "selector-mismatch",
        "A selector that does not match the labels of its template",
        "A Deployment or DaemonSet counts the Pods that its selector finds. The API server refuses one whose own Pods"
        " it would not find.",
        "Change the labels and the selector together; the selector of an object that exists cannot be changed at all.",
    ),
    _validity(
        "api-reference",
        "A static Pod that refers to an object of the API",
        "The kubelet starts static Pods without the API server, and refuses those that need a Secret, a ConfigMap, a"
        " service account, a claim or a CSI driver.",
        "Put the file on the node and mount it with hostPath.",
    ),
    _validity(
        "stray-word",
        "A word of the command that is no flag, or a flag without its value",
        "The components take flags and nothing else, with two dashes and `=`. `profiling=false`, `-profiling=false`, or"
        " `--profiling` and `false` as two words end them at once; only etcd takes long names after one dash.",
        "Write each flag as one word, `--profiling=false`, or use a `+args` patch.",
    ),
    _validity(
        "unknown-flag",
        "A flag that the component does not have",
        "The component of this minor refuses to start with a flag it does not know.",
        "Correct the name, or remove the flag; the hint tells whether another minor has it.",
    ),
    _validity(
        "bad-flag-value",
        "A flag value that cannot be read",
        "The component refuses to start with a value its flag cannot read, or a plugin or controller it does not know.",
        "Write the value as the type of the flag demands.",
    ),
    _validity(
        "unknown-feature-gate",
        "A feature gate that the component does not have",
        "The component of this minor refuses to start with a feature gate it does not know.",
        "Correct the name, or remove it: what is stable for long has no gate any more.",
    ),
    _validity(
        "locked-feature-gate",
        "A feature gate set against its locked value",
        "The component refuses to start when a locked feature gate is set to anything but its default.",
        "Remove it.",
    ),
    _validity(
        "missing-flag",
        "A flag without which the component does not start",
        "The component refuses to start without it, or without the flag that belongs to another one.",
        "Add the flag that the message names.",
    ),
    _validity(
        "flag-conflict",
        "Flags that the component refuses together",
        "The component reads each of them, compares them, and ends with an error.",
        "Remove one of the two.",
    ),
    _validity(
        "disabled-feature",
        "A field whose feature gate is off",
        "The kubelet refuses a field whose feature gate is off in this minor or by `featureGates`.",
        "Turn the feature gate on, or remove the field.",
    ),
)

_DANGER = (
    _danger(
        "container-removed",
        "The container of the component is gone",
        "The Pod still starts, and does not run the component that the cluster needs.",
        "Keep the container called as the component; add others beside it.",
    ),
    _danger(
        "program-changed",
        "The container runs another program",
        "The first word of `command` is no longer the component, so none of its flags are checked.",
        "Keep the component as the first word; use a `+args` patch to change flags.",
    ),
    _danger(
        "program-ends",
        "A flag with which the program ends at once",
        "--help, --version and --write-config-to print or write something instead of running the component. The kubelet"
        " starts it again and again.",
        "Remove the flag, and run the program by hand.",
    ),
    _danger(
        "flag-removed",
        "Flags of kubeadm that the patch removes",
        "`command` is one list: a strategic or merge patch that sets it drops every flag it does not repeat, and the"
        " component falls back to defaults that do not fit the cluster.",
        "Repeat the flags, or change single flags with a `+args` or JSON patch.",
    ),
    _danger(
        "critical-flag-removed",
        "A flag that ties the component to its cluster is gone",
        "Without --etcd-servers the API server does not start, without --client-ca-file it trusts no certificate of a"
        " client, and so with every flag that names an authority, a key or an address of this cluster. Accepting"
        " flag-removed does not accept this.",
        "Keep the flag.",
    ),
    _danger(
        "critical-flag-changed",
        "A flag that ties the component to its cluster has another value",
        "These flags name the etcd, the authorities, keys and address ranges of this cluster. With another value"
        " the component starts, and works against the rest of the cluster.",
        "Set it in kubeadm's configuration, which changes every place that needs it.",
    ),
    _danger(
        "harmful-flag",
        "A flag that destroys something, whatever the cluster is",
        "--force-new-cluster drops all other members of etcd, --unsafe-no-fsync what it has confirmed, --config-file"
        " all its other flags; --allow-privileged=false stops the network, AlwaysDeny every change.",
        "Remove the flag. To recover etcd, run it by hand, once.",
    ),
    _danger(
        "controller-removed",
        "A controller of kubeadm is gone",
        "`*` means the controllers that are on by default. kubeadm adds bootstrapsigner and tokencleaner, without which"
        " no node can join; with `-*` nothing is controlled at all.",
        "Keep `*,bootstrapsigner,tokencleaner`, and add to it.",
    ),
    _danger(
        "repeated-flag",
        "A flag that stands twice",
        "Of most flags only the last one counts. Lists are joined and may stand several times, but a second"
        " --authorization-mode adds to the first one instead of replacing it.",
        "Change the flag that is there: a `+args` patch does, a JSON patch needs `replace` instead of `add`.",
    ),
    _danger(
        "authorization-weakened",
        "Requests are allowed that were not",
        "AlwaysAllow lets every client do everything; without Node and RBAC kubelets and users lose or gain rights.",
        "Keep Node and RBAC.",
    ),
    _danger(
        "authentication-weakened",
        "Clients are trusted that were not, or lose their trust",
        "Client certificates are no longer verified, anonymous requests are served, or a port without authentication is"
        " open.",
        "Keep the authority for client certificates and TLS, and anonymous access as it is.",
    ),
    _danger(
        "admission-weakened",
        "An admission plugin of kubeadm is gone",
        "Without NodeRestriction a kubelet may change other nodes and their Pods; without ServiceAccount, Priority,"
        " NamespaceLifecycle or the webhooks the cluster is not complete.",
        "Add plugins to the list, keep NodeRestriction, and disable none that is on by default.",
    ),
    _danger(
        "audit-without-backend",
        "Audit flags that record nothing",
        "A policy without a log or webhook, or a log without a policy: the API server starts and records no event.",
        "Set both --audit-policy-file and --audit-log-path (or --audit-webhook-config-file).",
    ),
    _danger(
        "unmounted-file",
        "A flag names a file that no mount holds",
        "The component sees only what is mounted. It ends at once if the file has to be read, and what it writes is"
        " lost with the container.",
        "Add a hostPath volume and a volumeMount for the file or its folder.",
    ),
    _danger(
        "unusable-mount",
        "A flag names a file in a mount that cannot hold it",
        "What is written cannot be below a read-only mount, and what is read is not in an empty folder. The component"
        " ends as soon as it opens the file.",
        "Use a hostPath volume, without readOnly for what is written.",
    ),
    _danger(
        "host-path-type",
        "A hostPath type that contradicts the path or its use",
        "With DirectoryOrCreate the kubelet makes a folder where a file is meant (`audit-policy.yaml/`), with File it"
        " refuses a folder.",
        "Use File or FileOrCreate for files, Directory or DirectoryOrCreate for folders.",
    ),
    _danger(
        "probe-removed",
        "A probe of kubeadm is gone",
        "The kubelet no longer notices that the component hangs; upgrades and joins wait for readiness that nothing"
        " measures.",
        "Keep the probe, and change its thresholds.",
    ),
    _danger(
        "probe-changed",
        "A probe asks elsewhere",
        "kubeadm's probes ask the component's own health endpoints. Another path, port or handler measures something"
        " else.",
        "Keep the handler of the probe; its times and thresholds are free.",
    ),
    _danger(
        "probe-mismatch",
        "A probe that the component does not answer",
        "The flags move the component away from its probes: another port or address, or --anonymous-auth=false, which"
        " answers them with 401. The kubelet restarts the component again and again, or never calls it ready.",
        "Change the probes and their port in the same patch; with --anonymous-auth=false give them a tcpSocket, or use"
        " --authentication-config, which allows anonymous requests for /livez, /readyz and /healthz only.",
    ),
    _danger(
        "probe-impatient",
        "A probe that gives up much sooner than kubeadm's",
        "A component takes a minute or more to start on a busy node. With less than a quarter of kubeadm's time it is"
        " restarted before it is done.",
        "Keep the startup probe's failureThreshold times periodSeconds near kubeadm's 240 seconds.",
    ),
    _danger(
        "host-network-off",
        "The Pod loses the network of the host",
        "The components reach each other by addresses of the nodes, before any Pod network exists.",
        "Keep `hostNetwork: true`.",
    ),
    _danger(
        "mount-removed",
        "A mount of kubeadm is gone",
        "The component no longer sees its certificates, its kubeconfig or its data.",
        "Keep the mount; add others beside it.",
    ),
    _danger(
        "mount-changed",
        "A mount of kubeadm shows another folder or a part of it, or cannot be written any more",
        "The component reads other certificates, or etcd begins with an empty database, or ends because it cannot"
        " write.",
        "Set the folder in kubeadm's configuration (`certificatesDir`, `etcd.local.dataDir`).",
    ),
    _danger(
        "priority-lowered",
        "The Pod is no longer critical to its node",
        "The kubelet never evicts a static Pod, but without system-node-critical its processes are no longer the last"
        " that the kernel kills when memory runs out. With the class and another number the API server refuses the"
        " mirror of the Pod, for which kubeadm waits.",
        "Keep `priorityClassName: system-node-critical`, and leave the number to it.",
    ),
    _danger(
        "restart-off",
        "The kubelet no longer restarts the component",
        "A static Pod is started once. With `Never`, or `OnFailure` for a component that ends without an error, it"
        " stays down until its manifest changes or the node restarts.",
        "Keep `restartPolicy: Always`, which is the default.",
    ),
    _danger(
        "pod-blocked",
        "A field with which the kubelet does not start a static Pod, or ends it",
        "activeDeadlineSeconds ends the Pod for good. A node selector or affinity is compared with the labels of the"
        " node, and a runtime class is asked of the API server, which may be the Pod itself.",
        "Remove the field: a static Pod is on its node already.",
    ),
    _danger(
        "user-changed",
        "The component runs as a user that cannot run it",
        "The images of kubeadm run as root, and the kubelet does not start them with runAsNonRoot. Keys, kubeconfigs"
        " and the data of etcd are readable by root alone.",
        "Remove runAsNonRoot and runAsUser, or turn on kubeadm's feature gate RootlessControlPlane, which changes the"
        " owners of the files as well.",
    ),
    _danger(
        "image-changed",
        "The image is of another version or another program",
        "The flags are those of one release, and kubeadm upgrades components in their order. Another release may refuse"
        " them, or leave data that the first one cannot read.",
        "Change only the registry, and set kubernetesVersion or the tag in kubeadm's configuration.",
    ),
    _danger(
        "mark-removed",
        "A label or annotation by which kubeadm finds the component is gone",
        "kubeadm finds the members of etcd and the API servers by the labels `component` and `tier` and by their"
        " `kubeadm.kubernetes.io/` annotations. Without them join and upgrade fail.",
        "Keep them, and add others beside them.",
    ),
    _danger(
        "object-renamed",
        "The object has another name or namespace",
        "kubeadm, upgrades and waits look for `kube-system` and the name of the component. Under another name the old"
        " one goes, and what looks for it finds nothing.",
        "Keep `metadata.name` and `metadata.namespace`.",
    ),
    _danger(
        "privileged-container",
        "A container gets all rights on the host",
        "A component of the control plane needs no privileges on its node.",
        "Remove `privileged`, or add single capabilities.",
    ),
    _danger(
        "addon-weakened",
        "An addon loses its rights or its nodes",
        "kube-proxy changes the network of every node: it needs its privileges, its service account, and tolerations"
        " for every taint. CoreDNS reads Services with its service account.",
        "Keep them, and add others beside them.",
    ),
    _danger(
        "kubelet-unreachable",
        "The cluster no longer reaches the kubelet, or never hears of it",
        "Logs, exec and metrics come from the kubelet's server; init, join and upgrade wait for its health port; and"
        " without registerNode there is no node.",
        "Keep registerNode, enableServer and healthzPort, and an address that the API server reaches.",
    ),
    _danger(
        "static-pods-off",
        "The kubelet no longer reads the manifests of the control plane",
        "Without `staticPodPath`, or with another one, the components stop.",
        "Keep `/etc/kubernetes/manifests`.",
    ),
    _danger(
        "rotation-off",
        "The kubelet no longer renews its certificate",
        "The node drops out of the cluster when the certificate expires, after a year.",
        "Keep `rotateCertificates: true`.",
    ),
    _danger(
        "cluster-dns-removed",
        "Pods of the node lose the DNS of the cluster",
        "Without clusterDNS or clusterDomain, or with another domain than that of CoreDNS, no Pod of this node finds a"
        " Service by its name. What is no IP address counts as nothing.",
        "Keep both as kubeadm sets them.",
    ),
)

RESULT_RULES: Mapping[str, Rule] = {rule.id: rule for rule in (*_VALIDITY, *_DANGER)}
