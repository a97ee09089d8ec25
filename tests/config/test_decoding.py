"""The messages are those that kubeadm 1.36.4 and 1.37.1 print."""

import pytest

from garboard.config.decoding import decode, path_text
from garboard.documents import Json
from garboard.model import DEFAULT_VERSION
from garboard.schema import load_schema

API = "kubeadm.k8s.io/v1beta4"


def decoded_cluster(tree: Json) -> tuple[dict[str, Json], list[str], list[str]]:
    type_ = load_schema(DEFAULT_VERSION).type_of(API, "ClusterConfiguration")
    assert type_ is not None
    found = decode(tree, type_)
    return found.tree, [path_text(path) for path in found.unknown], found.mismatches


def test_unknown_fields_are_told_with_their_paths_in_the_order_of_their_names() -> None:
    tree: Json = {"foo": 1, "networking": {"bar": 2}, "apiServer": {"extraArgs": [{"name": "a", "value": "b", "x": 1}]}}
    assert decoded_cluster(tree)[1] == ["apiServer.extraArgs[0].x", "foo", "networking.bar"]


def test_nulls_and_zeros_count_as_not_given() -> None:
    assert decoded_cluster({"clusterName": "", "apiServer": None, "dns": {"disabled": False}})[0] == {"dns": {}}


def test_a_pointer_to_zero_is_given() -> None:
    assert decoded_cluster({"certificateValidityPeriod": "0s"})[0] == {"certificateValidityPeriod": "0s"}


def test_an_empty_list_is_told_from_none() -> None:
    type_ = load_schema(DEFAULT_VERSION).type_of(API, "InitConfiguration")
    assert type_ is not None
    assert decode({"nodeRegistration": {"taints": []}}, type_).tree == {"nodeRegistration": {"taints": []}}
    assert decode({"nodeRegistration": {"taints": None}}, type_).tree == {"nodeRegistration": {}}


@pytest.mark.parametrize(("tree", "message"), [
    pytest.param(
        {"networking": 5},
        "json: cannot unmarshal number into Go struct field ClusterConfiguration.networking of type v1beta4.Networking",
        id="number for a struct",
    ),
    pytest.param(
        {"apiServer": {"certSANs": [1]}},
        "json: cannot unmarshal number into Go struct field APIServer.apiServer.certSANs of type string",
        id="number in a list of texts",
    ),
    pytest.param(
        {"featureGates": {"A": "x"}},
        "json: cannot unmarshal string into Go struct field ClusterConfiguration.featureGates of type bool",
        id="text in a map of switches",
    ),
    pytest.param(
        {"certificateValidityPeriod": 5},
        "json: cannot unmarshal number into Go struct field ClusterConfiguration.certificateValidityPeriod "
        "of type string",
        id="number for a duration",
    ),
    pytest.param(
        {"certificateValidityPeriod": "1d"}, 'time: unknown unit "d" in duration "1d"', id="a unit Go has not got"
    ),
    pytest.param([], "json: cannot unmarshal array into Go value of type v1beta4.ClusterConfiguration", id="a list"),
])  # fmt: skip
def test_a_value_of_the_wrong_type_is_told_as_go_does(tree: Json, message: str) -> None:
    assert decoded_cluster(tree)[2] == [message]


@pytest.mark.parametrize("token", ["abcdef.0123456789abcdeX", 123456, ""])
def test_a_bad_token_is_not_repeated(token: Json) -> None:
    type_ = load_schema(DEFAULT_VERSION).type_of(API, "InitConfiguration")
    assert type_ is not None
    assert decode({"bootstrapTokens": [{"token": token}]}, type_).mismatches == [
        r'the bootstrap token was not of the form "\\A([a-z0-9]{6})\\.([a-z0-9]{16})\\z"'
    ]
