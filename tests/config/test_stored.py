import pytest

from garboard.config import FixedFacts, cluster_text, load_stored_cluster
from garboard.errors import BadDocument
from tests.config.configurations import CLUSTER, V1BETA3


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
