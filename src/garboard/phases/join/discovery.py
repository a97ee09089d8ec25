"""Discovery: the cluster that a node shall join is found and verified; nothing is changed on the way."""

from collections.abc import Callable
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
from garboard.retry import Clock, Pauses, retry
from garboard.values import dataclass

RETRY_EVERY_S = 1.0
_PASSING = ("unreachable", "no-cluster-info", "unknown-token", "conflict", "api-failed")  # another try may do better
_SKEW_WORTH_TELLING_S = 30.0
Value = TypeVar("Value")


class Api(Protocol):
    """An API server, asked as some user."""

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None: ...

    @property
    def server_time(self) -> datetime | None:
        """What the server said the time was, when it answered last."""
        ...


class ApiConnector(Protocol):
    """Connects to API servers; has the clock of retries, and reports why they are needed."""

    @property
    def clock(self) -> Clock: ...

    def unverified(self, server: str) -> Api:
        """Return the server for an anonymous user, whatever certificate it shows."""
        ...

    def verified(self, server: str, ca: bytes) -> Api:
        """Return the server for an anonymous user, if `ca` has signed its certificate; empty: the system's CAs."""
        ...

    def as_user(self, kubeconfig: bytes, source: str) -> Api:
        """Return the server of a kubeconfig, as its user."""
        ...

    def fetch(self, url: str) -> bytes: ...

    def read(self, path: str) -> bytes | None: ...

    def now(self) -> datetime: ...

    def report(self, line: str, /) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """A cluster that was verified, and the kubeconfig of the node until it has a certificate of its own."""

    kubeconfig: BootstrapKubeconfig = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def server(self) -> str:
        return self.kubeconfig.server

    @property
    def ca(self) -> bytes:
        return self.kubeconfig.ca


def discover(config: JoinConfiguration, connector: ApiConnector) -> Discovered:
    """Find the cluster as the configuration says."""
    timeout = config.timeouts.discovery
    if isinstance(config.discovery, TokenDiscovery):
        found = _discover_by_token(config.discovery, connector, timeout)
    else:
        found = _discover_by_file(config.discovery, connector, timeout)
    if config.tls_bootstrap_token:
        user = TokenUser(config.tls_bootstrap_token)
        return replace(found, kubeconfig=BootstrapKubeconfig.with_token(found.server, found.ca, user))
    if not found.kubeconfig.has_credentials:
        raise NotReady(
            "could not find authentication credentials for the TLS bootstrap process: the discovery file names no user",
            hint="give --tls-bootstrap-token, or a discovery file with a user in it",
        )
    return found


def _discover_by_token(discovery: TokenDiscovery, connector: ApiConnector, timeout: Duration) -> Discovered:
    server = f"https://{discovery.api_server_endpoint}"
    pins = () if discovery.unsafe_skip_ca_verification and not discovery.ca_cert_hashes else discovery.ca_cert_hashes
    api = connector.unverified(server)

    def read() -> ClusterInfo:
        info = ClusterInfo.of(api.find("ConfigMap", KUBE_PUBLIC, CLUSTER_INFO), server)
        if not has_signature(info, discovery.token):
            if pins and not is_pinned(info, pins):
                check_pins(info, pins, server)
            raise unknown_token(discovery.token.partition(".")[0], server, is_right_cluster=bool(pins) or None)
        return info

    info = retried(read, connector, timeout)
    check_signature(info, discovery.token, server)
    check_pins(info, pins, server)
    _read_verified(info, server, connector, api.server_time)
    cluster = info.cluster
    return Discovered(kubeconfig=BootstrapKubeconfig.without_user(cluster.server, cluster.ca))


def _read_verified(info: ClusterInfo, server: str, connector: ApiConnector, server_time: datetime | None) -> None:
    """Ask once more, verifying the server by the CA of the first answer: this finds out a man in the middle."""
    try:
        again = ClusterInfo.of(
            connector.verified(server, info.cluster.ca).find("ConfigMap", KUBE_PUBLIC, CLUSTER_INFO), server
        )
    except ClusterUnreachable as error:
        raise _with_skew(error, connector.now(), server_time) from error
    if again.kubeconfig != info.kubeconfig:
        raise NotTrusted(
            f"the cluster at {server} described itself in two ways: without and with a proven connection",
            hint="somebody may stand between this machine and the cluster; ask its administrator",
        )


def _with_skew(error: ClusterUnreachable, now: datetime, server_time: datetime | None) -> ClusterUnreachable:
    """Return the error with how far the clocks are apart, if that may be why."""
    skew = (now - server_time).total_seconds() if server_time else 0.0
    if abs(skew) < _SKEW_WORTH_TELLING_S:
        return error
    told = f"this machine's clock is {Duration.of(seconds=round(abs(skew)))} {'ahead of' if skew > 0 else 'behind'}"
    return ClusterUnreachable(
        f"{error.message}; {told} the server's",
        hint="set this machine's clock (look at `date -u` here and on a control-plane node), then join again",
        error_class="clock-skew",
    )


def _discover_by_file(discovery: FileDiscovery, connector: ApiConnector, timeout: Duration) -> Discovered:
    location = discovery.kube_config_path
    data = connector.fetch(location) if location.startswith("https://") else connector.read(location)
    if data is None:
        raise GarboardError(
            f"there is no discovery file {location}",
            hint="name a kubeconfig of the cluster with --discovery-file",
            error_class="no-kubeconfig",
        )
    kubeconfig = read_discovery_file(data, location, connector.read)
    info = retried(lambda: _described(kubeconfig, connector), connector, timeout)
    if info is None:
        return Discovered(kubeconfig=kubeconfig)
    return _completed(kubeconfig, info)


def _described(kubeconfig: BootstrapKubeconfig, connector: ApiConnector) -> ClusterInfo | None:
    """Return how the cluster describes itself; None where it does not, but its certificate is the right one."""
    try:
        found = connector.verified(kubeconfig.server, kubeconfig.ca).find("ConfigMap", KUBE_PUBLIC, CLUSTER_INFO)
        return ClusterInfo.of(found, kubeconfig.server)
    except GarboardError as error:
        # The file is trusted: a description that is missing, or that this user may not read, does not matter.
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


def retried(attempt: Callable[[], Value], connector: ApiConnector, timeout: Duration) -> Value:
    """Try until it works; why it takes long is reported once for each reason."""
    reported = ""

    def report(error: GarboardError, left_s: float) -> None:
        nonlocal reported
        if error.message != reported:
            connector.report(f"[preflight] {error.message}; trying again for at most {left_s:.0f} s")
            reported = error.message

    return retry(
        attempt,
        timeout_s=timeout.seconds,
        pauses=Pauses.every(RETRY_EVERY_S),
        is_passing=lambda error: error.error_class in _PASSING,
        on_failure=report,
        clock=connector.clock,
    )
