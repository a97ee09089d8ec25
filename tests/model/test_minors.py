import pytest

from garboard.errors import InvalidValue
from garboard.model import DEFAULT_VERSION, KubernetesVersion, Minor
from garboard.model.cluster import ClusterConfiguration
from garboard.model.minors import MINORS, ROWS, MinorFacts, facts_of, reference_version
from garboard.patches.targets import TARGETS
from garboard.schema import load_schema


def test_facts_belong_to_the_minor_and_not_to_the_patch() -> None:
    assert facts_of(KubernetesVersion(1, 36, 99)).etcd_tag == "3.6.8-0"
    assert facts_of(KubernetesVersion(1, 37)).etcd_tag == "3.7.0-0"


def test_a_minor_without_an_entry_is_refused_with_the_list() -> None:
    with pytest.raises(InvalidValue, match=r"the supported minors are 1\.36, 1\.37") as caught:
        facts_of(KubernetesVersion(1, 35, 8))
    assert caught.value.exit_code == 3


def test_any_patch_release_stands_for_its_minor() -> None:
    assert reference_version(KubernetesVersion(1, 37, 9)) == KubernetesVersion(1, 37, 1)


def test_every_minor_can_read_what_it_writes() -> None:
    for facts in MINORS.values():
        assert facts.config_api.written in facts.config_api.read
        assert not set(facts.config_api.read) & set(facts.config_api.removed)


@pytest.mark.parametrize("facts", ROWS, ids=lambda facts: str(facts.minor))
def test_every_row_names_what_there_is_data_for(facts: MinorFacts) -> None:
    schema = load_schema(facts.reference)
    for api_version in facts.config_api.read:
        assert schema.type_of(api_version, "ClusterConfiguration") is not None
    assert set(facts.patch_targets) <= {target.name for target in TARGETS}


def test_rows_are_in_the_order_of_their_minors_and_the_newest_is_the_default() -> None:
    assert [*MINORS] == sorted(MINORS)
    assert DEFAULT_VERSION.as_minor == max(MINORS)


@pytest.mark.parametrize(("version", "gates", "algorithm"), [
    pytest.param("v1.36.4", {}, "RSA-3072", id="the field decides"),
    pytest.param("v1.36.4", {"PublicKeysECDSA": True}, "ECDSA-P256", id="the gate overrides the field"),
    pytest.param("v1.36.4", {"PublicKeysECDSA": False}, "RSA-2048", id="the gate overrides the field when off too"),
    pytest.param("v1.37.1", {"PublicKeysECDSA": True}, "RSA-3072", id="1.37 has lost the gate"),
])  # fmt: skip
def test_key_algorithm(version: str, gates: dict[str, bool], algorithm: str) -> None:
    cluster = ClusterConfiguration(kubernetes_version=version, feature_gates=gates, encryption_algorithm="RSA-3072")
    assert cluster.key_algorithm == algorithm


def test_release_is_the_version_without_its_suffix() -> None:
    cluster = ClusterConfiguration(kubernetes_version="v1.37.0-rc.1+abc")
    assert cluster.release == KubernetesVersion(1, 37, 0)
    assert cluster.minor == Minor(1, 37)


def test_instance_config_can_be_switched_off_where_the_gate_exists() -> None:
    gates = {"NodeLocalCRISocket": False}
    assert not ClusterConfiguration(kubernetes_version="v1.36.4", feature_gates=gates).has_instance_config
    assert ClusterConfiguration(kubernetes_version="v1.37.1", feature_gates=gates).has_instance_config
