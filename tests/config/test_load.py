from dataclasses import replace

import pytest

from garboard.config import (
    ConfigFile,
    FixedFacts,
    InvalidConfiguration,
    Loaded,
    ReadOptions,
    cluster_text,
    join_from_flags,
    load_stored_cluster,
    reset_from_flags,
)
from garboard.errors import BadDocument, GarboardError
from garboard.model import KubernetesVersion
from garboard.model.duration import Duration
from garboard.model.lifecycle import InitConfiguration, JoinConfiguration, ResetConfiguration, TokenDiscovery
from garboard.model.node import CONTROL_PLANE_TAINT
from tests.support.config.configurations import CLUSTER, INIT, JOIN, KUBELET, V1BETA3

FACTS = FixedFacts(host=" Node-7 ", address="10.0.0.7", address_v6="fd00::7", token="fedcba.9876543210fedcba")
OLDER = KubernetesVersion(1, 36, 4)


def load_init(text: str, facts: FixedFacts = FACTS, **options: bool) -> Loaded[InitConfiguration]:
    text = text.replace("VERSION", "v1.37.1")
    return ConfigFile.read(text, file="f.yaml", host=facts, options=ReadOptions(**options)).init()


def load_join(text: str, facts: FixedFacts = FACTS) -> Loaded[JoinConfiguration]:
    return ConfigFile.read(text, file="f.yaml", host=facts).join()


def test_what_a_file_leaves_open_comes_from_the_machine() -> None:
    config = load_init(CLUSTER).config
    assert config.node_registration.name == "node-7"
    assert config.node_registration.cri_socket == "unix:///var/run/containerd/containerd.sock"
    assert config.node_registration.taints == (CONTROL_PLANE_TAINT,)
    assert config.local_api_endpoint.host_port == "10.0.0.7:6443"
    assert config.bootstrap_tokens[0].token == "fedcba.9876543210fedcba"
    assert config.bootstrap_tokens[0].ttl == Duration.of(hours=24)


def test_secrets_do_not_show_in_a_repr() -> None:
    init = load_init(INIT + f"certificateKey: {'ab' * 32}\n---\n" + CLUSTER).config
    join = load_join(JOIN).config
    assert "0123456789abcdef" not in repr(init) + repr(join) + repr(FACTS)
    assert "abababab" not in repr(init)


def test_an_explicit_empty_list_means_no_taints() -> None:
    assert load_init(INIT + "nodeRegistration: {taints: []}\n").config.node_registration.taints == ()


def test_a_worker_gets_no_taint() -> None:
    assert load_join(JOIN).config.node_registration.taints is None


def test_unspecified_address_means_one_of_the_same_family() -> None:
    loaded = load_init(INIT + "localAPIEndpoint: {advertiseAddress: '::'}\n")
    assert loaded.config.local_api_endpoint.advertise_address == "fd00::7"
    assert loaded.warnings == (
        'WARNING: overriding requested API server bind address: requested "::", actual "fd00::7"',
    )


def test_without_a_default_route_the_address_is_unusable_and_said_so() -> None:
    loaded = load_init(CLUSTER, replace(FACTS, address=None, address_v6=None))
    assert loaded.config.local_api_endpoint.advertise_address == "0.0.0.0"
    assert "could not obtain a bind address for the API Server" in loaded.warnings[0]


def test_loopback_selects_a_global_address_of_the_loopback_interface() -> None:
    text = INIT + "localAPIEndpoint: {advertiseAddress: 127.0.0.1}\n"
    assert (
        load_init(text, replace(FACTS, loopback="192.0.2.9")).config.local_api_endpoint.advertise_address == "192.0.2.9"
    )
    with pytest.raises(InvalidConfiguration, match=r"unable to select an IP from lo .*advertiseAddress 127\.0\.0\.1"):
        load_init(text)


def test_the_one_runtime_that_listens_is_taken_and_two_are_a_question() -> None:
    crio, dockerd = "unix:///var/run/crio/crio.sock", "unix:///var/run/cri-dockerd.sock"
    assert load_init(CLUSTER, replace(FACTS, sockets=(crio,))).config.node_registration.cri_socket == crio
    with pytest.raises(InvalidConfiguration, match="found multiple CRI endpoints on the host"):
        load_init(CLUSTER, replace(FACTS, sockets=(crio, dockerd)))
    assert load_init(CLUSTER, replace(FACTS, sockets=(crio, dockerd)), detects_cri=False)


def test_all_problems_are_told_at_once_with_their_lines() -> None:
    text = CLUSTER + "networking:\n  podSubnet: nonsense\ncertificatesDir: pki\ncontrolPlaneEndpoint: a_b\n"
    with pytest.raises(InvalidConfiguration) as caught:
        load_init(text)
    assert caught.value.problems == (
        "hostport a_b: host 'a_b' must be a valid IP address or a valid RFC-1123 DNS subdomain (line 7)",
        'networking.podSubnet: Invalid value: "nonsense": couldn\'t parse subnet (line 5)',
        'certificatesDir: Invalid value: "pki": path is not absolute (line 6)',
        'controlPlaneEndpoint: Invalid value: "a_b": endpoint is not valid (line 7)',
    )
    assert caught.value.exit_code == 3


def test_unknown_fields_are_warnings_and_with_strictness_errors() -> None:
    text = CLUSTER + "foo: 1\nnetworking: {bar: 2}\n"
    (warning,) = load_init(text).warnings
    assert warning.endswith('strict decoding error: unknown field "foo", unknown field "networking.bar"')
    with pytest.raises(InvalidConfiguration) as caught:
        load_init(text, is_strict=True)
    assert [problem.partition("error: ")[2] for problem in caught.value.problems] == [
        'unknown field "foo" (line 4)',
        'unknown field "networking.bar" (line 5)',
    ]


def test_of_repeated_keys_the_last_counts() -> None:
    loaded = load_init(CLUSTER + "clusterName: one\nclusterName: two\n")
    assert loaded.config.cluster.cluster_name == "two"
    assert 'line 5: key "clusterName" already set in map' in loaded.warnings[0]


def test_a_key_of_a_merged_mapping_is_set_again() -> None:
    lines = "apiServer: &x {certSANs: [a]}\nscheduler: {extraArgs: []}\ncontrollerManager:\n  <<: *x\n  certSANs: []\n"
    (warning, *_) = load_init(CLUSTER + lines).warnings
    assert 'line 8: key "certSANs" already set in map' in warning


@pytest.mark.parametrize("line", ["apiServer: {certSANs:}", "foo: [&x a, &x b, *x]", r'foo: "a\'b"'])
def test_what_go_yaml_alone_can_read_is_read_strictly_too(line: str) -> None:
    (warning,) = load_init(f"{CLUSTER}{line}\n").warnings
    assert "unknown field" in warning


def test_an_unknown_kind_of_a_component_is_refused() -> None:
    document = "---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeproxyConfiguration\n"
    with pytest.raises(GarboardError, match='no kind "KubeproxyConfiguration" is registered for version "kubeproxy'):
        load_init(CLUSTER + document)


def test_the_minor_is_that_of_the_file() -> None:
    text = CLUSTER.replace("VERSION", "v1.36.0") + "featureGates: {PublicKeysECDSA: true}\n"
    assert load_init(text).config.cluster.facts.reference == OLDER
    with pytest.raises(InvalidConfiguration, match="PublicKeysECDSA is not a valid feature name"):
        load_init(text.replace("v1.36.0", "v1.37.0"))


def test_another_minor_is_refused_before_anything_else() -> None:
    with pytest.raises(GarboardError, match=r"the supported minors are 1\.36, 1\.37") as caught:
        load_init(CLUSTER.replace("VERSION", "v1.35.0") + "networking: 5\n")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(("value", "says"), [("true", "is always on"), ("false", "is off")])
def test_the_gate_of_the_local_mode_is_stored_with_a_word_about_it(value: str, says: str) -> None:
    loaded = load_init(CLUSTER + f"featureGates: {{ControlPlaneKubeletLocalMode: {value}}}\n")
    assert loaded.config.cluster.feature_gates == {"ControlPlaneKubeletLocalMode": value == "true"}
    assert loaded.config.cluster.is_kubelet_local_mode == (value == "true")
    assert says in loaded.warnings[0]


def test_v1beta3_is_read_at_1_36_with_a_warning() -> None:
    text = V1BETA3["v1beta3 init"].replace("VERSION", "v1.36.4")
    loaded = load_init(text)
    assert [arg.name for arg in loaded.config.cluster.scheduler.extra_args] == ["profiling", "v"]
    assert loaded.config.timeouts.control_plane_component_health_check == Duration.of(minutes=6)
    assert all("deprecated API spec" in warning for warning in loaded.warnings)


def test_v1beta3_is_refused_at_1_37_with_the_way_out() -> None:
    with pytest.raises(BadDocument, match=r"which kubeadm read until v1\.36 \(line 8\)") as caught:
        load_init(V1BETA3["v1beta3 init"])
    assert caught.value.hint == "`garboard config migrate --old-config f.yaml` converts it"


def test_v1_is_experimental_at_1_37_and_unknown_at_1_36() -> None:
    text = CLUSTER.replace("v1beta4", "v1") + "apiServer: {extraArgs: [{name: a, value: b, mergeMethod: append}]}\n"
    with pytest.raises(BadDocument, match="--allow-experimental-api"):
        load_init(text)
    (arg,) = load_init(text, allows_experimental=True).config.cluster.api_server.extra_args
    assert arg.merge_method == "append"
    with pytest.raises(BadDocument, match='no kind "ClusterConfiguration" is registered for version'):
        load_init(text.replace("VERSION", "v1.36.4"), allows_experimental=True)


def test_a_merge_method_is_checked() -> None:
    text = CLUSTER.replace("v1beta4", "v1") + "apiServer: {extraArgs: [{name: a, value: b, mergeMethod: Append}]}\n"
    with pytest.raises(InvalidConfiguration, match='"index 0": argument has an invalid merge method'):
        load_init(text, allows_experimental=True)


def test_a_component_of_another_version_is_refused() -> None:
    with pytest.raises(BadDocument, match=r"unsupported apiVersion .* of KubeletConfiguration \(line 5\)") as caught:
        load_init(CLUSTER + "---\n" + KUBELET.replace("v1beta1", "v1"))
    assert caught.value.hint == "convert the document to kubelet.config.k8s.io/v1beta1 by hand"


def test_foreign_documents_are_ignored_with_a_warning() -> None:
    loaded = load_init(CLUSTER + "---\napiVersion: example.com/v1\nkind: Thing\n")
    assert loaded.warnings[-1] == (
        "[config] WARNING: Ignored configuration document with GroupVersionKind example.com/v1, Kind=Thing"
    )


@pytest.mark.parametrize(("text", "kind"), [(CLUSTER, "JoinConfiguration"), (JOIN, "InitConfiguration")])
def test_a_command_needs_its_own_kind(text: str, kind: str) -> None:
    file = ConfigFile.read(text.replace("VERSION", "v1.37.1"), file="f.yaml", host=FACTS)
    with pytest.raises(BadDocument, match=kind):
        file.join() if kind == "JoinConfiguration" else file.init()


def test_join_takes_the_discovery_token_for_the_kubelet_too() -> None:
    join = load_join(JOIN).config
    assert isinstance(join.discovery, TokenDiscovery)
    assert join.tls_bootstrap_token == join.discovery.token


def test_sources_are_kept_beside_the_value() -> None:
    loaded = load_init(INIT + "---\n" + CLUSTER + "clusterName: x\n")
    position = loaded.sources["ClusterConfiguration"].position(("clusterName",))
    assert position is not None
    assert position.line == 9


def test_a_configuration_of_flags_is_completed_and_checked_too() -> None:
    options = ReadOptions(detects_cri=False)
    discovery = TokenDiscovery(
        token="abcdef.0123456789abcdef", api_server_endpoint="a:1", unsafe_skip_ca_verification=True
    )
    join = JoinConfiguration(discovery=discovery, tls_bootstrap_token=discovery.token)
    assert join_from_flags(join, FACTS, options).config.node_registration.name == "node-7"
    with pytest.raises(InvalidConfiguration, match="the configuration given by flags is not valid"):
        reset_from_flags(ResetConfiguration(certificates_dir="pki"), FACTS, options)


def test_both_discoveries_are_looked_at() -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        load_join(JOIN + "  file: {kubeConfigPath: 'http://a'}\n")
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "discovery",
        "discovery.file.kubeConfigPath",
    ]


def test_what_is_wrong_in_a_document_that_init_ignores_is_only_told() -> None:
    loaded = load_init(CLUSTER + "---\n" + JOIN + "timeouts: {discovery: 1d}\n")
    assert any('unknown unit "d"' in each for each in loaded.warnings)
    assert any("Ignored configuration document" in each for each in loaded.warnings)


@pytest.mark.parametrize("separator", ["", "\n", " \n"])
def test_flow_style_that_begins_like_json_must_be_json(separator: str) -> None:
    text = separator + "{apiVersion: kubeadm.k8s.io/v1beta4, kind: ClusterConfiguration}\n"
    with pytest.raises(BadDocument, match="json parse error"):
        load_init(text)
    assert load_init("# flow style\n" + text.removeprefix(separator)).config.cluster.cluster_name == "kubernetes"


def test_what_was_stored_is_read_back() -> None:
    stored = load_stored_cluster(CLUSTER.replace("VERSION", "v1.36.2") + "clusterName: mine\n", FixedFacts()).config
    assert load_stored_cluster(cluster_text(stored, stored.facts), FixedFacts()).config == stored


def test_gates_that_the_minor_does_not_know_are_kept_without_a_word() -> None:
    loaded = load_stored_cluster(CLUSTER.replace("VERSION", "v1.37.1") + "featureGates: {Gone: true}\n", FixedFacts())
    assert loaded.config.feature_gates == {"Gone": True}
    assert loaded.warnings == ()


def test_v1beta3_in_the_cluster_stops_1_37() -> None:
    text = V1BETA3["v1beta3 cluster with external etcd"]
    assert load_stored_cluster(text.replace("VERSION", "v1.36.4"), FixedFacts()).warnings == ()
    with pytest.raises(BadDocument, match="failed to decode cluster configuration data"):
        load_stored_cluster(text.replace("VERSION", "v1.37.1"), FixedFacts())
