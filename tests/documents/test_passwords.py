"""Passwords of URLs, which stand in proxy variables, are not for people who read plans and differences."""

import pytest

from garboard.documents import Json, document_without_passwords, without_passwords


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("http://u:p@proxy:3128", "http://<hidden>@proxy:3128", id="user and password"),
        pytest.param("https://u:p/a@b@proxy", "https://<hidden>@proxy", id="not escaped"),
        pytest.param("+ value: http://u:p@proxy\n", "+ value: http://<hidden>@proxy\n", id="in a diff"),
        pytest.param("http://proxy:3128", "http://proxy:3128", id="no password"),
        pytest.param("https://10.0.0.1:6443", "https://10.0.0.1:6443", id="an address"),
        pytest.param("oci://r:5000/a@sha256:0a", "oci://r:5000/a@sha256:0a", id="an image with a digest"),
    ],
)
def test_passwords_of_urls_are_hidden(text: str, shown: str) -> None:
    assert without_passwords(text) == shown


def test_documents_keep_their_shape() -> None:
    document: Json = {"env": [{"name": "HTTPS_PROXY", "value": "http://u:p@proxy"}], "replicas": 2, "none": None}
    assert document_without_passwords(document) == {
        "env": [{"name": "HTTPS_PROXY", "value": "http://<hidden>@proxy"}],
        "replicas": 2,
        "none": None,
    }
