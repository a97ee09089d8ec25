from collections.abc import Mapping

import click
import pytest

from garboard.cli.init import INIT_FLAGS
from garboard.cli.join import JOIN_FLAGS
from garboard.config.flags import (
    FlagValue,
    GivenFlags,
    check_bind_address,
    check_mixed_flags,
    ignored_checks,
    ignored_flags,
    init_from_values,
    join_from_values,
    parse_feature_gates,
)
from garboard.config.problems import ConfigNotes
from garboard.errors import BadUsage, GarboardError, InvalidValue
from garboard.model.component import Arg
from garboard.model.duration import Duration
from garboard.model.lifecycle import FileDiscovery, TokenDiscovery
from garboard.model.minors import ROWS

OLDER, NEWER = ROWS[:2]
TOKEN = "abcdef.0123456789abcdef"


def of_init(**given: FlagValue) -> GivenFlags:
    return values(INIT_FLAGS, given)


def of_join(**given: FlagValue) -> GivenFlags:
    return values(JOIN_FLAGS, given)


def values(options: Mapping[str, click.Option], given: Mapping[str, FlagValue]) -> GivenFlags:
    """Return what a command line says that leaves the other flags at their defaults."""
    context = click.Command("probe", params=list(options.values())).make_context("probe", [])
    named = {name.replace("_", "-"): value for name, value in given.items()}
    left = {name.replace("_", "-"): value for name, value in context.params.items()}
    return GivenFlags({**left, **named}, frozenset(named))


@pytest.mark.parametrize("flags", [
    ["config"],
    ["config", "dry-run", "ignore-preflight-errors", "node-name", "upload-certs"],
    ["config", "skip-phases", "skip-token-print", "v", "yes", "strict-config"],
    ["control-plane-endpoint", "patches"],
])  # fmt: skip
def test_flags_that_go_with_a_file_or_without_one(flags: list[str]) -> None:
    check_mixed_flags(flags)


def test_flags_that_a_file_would_make_pointless_are_named_as_kubeadm_does() -> None:
    with pytest.raises(BadUsage, match=r"can not mix '--config' with arguments \[cert-dir patches\]"):
        check_mixed_flags(["patches", "config", "cert-dir", "dry-run"])


def test_gates_are_those_of_the_minor() -> None:
    notes = ConfigNotes()
    assert parse_feature_gates("PublicKeysECDSA=true, RootlessControlPlane=f", OLDER, notes) == {
        "PublicKeysECDSA": True,
        "RootlessControlPlane": False,
    }
    assert notes.warnings == [
        "Setting deprecated feature gate PublicKeysECDSA=true. It will be removed in a future release."
    ]
    with pytest.raises(BadUsage, match="unrecognized feature-gate key: PublicKeysECDSA"):
        parse_feature_gates("PublicKeysECDSA=true", NEWER, ConfigNotes())


@pytest.mark.parametrize(("text", "message"), [
    ("RootlessControlPlane", "missing bool value for feature-gate key:RootlessControlPlane"),
    ("RootlessControlPlane=on", "invalid value on for feature-gate key: RootlessControlPlane, use true|false instead"),
])  # fmt: skip
def test_a_gate_needs_a_switch(text: str, message: str) -> None:
    with pytest.raises(BadUsage) as caught:
        parse_feature_gates(text, NEWER, ConfigNotes())
    assert caught.value.message == message


def test_the_gate_of_the_local_mode_is_taken_at_every_minor() -> None:
    assert parse_feature_gates("ControlPlaneKubeletLocalMode=false", NEWER, ConfigNotes()) == {
        "ControlPlaneKubeletLocalMode": False
    }


def test_ignored_checks_of_both_places_are_united() -> None:
    assert ignored_checks(["Swap"], ["NumCPU", "swap"]) == {"swap", "numcpu"}
    assert ignored_checks(["all"], ["ALL"]) == {"all"}


def test_all_checks_and_single_ones_do_not_go_together() -> None:
    with pytest.raises(BadUsage, match='Invalid value: "all,swap": don\'t specify individual checks'):
        ignored_checks(["Swap"], ["ALL"])


@pytest.mark.parametrize("address", ["0.0.0.0", "169.254.1.1", "fe80::1", "224.0.0.1", "255.255.255.255", "nonsense"])
def test_an_address_that_nobody_could_reach_is_refused(address: str) -> None:
    with pytest.raises(InvalidValue, match=f'cannot use "{address}" as the bind address'):
        check_bind_address(address)


@pytest.mark.parametrize("address", ["10.0.0.1", "240.0.0.1", "fd00::1"])
def test_global_addresses_are_taken(address: str) -> None:
    check_bind_address(address)


def test_flags_left_alone_are_the_defaults_of_a_file() -> None:
    init, version = init_from_values(of_init(), ConfigNotes())
    assert (init.cluster.certificates_dir, init.cluster.image_repository) == ("/etc/kubernetes/pki", "registry.k8s.io")
    assert (init.patches_directory, init.local_api_endpoint.bind_port) == (None, 6443)
    assert init.bootstrap_tokens[0].ttl == Duration.of(hours=24)
    assert version.text == "v1.37.1"


def test_names_of_the_api_server_are_taken() -> None:
    init, _ = init_from_values(
        of_init(apiserver_cert_extra_sans=("a.example", "b.example", "c.example")), ConfigNotes()
    )
    assert init.cluster.api_server.cert_sans == ("a.example", "b.example", "c.example")


def test_extra_arguments_keep_their_order_and_warn() -> None:
    notes = ConfigNotes()
    init, _ = init_from_values(of_init(scheduler_extra_args=(("z", "1"), ("a", "2"), ("a", "3"))), notes)
    assert init.cluster.scheduler.extra_args == (Arg("z", "1"), Arg("a", "2"), Arg("a", "3"))
    assert ["deprecated" in warning for warning in notes.warnings] == [True]


@pytest.mark.parametrize(
    "given",
    [{"kubernetes_version": "v1.20.0"}, {"kubernetes_version": "?"}, {"token_ttl": "soon"}, {"feature_gates": "X=1"}],
    ids=str,
)
def test_value_that_makes_no_sense_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(GarboardError):
        init_from_values(of_init(**given), ConfigNotes())


def test_one_token_does_for_both() -> None:
    join = join_from_values(of_join(token=TOKEN), "192.0.2.1:6443")
    assert join.discovery == TokenDiscovery(token=TOKEN, api_server_endpoint="192.0.2.1:6443")
    assert join.tls_bootstrap_token == TOKEN
    assert join.control_plane is None


def test_discovery_file_goes_before_a_token() -> None:
    join = join_from_values(of_join(token=TOKEN, discovery_file="/tmp/x.conf"), None)
    assert join.discovery == FileDiscovery(kube_config_path="/tmp/x.conf")


def test_phase_without_discovery_uses_the_administrators_kubeconfig() -> None:
    join = join_from_values(GivenFlags({"control-plane": True}), None)
    assert join.discovery == FileDiscovery(kube_config_path="/etc/kubernetes/admin.conf")
    assert join.control_plane is not None


def test_flags_of_control_planes_mean_nothing_to_a_worker() -> None:
    assert ignored_flags(of_join(apiserver_bind_port=7443, node_name="x")) == ("apiserver-bind-port",)
    assert ignored_flags(of_join(apiserver_bind_port=7443, control_plane=True)) == ()


def test_half_a_control_plane_knows_its_cluster() -> None:
    join = join_from_values(of_join(control_plane=True), None, has_admin=True)
    assert join.discovery == FileDiscovery(kube_config_path="/etc/kubernetes/admin.conf")
    worker = join_from_values(of_join(token=TOKEN), "192.0.2.1:6443", has_admin=True)
    assert isinstance(worker.discovery, TokenDiscovery)
