import base64

import pytest

from garboard.fleet.secret_values import is_secret_field, known_secrets
from tests.support.fleet.pool import POOL, PULL_SECRET, TEMPLATE, customization, documents_of

ENCODED = base64.b64encode(b"encoded-secret").decode()
ENVIRONMENT = "  installerEnv: [{name: API_TOKEN, value: token-of-the-installer}, {name: REGION, value: somewhere}]\n"
PATCHES = """
installConfigPatches:
- {op: add, path: /platform/none/password, value: by-an-operation}
- {op: add, path: /x, valueJSON: '{"deep": [{"clientSecret": "by-json"}], "open": "not-hidden"}'}
installerManifestPatches:
- {manifestSelector: {kind: A}, type: merge, patch: {spec: {token: by-a-mapping}}}
- manifestSelector: {kind: A}
  patch: |
    - {op: add, path: /spec/pullSecret, value: by-a-text}
"""


def test_secrets_of_documents_are_known_wherever_they_stand() -> None:
    encoded = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: e}}\ndata: {{k: {ENCODED}}}\n"
    known = known_secrets(
        documents_of(POOL + ENVIRONMENT, PULL_SECRET, TEMPLATE, encoded, customization("site-a", PATCHES))
    )
    expected = ("encoded-secret", "hunter2-in-the-template", "token-of-the-installer", "by-an-operation", "by-json",
                "by-a-mapping", "by-a-text")  # fmt: skip
    assert [each for each in expected if each not in known] == []
    assert any("pull-secret-of-the-pool" in each for each in known)


def test_what_is_no_secret_stays_readable() -> None:
    known = known_secrets(documents_of(POOL + ENVIRONMENT, TEMPLATE, customization("site-a", PATCHES)))
    assert not {"somewhere", "not-hidden", "template.example", "master"} & set(known)


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [("pullSecret", True), ("password", True), ("adminPassword", True), ("certificateKey", True), ("token", True),
     ("tokenTTL", False), ("sshKey", False), ("name", False)],
)  # fmt: skip
def test_field_is_a_secret_by_the_end_of_its_name(name: str, is_secret: bool) -> None:
    assert is_secret_field(name) is is_secret
