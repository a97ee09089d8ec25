"""The command that makes another node join, as the user copies it there."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from garboard.errors import BadDocument
from garboard.pki.kubeconfig import ReadFile, read_kubeconfig
from garboard.pki.pins import authority_pins

WITHHELD = "<value withheld>"
_BREAK = " \\\n\t"


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
