"""The kube-proxy addon."""

from collections.abc import Mapping

from garboard.documents import DocumentPath, Json, marshal_yaml, read_yaml
from garboard.errors import BadDocument
from garboard.manifests.container import proxy_variables
from garboard.manifests.objects import (
    BOOTSTRAP_GROUP,
    KUBE_SYSTEM,
    ClusterObject,
    Patcher,
    account,
    binding,
    config_map,
    encoded,
    group,
    new_object,
    readable_by,
    service_account,
    unpatched,
)
from garboard.manifests.sources import ConfigField, ValueSource, cluster_field, kubernetes_image_source
from garboard.model.addresses import join_host_port, parse_host_port
from garboard.model.cluster import ClusterConfiguration, kubernetes_image
from garboard.model.node import ApiEndpoint

PATCH_TARGET = "kubeproxydaemonset"

_NAME, _LABELS = "kube-proxy", {"k8s-app": "kube-proxy"}
_FOLDER, _CONFIG_KEY = "/var/lib/kube-proxy", "config.conf"
_CONTAINER: DocumentPath = ("spec", "template", "spec", "containers", 0)
# Not through the YAML writer: kubeadm's text has its own order of keys.
_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    server: SERVER
  name: default
contexts:
- context:
    cluster: default
    namespace: default
    user: default
  name: default
current-context: default
users:
- name: default
  user:
    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"""


def kube_proxy_objects(
    cluster: ClusterConfiguration,
    endpoint: ApiEndpoint,
    configuration: Json,
    *,
    is_user_supplied: bool,
    environment: Mapping[str, str],
    patcher: Patcher = unpatched,
) -> tuple[ClusterObject, ...]:
    """Return the addon's objects in the order in which kubeadm makes them; `configuration` is printed in full."""
    return (
        configuration_object(cluster, endpoint, configuration, is_user_supplied=is_user_supplied),
        daemon_set(cluster, environment, patcher),
        service_account(_NAME),
        binding("kubeadm:node-proxier", "system:node-proxier", (account(_NAME),)),
        *readable_by(_NAME, KUBE_SYSTEM, _NAME, (group(BOOTSTRAP_GROUP),)),
    )


def configuration_object(
    cluster: ClusterConfiguration, endpoint: ApiEndpoint, configuration: Json, *, is_user_supplied: bool
) -> ClusterObject:
    data = {
        _CONFIG_KEY: _through_template(marshal_yaml(configuration, source=_NAME)),
        "kubeconfig.conf": _KUBECONFIG.replace("SERVER", control_plane_url(cluster, endpoint)),
    }
    return config_map(
        _NAME,
        KUBE_SYSTEM,
        data,
        is_signed=not is_user_supplied,
        labels={"app": _NAME},
        sources={
            _CONFIG_KEY: ConfigField("KubeProxyConfiguration", ()),
            "kubeconfig.conf": cluster_field("controlPlaneEndpoint"),
        },
    )


def _through_template(text: str) -> str:
    """Return the text as it comes out of the block of a YAML template, where kubeadm indents it line by line."""
    if text.isascii():
        return text.rstrip("\n")
    # Unicode has line breaks that YAML takes for such and the indenting does not.
    lines = "".join(f"    {line}\n" for line in text.removesuffix("\n").split("\n"))
    holder = read_yaml(f"{_CONFIG_KEY}: |-\n{lines}", source="ConfigMap kube-proxy")
    assert isinstance(holder, dict)
    return str(holder[_CONFIG_KEY])


def control_plane_url(cluster: ClusterConfiguration, endpoint: ApiEndpoint) -> str:
    """Return the URL of the API server for all nodes: the shared endpoint, or this node's if there is none."""
    if not cluster.control_plane_endpoint:
        return f"https://{endpoint.host_port}"
    host, port = parse_host_port(cluster.control_plane_endpoint)
    return f"https://{join_host_port(host, port or endpoint.bind_port)}"


def daemon_set(
    cluster: ClusterConfiguration, environment: Mapping[str, str], patcher: Patcher = unpatched
) -> ClusterObject:
    """Return the DaemonSet; the machine's proxy settings are added after the patches, which cannot change them."""
    document: Json = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"labels": dict(_LABELS), "name": _NAME, "namespace": KUBE_SYSTEM},
        "spec": {
            "selector": {"matchLabels": dict(_LABELS)},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": dict(_LABELS)}, "spec": _pod_spec(cluster)},
        },
    }
    content = encoded(patcher(PATCH_TARGET, document), cluster.release)
    sources: dict[DocumentPath, ValueSource] = {(*_CONTAINER, "image"): kubernetes_image_source(cluster)}
    variables = proxy_variables(environment)
    if variables:
        present = _environment_of(content)
        for index, variable in enumerate(variables, start=len(present)):
            present.append(variable.document())
            sources[(*_CONTAINER, "env", index)] = variable.source
    return new_object(content, sources)


def _environment_of(content: dict[str, Json]) -> list[Json]:
    """Return the list of the first container's variables, which is made if a patch took it away."""
    holder: Json = content
    for step in _CONTAINER:
        if isinstance(holder, list) and isinstance(step, int):
            holder = holder[step] if holder else None
        else:
            holder = holder.get(str(step)) if isinstance(holder, dict) else None
    present = holder.setdefault("env", []) if isinstance(holder, dict) else None
    if not isinstance(present, list):
        raise BadDocument("the patched kube-proxy DaemonSet has no container", hint="patches may not take it away")
    return present


def _pod_spec(cluster: ClusterConfiguration) -> Json:
    node_name: Json = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    container: Json = {
        "name": _NAME,
        "image": kubernetes_image(cluster, _NAME),
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "/usr/local/bin/kube-proxy",
            f"--config={_FOLDER}/{_CONFIG_KEY}",
            "--hostname-override=$(NODE_NAME)",
        ],
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"mountPath": _FOLDER, "name": _NAME},
            {"mountPath": "/run/xtables.lock", "name": "xtables-lock", "readOnly": False},
            {"mountPath": "/lib/modules", "name": "lib-modules", "readOnly": True},
        ],
        "env": [node_name],
    }
    return {
        "priorityClassName": "system-node-critical",
        "containers": [container],
        "hostNetwork": True,
        "serviceAccountName": _NAME,
        "volumes": [
            {"name": _NAME, "configMap": {"name": _NAME}},
            {"name": "xtables-lock", "hostPath": {"path": "/run/xtables.lock", "type": "FileOrCreate"}},
            {"name": "lib-modules", "hostPath": {"path": "/lib/modules"}},
        ],
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
    }
