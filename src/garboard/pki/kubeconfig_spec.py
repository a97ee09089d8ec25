"""The five kubeconfigs of a control-plane node as data: users, groups and the API server each one names."""

import enum
from datetime import datetime

from garboard.pki.spec import CLIENT_AUTH, CertRequest, PkiInputs
from garboard.values import dataclass


class Server(enum.Enum):
    """Which API server a kubeconfig names."""

    LOCAL = "local"  # the one on this node
    SHARED = "shared"  # the control plane endpoint, where there is one
    KUBELET = "kubelet"  # the local one, unless local mode is off

    def url(self, inputs: PkiInputs) -> str:
        is_local = self is Server.LOCAL or (self is Server.KUBELET and inputs.is_kubelet_local_mode)
        return inputs.local_url if is_local else inputs.control_plane_url


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigSpec:
    """One kubeconfig of a control-plane node; `name` is its phase, `summary` what its certificate is called."""

    name: str
    file_name: str
    user: str  # {node} stands for the name of the node
    organizations: tuple[str, ...] = ()
    server: Server
    summary: str = ""
    is_renewable: bool = True

    def user_name(self, inputs: PkiInputs) -> str:
        return self.user.format(node=inputs.node_name)

    def request(self, inputs: PkiInputs, started_at: datetime) -> CertRequest:
        """Return what the embedded certificate shall say; it starts when the CA does."""
        return client_request(
            self.user_name(inputs), self.organizations, not_after=started_at + inputs.certificate_validity
        )


# In the order of the phases below `kubeconfig`.
KUBECONFIGS = (
    KubeconfigSpec(
        name="admin",
        file_name="admin.conf",
        user="kubernetes-admin",
        organizations=("kubeadm:cluster-admins",),
        server=Server.SHARED,
        summary="certificate embedded in the kubeconfig file for the admin to use and for kubeadm itself",
    ),
    KubeconfigSpec(
        name="super-admin",
        file_name="super-admin.conf",
        user="kubernetes-super-admin",
        organizations=("system:masters",),
        server=Server.SHARED,
        summary="certificate embedded in the kubeconfig file for the super-admin",
    ),
    KubeconfigSpec(
        name="kubelet",
        file_name="kubelet.conf",
        user="system:node:{node}",
        organizations=("system:nodes",),
        # A kubelet must not be newer than its API server, so it speaks to the one beside it (KEP-4471).
        server=Server.KUBELET,
        is_renewable=False,  # the kubelet renews its own
    ),
    KubeconfigSpec(
        name="controller-manager",
        file_name="controller-manager.conf",
        user="system:kube-controller-manager",
        server=Server.LOCAL,
        summary="certificate embedded in the kubeconfig file for the controller manager to use",
    ),
    KubeconfigSpec(
        name="scheduler",
        file_name="scheduler.conf",
        user="system:kube-scheduler",
        server=Server.LOCAL,
        summary="certificate embedded in the kubeconfig file for the scheduler manager to use",
    ),
)


def client_request(user: str, organizations: tuple[str, ...], *, not_after: datetime) -> CertRequest:
    """Return what a client certificate for `user` shall say."""
    return CertRequest(common_name=user, organizations=organizations, usages=(CLIENT_AUTH,), not_after=not_after)
