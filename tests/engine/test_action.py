"""Actions that are made of a document."""

from garboard.documents import Json
from garboard.engine import FilePlaceholder, PutObject


def test_object_is_put_by_the_names_in_its_content() -> None:
    content: dict[str, Json] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "b"},
    }
    fillings = (FilePlaceholder("<ca>", "/pki/ca.crt"),)
    assert PutObject.of(content, fillings=fillings, keeps_other_data=True) == PutObject(
        api_version="apps/v1",
        kind="Deployment",
        name="a",
        namespace="b",
        content=content,
        fillings=fillings,
        keeps_other_data=True,
    )


def test_object_of_the_whole_cluster_has_no_namespace() -> None:
    assert PutObject.of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}).namespace == ""


def test_content_of_a_secret_is_not_shown() -> None:
    content: dict[str, Json] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    assert PutObject.of(content).is_secret
    assert not PutObject.of({**content, "kind": "ConfigMap"}).is_secret
