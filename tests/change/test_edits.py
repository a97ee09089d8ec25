"""`--set` and `--unset`: every form of a path and of a value, and what is refused."""

import pytest

from garboard.change.edits import FieldEdit
from garboard.change.snapshot import ClusterSnapshot
from garboard.errors import BadUsage, GarboardError
from garboard.values import Json
from tests.support.change.requests import planned, sets, unsets
from tests.support.change.snapshots import f1

_ARGS: Json = [{"name": "event-ttl", "value": "2h"}, {"name": "v", "value": "4"}]
CLUSTER: dict[str, Json] = {
    "apiServer": {"extraArgs": _ARGS, "certSANs": ["a.example.com", "b.example.com"]},
    "controllerManager": {"extraEnvs": [{"name": "LEVEL", "value": "1"}]},
}


def stored() -> ClusterSnapshot:
    return f1(cluster=CLUSTER, kubelet={"maxPods": 200, "evictionHard": {"memory.available": "5%"}})


def changed(*edits: str) -> list[tuple[str, Json, Json]]:
    """Return what `--set` of each changes: the label, before, after."""
    plan = planned(stored(), sets(*edits))
    return [(each.label, each.before, each.after) for each in plan.attributes]


@pytest.mark.parametrize(
    ("edit", "label", "before", "after"),
    [
        ("apiServer.extraArgs[profiling]=false", "apiServer.extraArgs[profiling]", None, "false"),
        ("apiServer.extraArgs[name=profiling]=false", "apiServer.extraArgs[profiling]", None, "false"),
        ('apiServer.extraArgs["profiling"]=false', "apiServer.extraArgs[profiling]", None, "false"),
        ("apiServer.extraArgs.profiling=false", "apiServer.extraArgs[profiling]", None, "false"),
        ("apiServer.extraArgs[event-ttl]=3h", "apiServer.extraArgs[event-ttl]", "2h", "3h"),
        ("ClusterConfiguration:apiServer.extraArgs[v]=5", "apiServer.extraArgs[v]", "4", "5"),
        ("apiServer.certSANs+=x", "apiServer.certSANs[x]", None, "x"),
        ("apiServer.certSANs-=a.example.com", "apiServer.certSANs[a.example.com]", "a.example.com", None),
        ("KubeletConfiguration:maxPods=250", "KubeletConfiguration:maxPods", 200, 250),
        ("KubeletConfiguration:serializeImagePulls=false", "KubeletConfiguration:serializeImagePulls", None, False),
        (
            'KubeletConfiguration:evictionHard["memory.available"]=6%',
            'KubeletConfiguration:evictionHard["memory.available"]',
            "5%",
            "6%",
        ),
        (
            "KubeletConfiguration:clusterDNS+=10.96.0.11",
            "KubeletConfiguration:clusterDNS",
            ["10.96.0.10"],
            ["10.96.0.10", "10.96.0.11"],
        ),
        ("KubeProxyConfiguration:mode=nftables", "KubeProxyConfiguration:mode", "iptables", "nftables"),
        ("KubeletConfiguration:maxPods=null", "KubeletConfiguration:maxPods", 200, None),
    ],
)
def test_an_edit_changes_one_field(edit: str, label: str, before: Json, after: Json) -> None:
    assert changed(edit) == [(label, before, after)]


@pytest.mark.parametrize(
    "value",
    ["false", "0", "1.10", "0x10", "null", "~", "yes", "2020-01-01", "::", "[::]", "{a: b}", "*", "&a", "a: b", "a=b",
     "a+=b", "x # y", "%", "@x", "- a", "!!str x", "'"],
)  # fmt: skip
def test_where_the_field_is_text_a_value_is_taken_as_it_stands(value: str) -> None:
    """Others than quoted ones; what a flag makes of it is judged later."""
    (found,) = changed(f"apiServer.extraArgs[external-hostname]={value}")
    wanted = {"x # y": "x", "!!str x": "x"}.get(value, value)  # as YAML reads them
    assert found == ("apiServer.extraArgs[external-hostname]", None, wanted)


def test_quotes_are_those_of_yaml() -> None:
    assert changed('apiServer.extraArgs[external-hostname]="a: b"')[0][2] == "a: b"
    assert changed("apiServer.extraArgs[external-hostname]='false'")[0][2] == "false"


def test_an_argument_may_have_several_values_of_which_each_can_be_taken_out() -> None:
    twice = sets("apiServer.extraArgs[tls-sni-cert-key]=a", "apiServer.extraArgs[tls-sni-cert-key]+=b")
    (found,) = planned(stored(), twice).attributes
    assert found.after == ["a", "b"]
    once = sets(
        "apiServer.extraArgs[tls-sni-cert-key]=a",
        "apiServer.extraArgs[tls-sni-cert-key]+=b",
        "apiServer.extraArgs[tls-sni-cert-key]-=a",
    )
    assert planned(stored(), once).attributes[0].after == "b"


def test_later_edits_build_on_earlier_ones() -> None:
    assert changed("apiServer.certSANs+=x", "apiServer.certSANs-=x") == []
    assert changed("apiServer.extraArgs[v]=1", "apiServer.extraArgs[v]=6")[0][2] == "6"


@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("apiServer.extraArgs[v]", ["apiServer.extraArgs[v]"]),
        ("apiServer.extraArgs", ["apiServer.extraArgs[event-ttl]", "apiServer.extraArgs[v]"]),
        ("apiServer.certSANs[a.example.com]", ["apiServer.certSANs[a.example.com]"]),
        ("controllerManager.extraEnvs[LEVEL]", ["controllerManager.extraEnvs[LEVEL]"]),
        ("KubeletConfiguration:maxPods", ["KubeletConfiguration:maxPods"]),
        ("apiServer.extraArgs[not-there]", []),
        ("KubeletConfiguration:tracing.endpoint", []),
    ],
)
def test_a_field_or_an_item_is_removed(path: str, labels: list[str]) -> None:
    plan = planned(stored(), unsets(path))
    assert [each.label for each in plan.attributes] == labels
    assert {each.after for each in plan.attributes} <= {None}


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("", "is no PATH=VALUE"),
        ("=", "is no PATH=VALUE"),
        ("apiServer", "is no PATH=VALUE"),
        ("apiServer.extraArgs[profiling=1", "is no PATH=VALUE"),
        ("apiServer.extraArgs[]=1", "is not a field path"),
        ("a..b=1", "is not a field path"),
        ("apiServer.extraArg[v]=1", "no field 'extraArg'"),
        ("maxPods=250", "no field 'maxPods'"),
        ("Pod:spec=1", "Pod is no configuration"),
        ("apiServer.extraArgs=1", "a list takes"),
        ("apiServer.extraArgs[0]=1", "items are named"),
        ("apiServer.extraArgs[value=2h]=1", "found by name, and not by value"),
        ("apiServer.extraVolumes[a]=/x", "set the fields of a one by one"),
        ("apiServer.certSANs[x]=x", "a list without names"),
        ("clusterName+=x", "clusterName is no list"),
        ("clusterName.x=1", "nothing below it"),
        ("KubeletConfiguration:maxPods={{", "the value is no YAML"),
        ("KubeletConfiguration:maxPods=*x", "unknown anchor"),
    ],
)
def test_what_is_no_edit_is_refused(edit: str, said: str) -> None:
    with pytest.raises(BadUsage) as refused:
        changed(edit)
    assert said in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("edit", ["KubeletConfiguration:maxPods=" + "[" * 20_000, "a" * 20_000, "[" * 20_000 + "=1"])
def test_what_is_refused_is_not_repeated_at_length(edit: str) -> None:
    with pytest.raises(GarboardError) as refused:
        planned(stored(), sets(edit))
    assert len(refused.value.message) < 500


def test_an_edit_of_nodes_is_read_as_one_of_their_kind() -> None:
    edit = FieldEdit.parse("InitConfiguration:nodeRegistration.kubeletExtraArgs[v]=4")
    assert (edit.kind, edit.operator, edit.text) == ("InitConfiguration", "=", "4")
