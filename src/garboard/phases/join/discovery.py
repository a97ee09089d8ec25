"""Finding the cluster that a node shall join, and proving that it is the right one; nothing is changed on the way."""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import Protocol, TypeVar

from garboard.documents import Json
from garboard.errors import BadDocument, ClusterUnreachable, GarboardError, NotReady
from garboard.manifests.bootstrap_token import CLUSTER_INFO
from garboard.manifests.objects import KUBE_PUBLIC
from garboard.model.duration import Duration
from garboard.model.lifecycle import FileDiscovery, JoinConfiguration, TokenDiscovery
from garboard.phases.join.trust import (
    ClusterInfo,
    NotTrusted,
    check_pins,
    check_signature,
    has_signature,
    is_pinned,
    unknown_token,
)
from garboard.pki.bootstrap_kubeconfig import BootstrapKubeconfig, TokenUser, read_discovery_file
from garboard.values import dataclass

RETRY_EVERY_S = 1.0
_HEALS = ("unreachable", "no-cluster-info", "unknown-token", "conflict", "api-failed")  # another try may do better
_SKEW_WORTH_TELLING_S = 30.0
Value = TypeVar("Value")


class Api(Protocol):
    """An API server, asked as somebody."""

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None: ...

    @property
    def told_time(self) -> datetime | None:
        """What the server said the time was, when it answered last."""
        ...


class Doors(Protocol):
    """The ways to API servers, and the clock that waiting goes by."""

    def unproven(self, server: str) -> Api:
        """Return the server as nobody in particular, whatever certificate it shows."""
        ...

    def proven(self, server: str, ca: bytes) -> Api:
        """Return the server as nobody in particular, if `ca` has signed its certificate; empty: the system's CAs."""
        ...

    def entered(self, kubeconfig: bytes, source: str) -> Api:
        """Return the server of a kubeconfig, as its user."""
        ...

    def fetch(self, url: str) -> bytes: ...

    def read(self, path: str) -> bytes | None: ...

    def now(self) -> datetime: ...

    def elapsed_s(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...

    def tell(self, line: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """A cluster that is the right one, and who the node is to it until it has a certificate of its own."""

    kubeconfig: BootstrapKubeconfig = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def server(self) -> str:
        return self.kubeconfig.server

    @property
    def ca(self) -> bytes:
        return self.kubeconfig.ca


def discover(config: JoinConfiguration, doors: Doors) -> Discovered:
    """Find the cluster as the configuration says."""
    timeout = config.timeouts.discovery
    if isinstance(config.discovery, TokenDiscovery):
        found = _discover_by_token(config.discovery, doors, timeout)
    else:
        found = _discover_by_file(config.discovery, doors, timeout)
    if config.tls_bootstrap_token:
        user = TokenUser(config.tls_bootstrap_token)
        return replace(found, kubeconfig=BootstrapKubeconfig.with_token(found.server, found.ca, user))
    if not found.kubeconfig.has_credentials:
        raise NotReady(
            "could not find authentication credentials for the TLS bootstrap process: the discovery file names no user",
            hint="give --tls-bootstrap-token, or a discovery file with a user in it",
        )
    return found


def _discover_by_token(discovery: TokenDiscovery, doors: Doors, timeout: Duration) -> Discovered:
    server = f"https://{discovery.api_server_endpoint}"
    pins = () if discovery.unsafe_skip_ca_verification and not discovery.ca_cert_hashes else discovery.ca_cert_hashes
    api = doors.unproven(server)

    def look() -> ClusterInfo:
        info = ClusterInfo.of(api.find("ConfigMap", KUBE_PUBLIC, CLUSTER_INFO), server)
        if not has_signature(info, discovery.token):
            if pins and not is_pinned(info, pins):
                check_pins(info, pins, server)
            raise unknown_token(discovery.token.partition(".")[0], server, is_right_cluster=bool(pins) or None)
        return info

    info = retried(look, doors, timeout)
    check_signature(info, discovery.token, server)
    check_pins(info, pins, server)
    _look_again(info, server, doors, api.told_time)
    cluster = info.cluster
    return Discovered(kubeconfig=BootstrapKubeconfig.without_user(cluster.server, cluster.ca))


def _look_again(info: ClusterInfo, server: str, doors: Doors, told_time: datetime | None) -> None:
    """Ask once more, now with the authority that the first answer named: whoever stood in between is found out."""
    try:
        again = ClusterInfo.of(
            doors.proven(server, info.cluster.ca).find("ConfigMap", KUBE_PUBLIC, CLUSTER_INFO), server
        )
    except ClusterUnreachable as error:
        raise _with_skew(error, doors.now(), told_time) from error
    if again.kubeconfig != info.kubeconfig:
        raise NotTrusted(
            f"the cluster at {server} described itself in two ways: without and with a proven connection",
            hint="somebody may stand between this machine and the cluster; ask its administrator",
        )


def _with_skew(error: ClusterUnreachable, now: datetime, told_time: datetime | None) -> ClusterUnreachable:
    """Return the error with how far the clocks are apart, if that may be why."""
    skew = (now - told_time).total_seconds() if told_time else 0.0
    if abs(skew) < _SKEW_WORTH_TELLING_S:
        return error
    told = f"this machine's clock is {Duration.of(seconds=round(abs(skew)))} {'ahead of' if skew > 0 else 'behind'}"
    return ClusterUnreachable(
        f"{error.message}; {told} the server's",
        hint="set this machine's clock (look at `date -u` here and on a control-plane node), then join again",
        error_class="clock-skew",
    )


def _discover_by_file(discovery: FileDiscovery, doors: Doors, timeout: Duration) -> Discovered:
    location = discovery.kube_config_path
    data = doors.fetch(location) if location.startswith("https://") else doors.read(location)
    if data is None:
        raise NotReady(
            f"there is no discovery file {location}",
            hint="name a kubeconfig of the cluster with --discovery-file",
            error_class="bad-kubeconfig",
        )
    kubeconfig = read_discovery_file(data, location, doors.read)
    info = retried(lambda: _described(kubeconfig, doors), doors, timeout)
    if info is None:
        return Discovered(kubeconfig=kubeconfig)
    return _completed(kubeconfig, info)


def _described(kubeconfig: BootstrapKubeconfig, doors: Doors) -> ClusterInfo | None:
    """Return how the cluster describes itself; None where it does not, but its certificate is the right one."""
    try:
        found = doors.proven(kubeconfig.server, kubeconfig.ca).find("ConfigMap", KUBE_PUBLIC, CLUSTER_INFO)
        return ClusterInfo.of(found, kubeconfig.server)
    except GarboardError as error:
        # The file is trusted; that nobody may read the description, or that there is none, does not matter.
        if error.error_class in ("forbidden", "no-cluster-info"):
            return None
        raise


def _completed(kubeconfig: BootstrapKubeconfig, info: ClusterInfo) -> Discovered:
    """Return what the file says, with what only the cluster's own description knows."""
    try:
        cluster = info.cluster
    except BadDocument:
        return Discovered(kubeconfig=kubeconfig)
    warnings: tuple[str, ...] = ()
    if cluster.server != kubeconfig.server:
        found = f"the API server endpoint {kubeconfig.server} in use is different from {cluster.server}"
        warnings = (f"{found}, which the ConfigMap {CLUSTER_INFO} names",)
    return Discovered(kubeconfig=kubeconfig.with_ca(kubeconfig.ca or cluster.ca), warnings=warnings)


def retried(look: Callable[[], Value], doors: Doors, timeout: Duration) -> Value:
    """Look until there is something to see; why it takes long is told once for each reason."""
    give_up_at = doors.elapsed_s() + timeout.seconds
    told = ""
    while True:
        try:
            return look()
        except GarboardError as error:
            if error.error_class not in _HEALS:
                raise
            left_s = give_up_at - doors.elapsed_s()
            if left_s <= 0:
                raise
            if error.message != told:
                doors.tell(f"[preflight] {error.message}; trying again for at most {left_s:.0f} s")
                told = error.message
            doors.sleep(min(RETRY_EVERY_S, left_s))


def text_of(config_map: Mapping[str, Json] | None, key: str) -> str | None:
    """Return what a ConfigMap holds under a key, if it does."""
    data = (config_map or {}).get("data")
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) else None
