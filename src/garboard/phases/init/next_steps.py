"""What a person needs once the first node runs: access, a pod network, and how further nodes join."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from garboard.engine import Filling, Step, Tell
from garboard.manifests.kube_proxy import control_plane_url
from garboard.phases.init.context import InitContext
from garboard.phases.join_command import JoinCommand
from garboard.pki.pins import authority_pins

_PIN = "<pin of certificate ca>"
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


def plan_show_join_command(context: InitContext) -> Iterator[Step]:
    """Plan to show everything at the end; the CA's fingerprint is only known then."""
    pins = (Filling(_PIN, context.certificate_path("ca.crt")),)
    yield Step(Tell(about="how to use the cluster, and how nodes join", text=next_steps(context), pins=pins), "")


def next_steps(context: InitContext) -> str:
    """Return the text with a placeholder for the fingerprints of the CA."""
    config = context.config
    workers = _both(_command(context, None))
    control_planes = ""
    if context.uploads_certs:
        key = context.certificate_key if context.prints_certificate_key else ""
        control_planes = _CONTROL_PLANES.format(command=_both(_command(context, key)))
    elif config.cluster.control_plane_endpoint:
        control_planes = _COPIED
    return _TEXT.format(
        name=config.cluster.cluster_name,
        node=context.node_name,
        admin=context.kubeconfig_path("admin.conf"),
        control_planes=control_planes,
        workers=workers,
    )


def with_pins(action: Tell, read: Callable[[str], bytes | None]) -> str:
    """Return the text with the fingerprints in place."""
    text = action.text
    for each in action.pins:
        pins = authority_pins(read(each.path) or b"")
        text = text.replace(each.placeholder, _PIN_FLAG.join(pins))
    return text


def _command(context: InitContext, certificate_key: str | None) -> JoinCommand:
    config = context.config
    tokens = config.bootstrap_tokens
    return JoinCommand(
        endpoint=urlsplit(control_plane_url(config.cluster, config.local_api_endpoint)).netloc,
        pins=(_PIN,),
        token=tokens[0].token if tokens and context.prints_token else "",
        certificate_key=certificate_key,
    )


def _both(command: JoinCommand) -> str:
    return f"{_indented(command.text())}\n\nor, by kubeadm:\n\n{_indented(command.text('kubeadm'))}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
