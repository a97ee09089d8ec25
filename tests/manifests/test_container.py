import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.manifests.container import (
    Argument,
    PodMount,
    external_etcd_mounts,
    last_arg,
    merged_arguments,
    merged_mounts,
    same_path,
)
from garboard.manifests.sources import cluster_field
from garboard.model.component import Arg, ExternalEtcd

FIELD = cluster_field("apiServer", "extraArgs")
DEFAULTS = (Argument("b", "2"), Argument("c", "3"), Argument("a", "1"))


def merged(*extra: Arg) -> list[str]:
    return [str(each) for each in merged_arguments(DEFAULTS, extra, FIELD)]


def test_defaults_are_sorted_and_extra_arguments_keep_their_order_and_repeats() -> None:
    assert merged(Arg("z", "1"), Arg("b", "x"), Arg("d", ""), Arg("z", "0")) == [
        "--a=1", "--c=3", "--z=1", "--b=x", "--d=", "--z=0"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        pytest.param([Arg("b", ",x", "append")], ["--a=1", "--b=2,x", "--c=3"], id="appended in place"),
        pytest.param([Arg("b", "x,", "prepend")], ["--a=1", "--b=x,2", "--c=3"], id="prepended in place"),
        pytest.param([Arg("z", "x", "append")], ["--a=1", "--b=2", "--c=3"], id="nothing to append to"),
        pytest.param(
            [Arg("b", "y"), Arg("b", ",x", "append")], ["--a=1", "--b=2,x", "--c=3", "--b=y"], id="the last decides"
        ),
        pytest.param([Arg("b", ",x", "append"), Arg("b", "y")], ["--a=1", "--c=3", "--b=y"], id="replaced after all"),
    ],
)
def test_a_merge_method_extends_the_default(extra: list[Arg], expected: list[str]) -> None:
    assert merged(*extra) == expected


def test_every_argument_knows_where_its_value_comes_from() -> None:
    found = merged_arguments(DEFAULTS, (Arg("x", "1"), Arg("a", "2"), Arg("b", "+", "append")), FIELD)
    assert {each.name: str(each.source) for each in found} == {
        "b": "apiServer.extraArgs[2]",
        "c": "None",
        "x": "apiServer.extraArgs[0]",
        "a": "apiServer.extraArgs[1]",
    }


def test_the_last_argument_of_a_name_counts() -> None:
    assert last_arg((Arg("a", "1"), Arg("b", "2"), Arg("a", "3")), "a") == (2, Arg("a", "3"))
    assert last_arg((Arg("a", "1"),), "b") is None


@settings(max_examples=50)
@given(st.lists(st.builds(Arg, st.sampled_from("abcxyz"), st.text(max_size=3)), max_size=8))
def test_what_the_user_gives_comes_last_and_complete(extra: list[Arg]) -> None:
    found = merged_arguments(DEFAULTS, extra, FIELD)
    kept, added = found[: len(found) - len(extra)], found[len(found) - len(extra) :]
    assert [(each.name, each.value) for each in added] == [(arg.name, arg.value) for arg in extra]
    assert [each.name for each in kept] == sorted({"a", "b", "c"} - {arg.name for arg in extra})


def folders(*paths: str) -> list[str]:
    ca, cert, key = paths
    etcd = ExternalEtcd(endpoints=(), ca_file=ca, cert_file=cert, key_file=key)
    return [each.mount.host_path for each in external_etcd_mounts(etcd, "/etc/kubernetes/pki")]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (("/b/ca.crt", "/a/c.crt", "/a/c.key"), ["/a", "/b"]),
        (("/a/ca.crt", "/a/b/c.crt", "/a/c/c.key"), ["/a"]),
        (("/a/b/ca.crt", "/a/c.crt", "/a/b/c.key"), ["/a"]),
        (("/etc/kubernetes/pki/etcd/ca.crt", "/etc/ssl/certs/c.crt", "/etc/pki/ca-trust/c.key"), []),
        (("", "", ""), []),
        (("/ca.crt", "", ""), ["/"]),
        (("/etcd/ca.crt", "/etcd-client/c.crt", "/etcd/c.key"), ["/etcd"]),
    ],
)
def test_the_folders_of_etcds_certificates_are_mounted_once(paths: tuple[str, str, str], expected: list[str]) -> None:
    assert folders(*paths) == expected


def test_a_later_volume_of_the_same_name_replaces_an_earlier_one() -> None:
    first, second = PodMount(same_path("b", "/one")), PodMount(same_path("b", "/two"))
    assert merged_mounts([first, PodMount(same_path("a", "/a"))], [second]) == (PodMount(same_path("a", "/a")), second)
