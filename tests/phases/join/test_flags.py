from garboard.model.lifecycle import FileDiscovery, TokenDiscovery
from garboard.phases.flags import FlagValue, GivenFlags
from garboard.phases.join.flags import JOIN_FLAGS, ignored_flags, join_from_values

TOKEN = "abcdef.0123456789abcdef"


def values(**given: FlagValue) -> GivenFlags:
    named = {name.replace("_", "-"): value for name, value in given.items()}
    return GivenFlags({**{name: flag.default for name, flag in JOIN_FLAGS.items()}, **named}, frozenset(named))


def test_one_token_does_for_both() -> None:
    join = join_from_values(values(token=TOKEN), "192.0.2.1:6443")
    assert join.discovery == TokenDiscovery(token=TOKEN, api_server_endpoint="192.0.2.1:6443")
    assert join.tls_bootstrap_token == TOKEN
    assert join.control_plane is None


def test_discovery_file_goes_before_a_token() -> None:
    join = join_from_values(values(token=TOKEN, discovery_file="/tmp/x.conf"), None)
    assert join.discovery == FileDiscovery(kube_config_path="/tmp/x.conf")


def test_phase_without_discovery_uses_the_administrators_kubeconfig() -> None:
    join = join_from_values(GivenFlags({"control-plane": True}), None)
    assert join.discovery == FileDiscovery(kube_config_path="/etc/kubernetes/admin.conf")
    assert join.control_plane is not None


def test_flags_of_control_planes_mean_nothing_to_a_worker() -> None:
    assert ignored_flags(values(apiserver_bind_port=7443, node_name="x")) == ("apiserver-bind-port",)
    assert ignored_flags(values(apiserver_bind_port=7443, control_plane=True)) == ()


def test_half_a_control_plane_knows_its_cluster() -> None:
    join = join_from_values(values(control_plane=True), None, has_admin=True)
    assert join.discovery == FileDiscovery(kube_config_path="/etc/kubernetes/admin.conf")
    worker = join_from_values(values(token=TOKEN), "192.0.2.1:6443", has_admin=True)
    assert isinstance(worker.discovery, TokenDiscovery)
