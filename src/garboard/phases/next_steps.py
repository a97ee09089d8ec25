"""What a person needs once the first node runs: access, a pod network, and the command by which nodes join."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from garboard.engine import ShowMessage
from garboard.errors import BadDocument
from garboard.pki.chain import authority_pins
from garboard.pki.kubeconfig import ReadFile, read_kubeconfig

if TYPE_CHECKING:  # `token create` shows the command, and need not load what init plans from
    from garboard.phases.node.context import NodeContext

WITHHELD = "<value withheld>"
_BREAK = " \\\n\t"
PIN_PLACEHOLDER = "<pin of certificate ca>"  # the CA's fingerprint is only known once it was made
_PIN_FLAG = " --discovery-token-ca-cert-hash "
_TEXT = """
The control plane of {name} runs on {node}.

To use it as an administrator, run as that user:

  mkdir -p $HOME/.kube
  sudo cp -i {admin} $HOME/.kube/config
  sudo chown $(id -u):$(id -g) $HOME/.kube/config

or, as root: export KUBECONFIG={admin}

Its nodes are NotReady until a CNI plugin (a pod network) is installed:

  kubectl apply -f MANIFEST-OF-YOUR-CNI.yaml
{control_planes}
Workers join with:

{workers}
"""
_CONTROL_PLANES = """
Further control-plane nodes join with (the shared certificates are deleted after two hours; share them
again with: garboard init phase upload-certs --upload-certs):

{command}
"""
_COPIED = """
Further control-plane nodes join with the command of workers and --control-plane, once they have the
certificates: copy them, or share them with: garboard init phase upload-certs --upload-certs
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCommand:
    """What the command says; with a certificate key the node becomes a control plane. Empty secrets are withheld."""

    endpoint: str
    pins: tuple[str, ...]
    token: str = field(default="", repr=False)
    certificate_key: str | None = field(default=None, repr=False)

    def text(self, program: str = "garboard") -> str:
        """Return it over several lines, as kubeadm breaks them."""
        return _BREAK.join(self._parts(program))

    def line(self, program: str = "garboard") -> str:
        """Return it in one line; the space at the end of a worker's is kubeadm's."""
        return " ".join(self._parts(program)) + ("" if self.certificate_key is not None else " ")

    def _parts(self, program: str) -> Sequence[str]:
        hashes = " ".join(f"--discovery-token-ca-cert-hash {pin}" for pin in self.pins)
        parts = [f"{program} join {self.endpoint} --token {self.token or WITHHELD}", hashes]
        if self.certificate_key is not None:
            parts.append(f"--control-plane --certificate-key {self.certificate_key or WITHHELD}")
        return parts


def join_command(
    kubeconfig: bytes, source: str, read: ReadFile, *, token: str = "", certificate_key: str | None = None
) -> JoinCommand:
    """Return the command for the cluster that the current context of a kubeconfig leads to."""
    current = read_kubeconfig(kubeconfig, source)
    ca = current.content(current.cluster, "certificate-authority", read)
    if not ca:
        raise BadDocument(
            f"{source}: it names no certificate authority, so a node could not know the cluster by it",
            hint="name the administrator's kubeconfig with --kubeconfig",
            error_class="bad-kubeconfig",
        )
    endpoint = urlsplit(current.server).netloc
    return JoinCommand(endpoint=endpoint, pins=authority_pins(ca), token=token, certificate_key=certificate_key)


def next_steps(context: "NodeContext", workers: JoinCommand, control_planes: JoinCommand | None) -> str:
    """Return the text; the command of control planes is None if the certificates are not shared."""
    cluster = context.cluster
    more = _COPIED if cluster.control_plane_endpoint else ""
    if control_planes is not None:
        more = _CONTROL_PLANES.format(command=_both(control_planes))
    return _TEXT.format(
        name=cluster.cluster_name,
        node=context.node_name,
        admin=context.kubeconfig_path("admin.conf"),
        control_planes=more,
        workers=_both(workers),
    )


def with_pins(action: ShowMessage, read: Callable[[str], bytes | None]) -> str:
    """Return the text of a message with the fingerprints of the CA instead of their placeholder."""
    text = action.text
    for each in action.pins:
        pins = authority_pins(read(each.path) or b"")
        text = text.replace(each.placeholder, _PIN_FLAG.join(pins))
    return text


def _both(command: JoinCommand) -> str:
    return f"{_indented(command.text())}\n\nor, by kubeadm:\n\n{_indented(command.text('kubeadm'))}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
