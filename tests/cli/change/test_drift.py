"""`change drift` at a fake API server, which shows the static pods; a real cluster is in tests/lab."""

import json
from pathlib import Path

import msgspec
import pytest

from garboard.change.snapshot import snapshot_text
from garboard.cli.main import run
from garboard.documents import read_yaml
from garboard.model import DEFAULT_VERSION
from garboard.patches import PatchFile, read_directory
from garboard.schema import load_schema
from tests.support.change.api_objects import DNS, NODES, PROXY, PagedApi, stored_objects
from tests.support.change.snapshots import f1, f4

FIELD = "spec.containers[name=kube-apiserver].command[--profiling]"


def show(api: PagedApi, *, is_edited: bool, max_pods: int = 110) -> None:
    """Have the API server show a cluster; its addons are not compared here."""
    shown = stored_objects((f4 if is_edited else f1)(is_seen=True))
    api.objects |= {path: content for path, content in shown.items() if path not in (DNS, PROXY)}
    for node in f1(is_seen=True).nodes:
        running = msgspec.convert(read_yaml(node.kubelet_config or "", source="config.yaml"), dict)
        api.objects[f"{NODES}/{node.name}/proxy/configz"] = {"kubeletconfig": {**running, "maxPods": max_pods}}


def test_cluster_without_drift_exits_with_zero(
    api: PagedApi, admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    show(api, is_edited=False)
    assert run(["change", "drift", *admin]) == 0
    assert capsys.readouterr().out == "7 files and objects compared: no difference\n"


def test_kubelet_that_runs_with_something_else_is_drift_where_it_may_be_asked(
    api: PagedApi, admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    stored = f1(is_seen=True, kubelet={"maxPods": 250})
    show(api, is_edited=False)
    api.objects |= {path: content for path, content in stored_objects(stored).items() if "kubelet-config" in path}
    assert run(["change", "drift", *admin]) == 10
    assert "running:   110    # /configz of the kubelet of w1" in capsys.readouterr().out
    assert run(["change", "drift", "--kubelets", "none", *admin]) == 0
    assert capsys.readouterr().out == "4 files and objects compared: no difference\n"
    api.refuse("GET", f"{NODES}/cp1/proxy/configz", 403, "Forbidden", "no")
    assert run(["change", "drift", *admin]) == 0
    assert "not looked at: what kubelets run with: the right to get nodes/proxy" in capsys.readouterr().out


def test_hand_edit_is_shown_and_exits_with_ten(
    api: PagedApi, admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    show(api, is_edited=True)
    assert run(["change", "drift", *admin]) == 10
    out = capsys.readouterr().out
    assert f"{FIELD}  [hand-edit]" in out
    assert 'running:   "false"    # Pod kube-apiserver-cp1' in out
    assert {method for method, _ in api.asked} == {"GET"}
    assert run(["change", "drift", "-o", "json", *admin]) == 10
    answer = json.loads(capsys.readouterr().out)
    assert [each["field"] for each in answer["nodes"][0]["differences"]] == [FIELD]


def test_captured_directory_is_one_that_kubeadm_reads(
    api: PagedApi, admin: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(api, is_edited=True)
    folder = tmp_path / "patches"
    assert run(["change", "drift", "--capture", str(folder), *admin]) == 10
    assert f"wrote 1 patches of node cp1 to {folder}, 1 edits" in capsys.readouterr().err
    files = sorted(folder.iterdir())
    assert [each.name for each in files] == ["kube-apiserver~found-flags+json.yaml"]
    listed = [PatchFile(each.name, each.name, each.read_bytes) for each in files]
    assert read_directory(listed, load_schema(DEFAULT_VERSION)).ignored == ()


def test_folder_with_files_is_left_alone(
    api: PagedApi, admin: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(api, is_edited=True)
    (tmp_path / "mine").touch()
    assert run(["change", "drift", "--capture", str(tmp_path), *admin]) == 1
    assert "error[exists]" in capsys.readouterr().err
    assert (tmp_path / "mine").read_bytes() == b""


def test_correction_is_planned_and_nothing_is_written(
    api: PagedApi, admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    show(api, is_edited=True)
    assert run(["change", "drift", "--correct", *admin]) == 10
    shown = capsys.readouterr()
    assert "-    - --profiling=false" in shown.out
    assert "hint: garboard change apply --drift overwrite carries this out" in shown.err
    assert run(["change", "drift", "--correct", "--only", "kube-apiserver:--profiling", "-o", "json", *admin]) == 10
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["corrects"]) == ("ChangePlan", ["kube-apiserver:--profiling"])
    assert run(["change", "plan", "--drift", "overwrite", "-o", "json", *admin]) == 10
    assert json.loads(capsys.readouterr().out)["nodes"] == document["nodes"]
    assert {method for method, _ in api.asked} == {"GET"}


def test_what_adopting_would_record_is_shown_by_a_plan(
    api: PagedApi, admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    show(api, is_edited=True)
    assert run(["change", "plan", "--drift", "adopt", "-o", "json", *admin]) == 10
    document = json.loads(capsys.readouterr().out)
    assert [each["path"] for each in document["attributes"]] == ["apiServer.extraArgs[profiling]"]
    assert (document["nodes"], [each["name"] for each in document["objects"]]) == ([], ["kubeadm-config"])
    show(api, is_edited=False)
    assert run(["change", "plan", "--drift", "adopt", *admin]) == 0
    assert {method for method, _ in api.asked} == {"GET"}


def test_kubelet_of_another_node_is_corrected_where_it_may_be_asked(
    api: PagedApi, admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    show(api, is_edited=False)
    api.objects |= {
        path: content for path, content in stored_objects(f1(is_seen=True, kubelet={"maxPods": 250})).items()
        if "kubelet-config" in path
    }  # fmt: skip
    only = ["--only", "w1/kubeletconfiguration:maxPods"]  # it is pending, and so only meant if it is named
    assert run(["change", "drift", "--correct", *only, "-o", "json", *admin]) == 10
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (node["node"], node["steps"][0]["restarts"]) == ("w1", ["kubelet"])


def test_edits_of_a_saved_snapshot_are_planned_for_without_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "snapshot.json"
    saved.write_text(snapshot_text(f4(is_seen=True)))
    for policy, touched in (("adopt", 0), ("overwrite", 1)):
        assert run(["change", "plan", "--drift", policy, "--observed", str(saved), "-o", "json"]) == 10
        assert len(json.loads(capsys.readouterr().out)["nodes"]) == touched


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["drift", "--adopt", "--correct"], "exclude each other"),
        (["drift", "--adopt", "--capture", "x"], "exclude each other"),
        (["drift", "--only", "etcd"], "add --adopt or --correct"),
        (["drift", "--correct", "--yes"], "are for --adopt"),
        (["drift", "--correct", "--only", "A B"], "names no difference"),
        (["plan", "--only", "etcd"], "--only names hand edits"),
        (["plan", "--set", "clusterName=x", "--drift", "adopt", "--only", "etcd"], "--only names hand edits"),
        (["plan", "--drift", "keep"], "say in one way what is to change"),
        (["apply", "--drift", "keep"], "say what to change"),
        (["apply", "plan.json", "--only", "etcd"], "--only names hand edits"),
    ],
)  # fmt: skip
def test_options_that_would_go_unheard_are_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["change", *words]) == 2
    assert told in capsys.readouterr().err


def test_name_that_nothing_has_is_refused(api: PagedApi, admin: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    show(api, is_edited=True)
    assert run(["change", "drift", "--correct", "--only", "etcd", *admin]) == 2
    assert "--only etcd: there is no such hand edit" in capsys.readouterr().err
