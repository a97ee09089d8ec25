import pytest

from garboard.config.problems import InvalidConfiguration
from garboard.config.sources import read_documents
from garboard.documents import Position
from garboard.errors import BadDocument

CLUSTER = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"
INIT = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n"


def test_documents_know_their_lines() -> None:
    documents = read_documents(f"---\n{CLUSTER}networking:\n  podSubnet: x\n---\n{INIT}dryRun: true\n", file="f")
    cluster, init = documents
    assert cluster.source.position(("networking", "podSubnet")) == Position(5, 3)
    assert init.source.position(("dryRun",)) == Position(9, 1)
    assert init.source.position(("nothing", "here")) is None


def test_a_path_that_is_not_written_stands_at_its_nearest_parent() -> None:
    (cluster,) = read_documents(f"{CLUSTER}etcd:\n  local: {{}}\n", file="f")
    assert cluster.source.position(("etcd", "local", "dataDir")) == Position(4, 3)


@pytest.mark.parametrize("text", [
    pytest.param(f"{CLUSTER}---\n# only a comment\n", id="comment"),
    pytest.param(f"{CLUSTER}---\n\n---\n{INIT}", id="blank line"),
    pytest.param(f"---\n---\n{CLUSTER}", id="two leading separators"),
    pytest.param(f"{CLUSTER}---\na: b\n", id="no kind"),
    pytest.param("- a\n", id="a list"),
    pytest.param("kind: ClusterConfiguration\n", id="no apiVersion"),
    pytest.param("apiVersion: v1\nkind: ConfigMap\n", id="no group"),
])  # fmt: skip
def test_a_document_must_say_what_it_is(text: str) -> None:
    with pytest.raises(BadDocument, match="kind and apiVersion is mandatory information"):
        read_documents(text, file="f")


@pytest.mark.parametrize("text", [
    pytest.param(f"---\n{CLUSTER}---\n", id="one leading and one trailing separator"),
    pytest.param(f"{CLUSTER}---\n---\n{INIT}", id="doubled separator"),
    pytest.param(f"{CLUSTER}--- # comment\n{INIT}", id="comment behind a separator"),
])  # fmt: skip
def test_separators_that_are_forgiven(text: str) -> None:
    assert read_documents(text, file="f")[0].gvk.kind == "ClusterConfiguration"


def test_a_kind_may_stand_once_whatever_its_version() -> None:
    with pytest.raises(InvalidConfiguration, match='kind "InitConfiguration" is specified twice in YAML file'):
        read_documents(f"{INIT}---\n{INIT.replace('v1beta4', 'v1beta3')}", file="f")
