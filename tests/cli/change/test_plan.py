"""`change plan`: its answers, its statuses, and what it refuses."""

import json
from pathlib import Path

import pytest

from garboard.change.snapshot import snapshot_text
from garboard.cli.main import run
from garboard.documents import read_yaml
from tests.support.change.snapshots import f1, f4


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    path = tmp_path / "snapshot.json"
    path.write_text(snapshot_text(f1()))
    return path


def plan(snapshot: Path, *words: str) -> int:
    return run(["change", "plan", "--observed", str(snapshot), *words])


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--set", "clusterName=kubernetes"), 0),
        (("--set", "apiServer.extraArgs[profiling]=false"), 10),
        (("--set", "KubeletConfiguration:maxPods=20", "--accept", "shrinks-capacity"), 10),
        (("--set", "apiServer.extraArgs[anonymous-auth]=false"), 11),
        (("--set", "clusterName=blue"), 11),
        (("--set", "clusterName=blue", "--accept", "cluster-name,critical-flag-changed"), 10),
        (("--unset", "controlPlaneEndpoint"), 11),
    ],
)
def test_the_status_says_whether_there_is_something_to_do(
    words: tuple[str, ...], status: int, snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(snapshot, *words) == status
    assert capsys.readouterr().err == ""


def test_json_has_exactly_the_documented_members(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(snapshot, "--set", "apiServer.extraArgs[profiling]=false", "-o", "json") == 10
    found = json.loads(capsys.readouterr().out)
    assert [*found] == ["apiVersion", "kind", "verdict", "digest", "attributes", "nodes", "objects", "followUps"]
    assert (found["apiVersion"], found["kind"]) == ("change.garboard.dev/v1alpha1", "ChangePlan")
    assert [*found["attributes"][0]] == ["path", "from", "to", "verdict", "code", "reason", "route"]
    assert [*found["nodes"][0]] == ["node", "steps"]
    assert [*found["nodes"][0]["steps"][0]] == ["phase", "title", "cause", "files", "restarts"]
    assert [*found["nodes"][0]["steps"][0]["files"][0]] == ["path", "diff", "assumed"]


@pytest.mark.parametrize("is_seen", [False, True], ids=["off the node", "on the node"])
def test_files_that_nobody_saw_are_marked_as_assumed(
    is_seen: bool, snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot.write_text(snapshot_text(f1(is_seen=is_seen)))
    words = ("--set", "apiServer.extraArgs[profiling]=false", "--set", "KubeletConfiguration:maxPods=250")
    assert plan(snapshot, *words, "-o", "json") == 10
    found = json.loads(capsys.readouterr().out)
    files = [file for node in found["nodes"] for step in node["steps"] for file in step["files"]]
    assert {each["path"] for each in files} == {
        "/etc/kubernetes/manifests/kube-apiserver.yaml", "/var/lib/kubelet/config.yaml",
    }  # fmt: skip
    assert {each["assumed"] for each in files} == {not is_seen}


def test_yaml_says_the_same_as_json(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--set", "KubeletConfiguration:maxPods=250")
    plan(snapshot, *words, "-o", "json")
    as_json = json.loads(capsys.readouterr().out)
    plan(snapshot, *words, "-o", "yaml")
    assert read_yaml(capsys.readouterr().out, source="stdout") == as_json


def test_equal_requests_give_equal_bytes(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = []
    for output in ("json", "json", "text", "text"):
        plan(snapshot, "--set", "imageRepository=mirror.example.com/k8s", "-o", output)
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    assert answers[2] == answers[3]


def test_a_patch_is_a_file_or_the_text_itself(
    snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '{"kind": "KubeProxyConfiguration", "mode": "nftables"}'
    (tmp_path / "patch.yaml").write_text(text)
    answers = []
    for given in (text, str(tmp_path / "patch.yaml"), "kind: KubeProxyConfiguration\nmode: nftables\n"):
        assert plan(snapshot, "--patch", given) == 10
        answers.append(capsys.readouterr().out)
    assert len(set(answers)) == 1


def test_a_json_patch_needs_its_type_and_kind(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '[{"op": "add", "path": "/maxPods", "value": 250}]'
    assert plan(snapshot, "--patch", text, "--type", "json", "--kind", "KubeletConfiguration", "-o", "json") == 10
    assert json.loads(capsys.readouterr().out)["attributes"][0]["path"] == "KubeletConfiguration:maxPods"


def test_a_new_version_names_what_it_takes_away(
    tmp_path: Path, snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot.write_text(snapshot_text(f1(kubelet={"maxPods": 250})))
    (tmp_path / "new.yaml").write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")
    assert plan(snapshot, "-f", str(tmp_path / "new.yaml"), "-o", "json") == 10
    found = json.loads(capsys.readouterr().out)["attributes"]
    assert [(each["path"], each["from"], each["to"], each["code"]) for each in found] == [
        ("KubeletConfiguration:maxPods", 250, None, "implied-removal")
    ]
    assert "--accept implied-removal" in found[0]["route"]


def test_a_directory_of_patches_is_planned_for_the_nodes_that_it_changes(
    tmp_path: Path, snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches" / "kube-scheduler.yaml").write_text("metadata: {annotations: {a: b}}\n")
    assert plan(snapshot, "--patches", str(tmp_path / "patches"), "-o", "json") == 10
    found = json.loads(capsys.readouterr().out)
    assert found["attributes"][0]["path"] == "patches"
    assert [each["node"] for each in found["nodes"]] == ["cp1"]
    assert found["nodes"][0]["steps"][0]["restarts"] == ["kube-scheduler"]
    assert [each["name"] for each in found["objects"]] == ["garboard-patches"]


def test_file_of_patches_that_nothing_reads_is_told(
    tmp_path: Path, snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patches = tmp_path / "patches"
    patches.mkdir()
    (patches / "kube-scheduler.yaml").write_text("metadata: {annotations: {a: b}}\n")
    (patches / "README.md").write_text("about these\n")
    assert plan(snapshot, "--patches", str(patches)) == 10
    assert capsys.readouterr().err == ""
    (patches / "kube-apisever.yaml").write_text("metadata: {annotations: {a: b}}\n")
    assert plan(snapshot, "--patches", str(patches)) == 10
    assert capsys.readouterr().err == (
        "warning: kube-apisever.yaml: Kubernetes 1.37 has no patch target 'kube-apisever': the file is ignored; "
        "did you mean 'kube-apiserver'?\n"
    )


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        ((), 2, "usage"),
        (("--set", "a=b", "--patches", "d"), 2, "usage"),
        (("--set", "apiServer.extraArg[x]=1"), 2, "usage"),
        (("--set", "networking.podSubnet=nonsense"), 3, "invalid-configuration"),
        (("--patch", '{"kind": "Pod"}'), 3, "unsupported-kind"),
        (("--patch", '{"kind": "KubeletConfiguration", "maxPod": 3}'), 3, "invalid-configuration"),
        (("--patch", "{kind: KubeletConfiguration, maxPods: 1, maxPods: 2}"), 3, "repeated-key"),
        (("--set", "clusterName=x", "--accept", "nonsense"), 2, "usage"),
        (("--set", "clusterName=x", "--accept", "use-upgrade"), 2, "usage"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: tuple[str, ...], status: int, error: str, snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(snapshot, *words) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error[{error}]: ")


def test_text_tells_what_is_done_and_why(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot.write_text(snapshot_text(f4()))
    plan(snapshot, "--set", "apiServer.extraArgs[event-ttl]=2h", "--accept", "hand-edit")
    text = capsys.readouterr().out
    assert "[static-pods/kube-apiserver] replace kube-apiserver, restarts kube-apiserver" in text
    assert "# apiServer.extraArgs[event-ttl] changed" in text
    assert "+    - --event-ttl=2h" in text
    assert text.splitlines()[-1].startswith("plan: advice; 1 node, 1 object; restarts: kube-apiserver on 1 node;")


@pytest.mark.parametrize("output", ["text", "json", "yaml", "html"])
def test_password_of_a_proxy_is_in_no_plan(
    output: str, snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patch = tmp_path / "patch.yaml"
    patch.write_text(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"
        "apiServer: {extraEnvs: [{name: HTTPS_PROXY, value: 'http://u:planted@proxy:3128'}]}\n"
    )
    assert plan(snapshot, "--patch", str(patch), "-o", output) == 10
    shown = capsys.readouterr().out
    assert "proxy:3128" in shown
    assert "planted" not in shown
