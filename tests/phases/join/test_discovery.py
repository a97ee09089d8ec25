"""Finding a cluster, by token and by file, and every way in which that fails: the message names the cause."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from garboard.documents import read_yaml, write_yaml
from garboard.errors import ClusterUnreachable, GarboardError, NotReady
from garboard.phases.join.cluster import find_cluster
from garboard.phases.join.discovery import discover
from garboard.phases.join.trust import NotTrusted
from garboard.pki.chain import authority_pins
from garboard.pki.kubeconfig import BearerToken, Kubeconfig
from tests.support.phases.join.clusters import (
    CONTROL_PLANE,
    FACTS,
    JOIN,
    SERVER,
    MemoryCluster,
    MemoryConnector,
    load_join,
    other_ca,
)

WRONG_PIN = "sha256:" + "0" * 64
SHORT = "timeouts: {discovery: 5s}\n"
FILE_JOIN = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  file: {kubeConfigPath: https://192.0.2.9/discovery.conf}
"""


def pinned(*pins: str) -> str:
    return JOIN.replace("unsafeSkipCAVerification: true", f"caCertHashes: [{', '.join(pins)}]") + SHORT


def once(error: Exception) -> Callable[[str], Exception | None]:
    left = [error]
    return lambda _name: left.pop() if left else None


def failing(text: str, connector: MemoryConnector) -> GarboardError:
    with pytest.raises(GarboardError) as caught:
        find_cluster(load_join(text), connector, FACTS, downloads=True)
    return caught.value


def test_token_finds_the_cluster_and_becomes_the_kubelets_user() -> None:
    cluster = MemoryCluster.made()
    found = discover(load_join(pinned(*authority_pins(cluster.ca))), MemoryConnector(cluster))
    assert (found.server, found.ca) == (SERVER, cluster.ca)
    document = read_yaml(found.kubeconfig.to_bytes("mine"), source="bootstrap-kubelet.conf")
    assert isinstance(document, dict)
    assert document["users"] == [{"name": "tls-bootstrap-token-user", "user": {"token": "abcdef.0123456789abcdef"}}]
    # The context keeps the name that it got before the cluster's was known, as kubeadm's does.
    context = {"cluster": "mine", "user": "tls-bootstrap-token-user"}
    assert document["contexts"] == [{"name": "tls-bootstrap-token-user@kubernetes", "context": context}]


def test_wrong_ca_pin_is_named_at_once() -> None:
    connector = MemoryConnector(MemoryCluster.made())
    error = failing(pinned(WRONG_PIN), connector)
    assert error.error_class == "wrong-ca"
    assert WRONG_PIN in error.message
    assert connector.slept_s == 0


def test_expired_token_is_named_when_the_pin_says_that_the_cluster_is_the_right_one() -> None:
    cluster = MemoryCluster.made()
    cluster.describe("ffffff.ffffffffffffffff")
    connector = MemoryConnector(cluster)
    error = failing(pinned(*authority_pins(cluster.ca)), connector)
    assert error.error_class == "unknown-token"
    assert "it has expired or was deleted" in error.message
    assert "garboard token create" in (error.hint or "")
    assert connector.slept_s == 5, "the signer may be late, so it is tried as long as the configuration says"
    assert len(connector.reported) == 1, "why it takes long is told once"


def test_token_of_another_cluster_is_named_by_its_pin() -> None:
    cluster = MemoryCluster.made()
    cluster.describe("ffffff.ffffffffffffffff")
    error = failing(pinned(WRONG_PIN), MemoryConnector(cluster))
    assert error.error_class == "wrong-ca"
    assert "this is another cluster" in (error.hint or "")


def test_without_pins_an_unknown_token_may_be_either() -> None:
    cluster = MemoryCluster.made()
    cluster.describe("ffffff.ffffffffffffffff")
    assert "expired, was deleted, or is of another cluster" in failing(JOIN + SHORT, MemoryConnector(cluster)).message


def test_token_that_is_signed_with_late_is_waited_for() -> None:
    cluster = MemoryCluster.made()
    cluster.describe("ffffff.ffffffffffffffff")
    connector = MemoryConnector(cluster, on_sleep=cluster.describe)
    assert discover(load_join(JOIN + SHORT), connector).server == SERVER


def test_unreachable_endpoint_is_tried_again_and_then_told() -> None:
    connector = MemoryConnector(
        MemoryCluster.made(), when_unverified=lambda _: ClusterUnreachable("nobody answers at 192.0.2.1")
    )
    error = failing(JOIN + SHORT, connector)
    assert (error.exit_code, error.message) == (5, "nobody answers at 192.0.2.1")
    assert connector.slept_s == 5


def test_clock_that_is_behind_is_named_with_how_far() -> None:
    early = ClusterUnreachable("its certificate is not valid yet", error_class="clock-skew")
    connector = MemoryConnector(MemoryCluster.made(), when_verified=lambda _: early, skew=timedelta(hours=-25))
    error = failing(JOIN + SHORT, connector)
    assert error.error_class == "clock-skew"
    assert "this machine's clock is 25h0m0s behind the server's" in error.message
    assert "date -u" in (error.hint or "")


def test_who_describes_the_cluster_in_two_ways_is_not_trusted() -> None:
    cluster = MemoryCluster.made()
    connector = MemoryConnector(cluster)

    def change(_name: str) -> None:
        cluster.server = "https://192.0.2.66:6443"
        cluster.describe()

    connector.when_verified = change
    with pytest.raises(NotTrusted, match="in two ways"):
        discover(load_join(JOIN + SHORT), connector)


def test_token_that_does_not_authenticate_is_named() -> None:
    refused = GarboardError("cannot get ConfigMap kubeadm-config: Unauthorized", error_class="unauthenticated")
    connector = MemoryConnector(MemoryCluster.made(), when_user=lambda _: refused)
    error = failing(JOIN + SHORT + "  # nothing more\n", connector)
    assert error.error_class == "unknown-token"
    assert "is not for authentication" in error.message


def test_other_minor_is_refused_with_the_list() -> None:
    error = failing(JOIN, MemoryConnector(MemoryCluster.made(version="v1.35.8")))
    assert error.exit_code == 3
    assert "1.36, 1.37" in (error.hint or "")


def test_wrong_certificate_key_is_named() -> None:
    text = JOIN + CONTROL_PLANE.replace("ab" * 32, "cd" * 32)
    assert failing(text, MemoryConnector(MemoryCluster.made())).error_class == "wrong-key"


def test_secret_that_has_expired_is_named() -> None:
    cluster = MemoryCluster.made()
    del cluster.objects["Secret", "kubeadm-certs"]
    error = failing(JOIN + CONTROL_PLANE, MemoryConnector(cluster))
    assert "kubeadm-certs" in error.message
    assert "upload-certs" in (error.hint or "")


def discovery_file(cluster: MemoryCluster, *, ca: bytes | None = None, token: str = "") -> bytes:
    kubeconfig = Kubeconfig(
        cluster_name="x", server=SERVER, user_name="someone", ca=cluster.ca if ca is None else ca,
        credential=BearerToken(token),
    )  # fmt: skip
    return kubeconfig.to_bytes()


def by_file(cluster: MemoryCluster, data: bytes, **given: object) -> MemoryConnector:
    return MemoryConnector(cluster, files={"https://192.0.2.9/discovery.conf": data}, **given)  # type: ignore[arg-type]


def test_file_with_a_user_needs_no_token() -> None:
    cluster = MemoryCluster.made()
    found = discover(load_join(FILE_JOIN), by_file(cluster, discovery_file(cluster, token="t")))
    document = read_yaml(found.kubeconfig.to_bytes("kubernetes"), source="x")
    assert isinstance(document, dict)
    assert document["current-context"] == "someone@x"
    assert document["contexts"] == [{"name": "someone@x", "context": {"cluster": "kubernetes", "user": "someone"}}]


def test_file_without_a_user_needs_a_token() -> None:
    cluster = MemoryCluster.made()
    connector = by_file(cluster, discovery_file(cluster))
    with pytest.raises(NotReady, match="could not find authentication credentials"):
        discover(load_join(FILE_JOIN), connector)
    with_token = FILE_JOIN.replace("discovery:\n", "discovery:\n  tlsBootstrapToken: abcdef.0123456789abcdef\n")
    assert discover(load_join(with_token), connector).kubeconfig.has_credentials


def test_cluster_info_itself_is_a_discovery_file() -> None:
    cluster = MemoryCluster.made()
    text = cluster.objects["ConfigMap", "cluster-info"]["data"]["kubeconfig"]
    with_token = FILE_JOIN.replace("discovery:\n", "discovery:\n  tlsBootstrapToken: abcdef.0123456789abcdef\n")
    assert discover(load_join(with_token), by_file(cluster, text.encode())).ca == cluster.ca


def test_ca_that_the_file_lacks_comes_from_the_cluster() -> None:
    cluster = MemoryCluster.made()
    found = discover(load_join(FILE_JOIN), by_file(cluster, discovery_file(cluster, ca=b"", token="t")))
    assert found.ca == cluster.ca


def test_file_of_another_cluster_is_not_trusted() -> None:
    cluster = MemoryCluster.made()
    connector = by_file(cluster, discovery_file(cluster, ca=other_ca(), token="t"))
    assert failing(FILE_JOIN, connector).error_class == "untrusted"


def test_description_that_nobody_may_read_does_not_matter() -> None:
    cluster = MemoryCluster.made()
    forbidden = GarboardError("no", error_class="forbidden")
    connector = by_file(cluster, discovery_file(cluster, token="t"), when_verified=lambda _: forbidden)
    assert discover(load_join(FILE_JOIN), connector).ca == cluster.ca


def test_other_server_in_the_description_is_a_warning() -> None:
    cluster = MemoryCluster.made()
    cluster.server = "https://192.0.2.77:6443"
    cluster.describe()
    found = discover(load_join(FILE_JOIN), by_file(cluster, discovery_file(cluster, token="t")))
    assert found.server == SERVER
    assert "192.0.2.77" in found.warnings[0]


@pytest.mark.parametrize("data", [b"", b"[]", b"kind: Config", b"\x00", b"clusters: 5"], ids=repr)
def test_file_that_is_no_kubeconfig_is_refused(data: bytes) -> None:
    assert failing(FILE_JOIN, by_file(MemoryCluster.made(), data)).exit_code == 3


def test_missing_kubelet_config_says_how_to_make_it() -> None:
    cluster = MemoryCluster.made()
    del cluster.objects["ConfigMap", "kubelet-config"]
    assert "upload-config kubelet" in (failing(JOIN, MemoryConnector(cluster)).hint or "")


def test_hiccup_while_reading_is_survived() -> None:
    connector = MemoryConnector(MemoryCluster.made(), when_user=once(ClusterUnreachable("broke the connection")))
    cluster = find_cluster(load_join(JOIN), connector, FACTS, downloads=True)
    assert cluster.configuration.kubernetes_version == "v1.37.1"
    assert write_yaml(dict(cluster.kubelet.tree)).startswith("authentication:")
