"""Where kubeadm keeps things."""

KUBERNETES_DIR = "/etc/kubernetes"
MANIFESTS_DIR = "/etc/kubernetes/manifests"
KUBELET_DIR = "/var/lib/kubelet"
CONTROLLER_MANAGER_CONF = f"{KUBERNETES_DIR}/controller-manager.conf"
SCHEDULER_CONF = f"{KUBERNETES_DIR}/scheduler.conf"


def manifest_path(component: str) -> str:
    """Return where the kubelet finds the static pod of a component."""
    return f"{MANIFESTS_DIR}/{component}.yaml"
