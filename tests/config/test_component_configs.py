from garboard.config.component_configs import (
    KUBE_PROXY_KIND,
    KUBELET_KIND,
    ComponentConfig,
    ComponentConfigs,
    default_components,
)
from garboard.config.problems import ConfigNotes
from garboard.documents import Json
from garboard.model.cluster import ClusterConfiguration, Networking
from garboard.model.minors import ROWS, MinorFacts
from garboard.model.node import ApiEndpoint

OLDER, NEWER = ROWS[:2]
ENDPOINT = ApiEndpoint(advertise_address="10.0.0.1")


def completed(
    facts: MinorFacts, *, kubelet: dict[str, Json] | None = None, proxy: dict[str, Json] | None = None
) -> tuple[ComponentConfigs, list[str]]:
    notes = ConfigNotes()
    given = ComponentConfigs(
        ComponentConfig(KUBELET_KIND, kubelet or {}), ComponentConfig(KUBE_PROXY_KIND, proxy or {})
    )
    return default_components(given, ClusterConfiguration(), ENDPOINT, facts, notes), notes.warnings


def test_certificates_rotate_even_where_the_file_says_no() -> None:
    configs, warnings = completed(NEWER, kubelet={"rotateCertificates": False})
    assert configs.kubelet.tree["rotateCertificates"] is True
    assert warnings == []


def test_a_value_that_differs_stays_with_a_recommendation() -> None:
    configs, warnings = completed(NEWER, kubelet={"healthzPort": 0})
    assert configs.kubelet.tree["healthzPort"] == 0
    assert warnings == [
        'The recommended value for "healthzPort" in "KubeletConfiguration" is: 10248; the provided value is: 0'
    ]


def test_an_empty_mode_becomes_iptables_from_1_37_on() -> None:
    assert "mode" not in completed(OLDER)[0].kube_proxy.tree
    assert completed(NEWER)[0].kube_proxy.tree["mode"] == "iptables"


def test_a_wildcard_of_the_other_family_is_recommended_against_before_1_37() -> None:
    assert completed(OLDER, proxy={"bindAddress": "::"})[1] == [
        'The recommended value for "bindAddress" in "KubeProxyConfiguration" is: 0.0.0.0; the provided value is: ::'
    ]
    assert completed(NEWER, proxy={"bindAddress": "::"})[1] == []


def test_defaulting_twice_changes_nothing() -> None:
    first, _ = completed(NEWER)
    cluster = ClusterConfiguration(networking=Networking())
    assert default_components(first, cluster, ENDPOINT, NEWER, ConfigNotes()) == first


def test_input_documents_are_left_as_they_are() -> None:
    inner: dict[str, Json] = {"cacheTTL": "1s"}
    given: dict[str, Json] = {"authentication": {"webhook": inner}}
    completed(NEWER, kubelet=given)
    assert given == {"authentication": {"webhook": {"cacheTTL": "1s"}}}
