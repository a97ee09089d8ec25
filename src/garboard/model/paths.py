"""Where kubeadm and the kubelet keep their files on a node."""

KUBERNETES_DIR = "/etc/kubernetes"
MANIFESTS_DIR = f"{KUBERNETES_DIR}/manifests"
DEFAULT_CERTIFICATES_DIR = f"{KUBERNETES_DIR}/pki"
KUBELET_DIR = "/var/lib/kubelet"

ADMIN_CONF = f"{KUBERNETES_DIR}/admin.conf"
SUPER_ADMIN_CONF = f"{KUBERNETES_DIR}/super-admin.conf"
KUBELET_CONF = f"{KUBERNETES_DIR}/kubelet.conf"
BOOTSTRAP_KUBELET_CONF = f"{KUBERNETES_DIR}/bootstrap-kubelet.conf"
CONTROLLER_MANAGER_CONF = f"{KUBERNETES_DIR}/controller-manager.conf"
SCHEDULER_CONF = f"{KUBERNETES_DIR}/scheduler.conf"


def manifest_path(component: str) -> str:
    """Return where the kubelet finds the static pod of a component."""
    return f"{MANIFESTS_DIR}/{component}.yaml"
