import base64
from datetime import UTC, datetime

import pytest

from garboard.documents import read_yaml
from garboard.manifests.bootstrap_token import bootstrap_rbac, cluster_info_objects, token_secret
from garboard.model.duration import Duration
from garboard.model.lifecycle import BootstrapToken

NOW = datetime(2026, 11, 15, 12, 0, 0, 999, tzinfo=UTC)
TOKEN = BootstrapToken(token="abcdef.0123456789abcdef")


def data_of(token: BootstrapToken) -> dict[str, str]:
    data = token_secret(token, NOW).content["data"]
    assert isinstance(data, dict)
    return {key: base64.b64decode(str(value)).decode() for key, value in data.items()}


def test_a_token_says_who_it_is_and_what_it_is_for() -> None:
    assert data_of(TOKEN) == {
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "expiration": "2026-11-16T12:00:00Z",
        "usage-bootstrap-signing": "true",
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    }


@pytest.mark.parametrize(
    ("token", "expiration"),
    [
        (BootstrapToken(token="a.b", ttl=Duration()), None),
        (BootstrapToken(token="a.b", ttl=Duration.of(minutes=90)), "2026-11-15T13:30:00Z"),
        (BootstrapToken(token="a.b", ttl=None, expires="2030-01-01T01:00:00+01:00"), "2030-01-01T00:00:00Z"),
    ],
)
def test_a_token_ends_when_it_was_asked_to(token: BootstrapToken, expiration: str | None) -> None:
    assert data_of(token).get("expiration") == expiration


def test_no_secret_shows_in_a_repr() -> None:
    assert "MDEyMzQ1" not in repr(token_secret(TOKEN, NOW))
    assert "0123456789abcdef" not in repr(token_secret(TOKEN, NOW))


def test_the_public_description_names_the_cluster_and_nobody() -> None:
    public, role, binding = cluster_info_objects({"server": "https://lb:6443"})
    data = public.content["data"]
    assert isinstance(data, dict)
    kubeconfig = read_yaml(str(data["kubeconfig"]), source="cluster-info")
    assert kubeconfig == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "", "cluster": {"server": "https://lb:6443"}}],
        "contexts": None,
        "current-context": "",
        "users": None,
    }
    assert (public.namespace, role.kind, binding.kind) == ("kube-public", "Role", "RoleBinding")


def test_bootstrapping_needs_nothing_in_a_namespace() -> None:
    assert {each.namespace for each in bootstrap_rbac()} == {""}
