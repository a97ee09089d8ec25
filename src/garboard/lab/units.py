"""The services of a node, as systemd would have them, and what `systemctl` answers about them. Pure."""

from dataclasses import dataclass
from enum import StrEnum

# systemd's own codes for `is-active` and `status` of a unit that does not run, and of one that does not exist.
NOT_ACTIVE, NO_SUCH_UNIT = 3, 4

KUBELET = """\
[ -f /var/lib/kubelet/kubeadm-flags.env ] && . /var/lib/kubelet/kubeadm-flags.env
[ -f /etc/default/kubelet ] && . /etc/default/kubelet
exec /usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
--kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \
$KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""


@dataclass(frozen=True, slots=True)
class Unit:
    """A service: the shell lines that become its program, and how long to wait before it is started again."""

    name: str
    script: str
    restart_after_s: float


UNITS = {
    "containerd": Unit("containerd", "exec containerd --config /etc/containerd/config.toml\n", 0.5),
    # kubeadm's own drop-in says 10 s; a lab has no reason to let people wait.
    "kubelet": Unit("kubelet", KUBELET, 1.0),
}


class Verb(StrEnum):
    """What can be asked of a unit."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"
    IS_ACTIVE = "is-active"
    IS_ENABLED = "is-enabled"
    ENABLE = "enable"
    DISABLE = "disable"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class UnitState:
    """What the supervisor knows of a unit: whether it should run, and the process that does."""

    wanted: bool = False
    enabled: bool = True
    pid: int | None = None

    @property
    def word(self) -> str:
        if self.pid is not None:
            return "active"
        return "activating" if self.wanted else "inactive"


@dataclass(frozen=True, slots=True)
class Answer:
    """What `systemctl` prints and its exit status."""

    text: str
    status: int = 0


def unit_name(text: str) -> str:
    """Strip what people may write after a unit's name."""
    return text.removesuffix(".service")


def describe(name: str, verb: Verb, state: UnitState | None) -> Answer:
    """Answer a question about a unit as systemctl does."""
    if state is None:
        return Answer(f"Unit {name}.service could not be found.\n", NO_SUCH_UNIT)
    if verb is Verb.IS_ENABLED:
        return Answer("enabled\n") if state.enabled else Answer("disabled\n", 1)
    status = 0 if state.pid is not None else NOT_ACTIVE
    if verb is Verb.IS_ACTIVE:
        return Answer(f"{state.word}\n", status)
    enabled = "enabled" if state.enabled else "disabled"
    text = f"● {name}.service\n     Loaded: loaded ({enabled})\n     Active: {state.word}\n"
    return Answer(text + (f"   Main PID: {state.pid}\n" if state.pid else ""), status)
