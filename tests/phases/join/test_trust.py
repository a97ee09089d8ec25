"""Whether a cluster is the one that was meant."""

import base64
import hashlib
import hmac
import json

import pytest

from garboard.phases.join.trust import ClusterInfo, NotTrusted, check_pins, check_signature, signature_of
from garboard.pki.chain import authority_pins
from tests.support.phases.join.clusters import SERVER, TOKEN, MemoryCluster


def info(cluster: MemoryCluster) -> ClusterInfo:
    return ClusterInfo.of(cluster.objects["ConfigMap", "cluster-info"], SERVER)


def test_signature_is_a_jws_whose_payload_is_left_out() -> None:
    header, payload, signature = signature_of("some text", TOKEN).split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "HS256", "kid": "abcdef"}
    assert payload == ""
    signed = f"{header}.{base64.urlsafe_b64encode(b'some text').decode().rstrip('=')}".encode()
    expected = hmac.new(b"0123456789abcdef", signed, hashlib.sha256).digest()
    assert base64.urlsafe_b64decode(signature + "=") == expected


def test_who_knows_the_token_is_trusted() -> None:
    check_signature(info(MemoryCluster.made()), TOKEN, SERVER)


def test_another_secret_under_the_same_id_is_not_trusted_and_not_shown() -> None:
    cluster = MemoryCluster.made()
    cluster.describe("abcdef.fedcba9876543210")
    with pytest.raises(NotTrusted, match="JWS signature") as caught:
        check_signature(info(cluster), TOKEN, SERVER)
    assert caught.value.error_class == "wrong-token"
    assert "0123456789abcdef" not in caught.value.message


@pytest.mark.parametrize("signature", ["é", "\ud800", "eyJ..\N{SNOWMAN}", ""])
def test_signature_that_is_no_jws_is_not_trusted(signature: str) -> None:
    found = info(MemoryCluster.made())
    forged = ClusterInfo(found.kubeconfig, {"abcdef": signature})
    with pytest.raises(NotTrusted) as caught:
        check_signature(forged, TOKEN, SERVER)
    assert caught.value.error_class == "wrong-token"


def test_description_that_is_no_text_is_not_trusted() -> None:
    with pytest.raises(NotTrusted):
        check_signature(ClusterInfo("\ud800", {"abcdef": "x"}), TOKEN, SERVER)


def test_one_pin_of_many_is_enough_whatever_its_case() -> None:
    found = info(MemoryCluster.made())
    (pin,) = authority_pins(found.cluster.ca)
    check_pins(found, ["sha256:" + "0" * 64, pin.upper().replace("SHA256", "sha256")], SERVER)


def test_wrong_pin_names_both_keys() -> None:
    found = info(MemoryCluster.made())
    (pin,) = authority_pins(found.cluster.ca)
    wrong = "sha256:" + "0" * 64
    with pytest.raises(NotTrusted) as caught:
        check_pins(found, [wrong], SERVER)
    assert caught.value.error_class == "wrong-ca"
    assert pin in caught.value.message
    assert wrong in caught.value.message


@pytest.mark.parametrize(
    "config_map", [None, {}, {"data": {}}, {"data": "x"}], ids=["missing", "empty", "no key", "no map"]
)
def test_cluster_without_a_description_is_told_how_to_get_one(config_map: dict[str, object] | None) -> None:
    with pytest.raises(NotTrusted, match="cluster-info") as caught:
        ClusterInfo.of(config_map, SERVER)  # type: ignore[arg-type]
    assert caught.value.error_class == "no-cluster-info"
