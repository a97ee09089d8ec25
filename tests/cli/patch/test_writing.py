"""Commands that write: new patches, captured ones, and patched files."""

import json
import re
import shlex
from pathlib import Path

import pytest

from garboard.cli.main import run
from garboard.documents import read_yaml

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "examples" / "patches" / "manifests"
SCHEDULER = (MANIFESTS / "kube-scheduler.yaml").read_text()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "original.yaml").write_text(SCHEDULER)
    return tmp_path


# new


def test_new_patch_is_written_under_the_name_that_kubeadm_knows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "patches").mkdir()
    command = ["patch", "new", "kube-scheduler", "-f", "original.yaml", "--out", "patches"]
    assert run(command) == 0
    assert run([*command, "--type", "args"]) == 0
    assert sorted(each.name for each in (folder / "patches").iterdir()) == [
        "kube-scheduler+args.yaml",
        "kube-scheduler.yaml",
    ]
    assert run(command) == 1
    assert "error[exists]: patches/kube-scheduler.yaml is there already" in capsys.readouterr().err


def test_new_patch_begins_from_the_disk_of_the_node(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "etc/kubernetes/manifests").mkdir(parents=True)
    command = ["patch", "new", "kube-scheduler", "spec.hostNetwork", "--rootfs", str(folder)]
    assert run(command) == 1
    assert "render it with --config" in capsys.readouterr().err
    assert run(["patch", "new", "corednsdeployment", "--rootfs", str(folder)]) == 2
    (folder / "etc/kubernetes/manifests/kube-scheduler.yaml").write_text(SCHEDULER)
    assert run(command) == 0
    assert read_yaml(capsys.readouterr().out, source="new") == {"spec": {"hostNetwork": True}}


def test_new_patch_begins_from_what_is_rendered(capsys: pytest.CaptureFixture[str]) -> None:
    config = str(ROOT / "examples" / "patches" / "kubeadm.yaml")
    assert run(["patch", "new", "kubeletconfiguration", "clusterDomain", "--config", config]) == 0
    assert read_yaml(capsys.readouterr().out, source="new") == {"clusterDomain": "cluster.local"}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        pytest.param(["--type", "args", "leader-elct"], 2, "did you mean leader-elect?", id="flag"),
        pytest.param(["spec.containers[0].resorces"], 3, "did you mean 'resources'?", id="field"),
        pytest.param(["spec.containers.image"], 3, "spec.containers[kube-scheduler].image", id="no index"),
        pytest.param(
            ["--type", "json", "spec.hostNetwrk"], 3, "did you mean 'hostNetwork'?", id="field of a JSON patch"
        ),
    ],
)
def test_misspelt_name_in_a_new_patch_gets_a_suggestion(
    words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["patch", "new", "kube-scheduler", "-f", "original.yaml", *words]) == status
    assert said in capsys.readouterr().err


def test_version_beside_a_configuration_of_another_minor_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    config = str(ROOT / "examples" / "patches" / "kubeadm.yaml")
    for words in (["patch", "diff"], ["patch", "lint"], ["patch", "new", "etcd"], ["config", "explain", "etcd"]):
        assert run([*words, "--config", config, "--kubernetes-version", "v1.36.4"]) == 2
        assert "is for Kubernetes 1.37, and --kubernetes-version for 1.36" in capsys.readouterr().err


def test_diff_without_patches_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "kubeadm.yaml").write_text(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.37.1\n"
    )
    assert run(["patch", "diff", "--config", "kubeadm.yaml"]) == 0
    assert "[patches] there are no patches for this" in capsys.readouterr().err


def test_explain_of_an_element_without_its_index_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["patch", "explain", "spec.containers.image", "-f", "original.yaml", "-p", "spec: {nodeName: a}"]
    assert run(words) == 3
    assert "name an element: spec.containers[kube-scheduler].image" in capsys.readouterr().err
    assert run(["patch", "explain", "--help"]) == 0
    assert "--config" not in capsys.readouterr().out


# capture


def edited(folder: Path, before: str, after: str) -> list[str]:
    assert before in SCHEDULER
    (folder / "edited.yaml").write_text(SCHEDULER.replace(before, after))
    return ["patch", "capture", "--original", "original.yaml", "--modified", "edited.yaml"]


def test_edit_of_flags_alone_becomes_a_flag_patch(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = edited(folder, "--leader-elect=true", "--leader-elect=false")
    assert run([*command, "--out", "kube-scheduler-edit.yaml"]) == 0
    err = capsys.readouterr().err
    assert "wrote kube-scheduler-edit+args.yaml" in err
    assert "touch garboard.yaml" in err
    assert (folder / "kube-scheduler-edit+args.yaml").read_text() == 'leader-elect: "false"\n'


def test_order_of_flags_means_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = edited(folder, "    - --leader-elect=true\n", "    - --v=4\n    - --profiling=false\n")
    text = (folder / "edited.yaml").read_text()
    (folder / "edited.yaml").write_text(
        text.replace("    - kube-scheduler\n", "    - kube-scheduler\n    - --first=1\n")
    )
    assert run(command) == 0
    assert read_yaml(capsys.readouterr().out, source="patch") == {
        "first": "1",
        "leader-elect": None,
        "profiling": "false",
        "v": "4",
    }


def test_flag_patch_in_a_tree_needs_no_hint(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "garboard.yaml").write_text("")
    (folder / "common").mkdir()
    command = edited(folder, "--leader-elect=true", "--leader-elect=false")
    assert run([*command, "--out", "common/kube-scheduler.yaml"]) == 0
    assert "hint" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("cpu: 100m", "cpu: 50m", id="no flag"),
        pytest.param("    - --leader-elect=true\n", "    - --leader-elect=false\n    - positional\n", id="a word"),
    ],
)
def test_other_edits_become_strategic_patches(
    before: str, after: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(edited(folder, before, after)) == 0
    out = capsys.readouterr().out
    assert isinstance(read_yaml(out, source="patch"), dict)
    assert out.startswith("spec:\n  ")


@pytest.mark.parametrize("type_", ["json", "strategic", "merge"])
def test_type_that_is_asked_for_is_written(type_: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = edited(folder, "--leader-elect=true", "--leader-elect=false")
    assert run([*command, "--out", f"kube-scheduler+{type_}.yaml"]) == 0
    assert (folder / f"kube-scheduler+{type_}.yaml").exists()
    assert run([*edited(folder, "cpu: 100m", "cpu: 50m"), "--type", "args"]) == 3
    assert "error[not-expressible]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("kind: Pod", "kind: Job", "original.yaml has kind Pod, edited.yaml has kind Job"),
        ("  name: kube-scheduler\n  namespace", "  name: other\n  namespace", "edited.yaml has name other"),
    ],
)
def test_two_objects_are_no_edit(
    before: str, after: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(edited(folder, before, after)) == 3
    err = capsys.readouterr().err
    assert "error[other-object]: these are not the same object: " in err
    assert said in err


# apply


def test_apply_in_place_keeps_the_documents_of_a_file_together(folder: Path) -> None:
    (folder / "both.yaml").write_text(f"{SCHEDULER}---\n{SCHEDULER}")
    assert run(["patch", "apply", "-f", "both.yaml", "-p", "spec: {nodeName: x}", "--in-place"]) == 0
    text = (folder / "both.yaml").read_text()
    assert text.count("nodeName: x") == 2
    assert text.count("\n---\n") == 1


def test_nothing_is_written_unless_all_can_be_patched(folder: Path) -> None:
    (folder / "b.yaml").write_text("apiVersion: example.com/v1\nkind: Widget\nspec: {}\n")
    files = ["-f", "original.yaml", "-f", "b.yaml"]
    assert run(["patch", "apply", *files, "-p", "spec: {nodeName: x}", "--in-place"]) == 3
    assert (folder / "original.yaml").read_text() == SCHEDULER


def test_apply_writes_one_file_for_each_target(folder: Path) -> None:
    config = str(ROOT / "examples" / "patches" / "kubeadm.yaml")
    tree = str(ROOT / "examples" / "patches" / "tree")
    assert run(["patch", "apply", "--config", config, "--patches", tree, "--output-dir", "out"]) == 0
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "corednsdeployment.yaml", "etcd.yaml", "kube-apiserver.yaml", "kube-controller-manager.yaml",
        "kube-scheduler.yaml", "kubeletconfiguration.yaml", "kubeproxydaemonset.yaml",
    ]  # fmt: skip


def test_files_of_one_name_do_not_overwrite_each_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "original.yaml").write_text(SCHEDULER)
    files = ["-f", "original.yaml", "-f", "sub/original.yaml"]
    assert run(["patch", "apply", *files, "-p", "spec: {nodeName: x}", "--output-dir", "out"]) == 2
    assert not (folder / "out").exists()


@pytest.mark.parametrize("options", [["-f", "-"], ["-f", "original.yaml", "--output-dir", "out"]])
def test_in_place_is_for_files(options: list[str]) -> None:
    assert run(["patch", "apply", *options, "-p", "spec: {nodeName: x}", "--in-place"]) == 2


# schema and hooks


@pytest.mark.parametrize(
    "arguments", [["kube-apiserver"], ["etcd", "--type", "args"], ["--kind", "Deployment"], ["--patch-set"]], ids=str
)
def test_schema_is_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "schema", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].startswith("http://json-schema.org/draft-07")


@pytest.mark.parametrize("arguments", [[], ["etcd", "--kind", "Pod"], ["--kind", "Podd"],
                                       ["kubeletconfiguration", "--type", "args"]], ids=str)  # fmt: skip
def test_schema_of_nothing_is_bad_usage(arguments: list[str]) -> None:
    assert run(["patch", "schema", *arguments]) == 2


def test_hooks_run_commands_that_exist(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hooks = read_yaml((ROOT / ".pre-commit-hooks.yaml").read_bytes(), source="hooks")
    assert isinstance(hooks, list)
    (folder / "patches").mkdir()
    config = (ROOT / "examples" / "patches" / "kubeadm.yaml").read_text()
    (folder / "kubeadm.yaml").write_text(config)
    for hook in hooks:
        assert isinstance(hook, dict)
        words = [*shlex.split(str(hook["entry"])), *map(str, hook["args"])]  # type: ignore[arg-type]
        assert run(words[1:]) == 0, capsys.readouterr().err
        assert re.compile(str(hook["files"])).search("patches/a.yaml" if "lint" in words else "kubeadm.yaml")
