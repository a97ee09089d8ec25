"""`garboard patch lint` from the command line: inputs, outputs and exit codes."""

import io
import json
from pathlib import Path

import pytest

from garboard.cli.main import run
from garboard.documents import read_yaml

BASE = Path(__file__).parents[2] / "vectors" / "patches" / "kubeadm-base"
GOOD = "spec: {priority: 5}\n"
WRONG = "spec:\n  prioritee: 5\n"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "patches").mkdir()
    return tmp_path


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def lint(*arguments: str) -> int:
    return run(["patch", "lint", *arguments])


def test_clean_directory_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/etcd.yaml", GOOD)
    assert lint("patches") == 0
    assert capsys.readouterr() == ("", "0 errors, 0 warnings against Kubernetes v1.37.1\n")


def test_errors_exit_with_3_and_are_told_at_their_place(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/etcd.yaml", WRONG)
    assert lint("patches") == 3
    out, err = capsys.readouterr()
    assert out == (
        "patches/etcd.yaml:2:3: error[unknown-field]: PodSpec of Kubernetes 1.37 has no field 'prioritee'\n"
        "  hint: did you mean 'priority'?\n"
    )
    assert err == "1 error, 0 warnings against Kubernetes v1.37.1\n"


def test_warnings_alone_exit_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/etcd.yaml", GOOD)
    write("patches/etcd1.yaml", GOOD)
    assert lint("patches") == 0
    assert "warning[overlapping-patches]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("etcd.yaml", (), id="by its name"),
        pytest.param("my.yaml", ("--target", "etcd"), id="by a target"),
        pytest.param("my.yaml", ("--kind", "Pod"), id="by a kind"),
        pytest.param("my.yaml", ("--kind", "Pod", "--type", "merge"), id="by a kind and a type"),
    ],
)
def test_single_file_is_linted(name: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    write(name, WRONG)
    assert lint(name, *options) == 3
    assert capsys.readouterr().out.startswith(f"{name}:2:3: error[unknown-field]")


def test_type_in_the_name_of_a_single_file_counts(capsys: pytest.CaptureFixture[str]) -> None:
    write("my+json.yaml", "- {op: remove, path: /spek}")
    assert lint("my+json.yaml", "--kind", "Pod") == 3
    assert capsys.readouterr().out.startswith("my+json.yaml:1:23: error[unknown-field]")


def test_broken_single_file_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    write("etcd.yaml", "a: b: c\n")
    assert lint("etcd.yaml") == 3
    assert capsys.readouterr().out.startswith("etcd.yaml:1:5: error[bad-document]")


def test_originals_show_what_the_patches_do(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/kube-apiserver.yaml", "spec: {hostNetwork: true}\n")
    assert lint("patches") == 0
    assert lint("patches", "-f", str(BASE)) == 3
    assert "error[no-change]" in capsys.readouterr().out


def test_patch_set_is_linted(capsys: pytest.CaptureFixture[str]) -> None:
    write("set.yaml", "patches: [{target: {kind: Deployment}, file: a.yaml}]")
    write("a.yaml", "spec: {replica: 1}")
    assert lint("--patch-set", "set.yaml") == 3
    assert capsys.readouterr().out.startswith("a.yaml:1:8: error[unknown-field]")


def test_other_minor_is_checked_and_what_is_new_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/etcd.yaml", "spec:\n  evictionResponders: []\n  nope: 1\n")
    assert lint("patches", "--to", "v1.36.4") == 3
    out, err = capsys.readouterr()
    lines = [line for line in out.splitlines() if not line.startswith("  hint")]
    error = "error[unknown-field]: PodSpec of Kubernetes 1.36 has no field"
    assert lines == [
        f"patches/etcd.yaml:2:3: {error} 'evictionResponders' (Kubernetes 1.37 accepts it)",
        f"patches/etcd.yaml:3:3: {error} 'nope'",
    ]
    assert err == "2 errors, 0 warnings against Kubernetes v1.36.4\n"


def test_target_that_another_minor_lacks_is_an_error_there(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/kubeproxydaemonset.yaml", "spec: {minReadySeconds: 5}")
    assert lint("patches") == 0
    assert lint("patches", "--to", "1.36") == 3
    assert "error[unknown-target]" in capsys.readouterr().out


def test_node_and_role_pick_layers() -> None:
    write("patches/garboard.yaml", "")
    write("patches/node/n1/etcd.yaml", WRONG)
    write("patches/role/worker/etcd.yaml", GOOD)
    assert lint("patches") == 3
    assert lint("patches", "--node", "n2") == 0
    assert lint("patches", "--role", "worker") == 0
    assert lint("patches", "--node", "n1") == 3


def test_output_json_and_yaml_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/etcd.yaml", WRONG)
    assert lint("patches", "-o", "json") == 3
    as_json = json.loads(capsys.readouterr().out)
    assert lint("patches", "-o", "yaml") == 3
    assert read_yaml(capsys.readouterr().out, source="output") == as_json
    assert (as_json["errors"], as_json["findings"][0]["line"], as_json["findings"][0]["column"]) == (1, 2, 3)


def test_output_sarif_has_relative_files(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/etcd.yaml", WRONG)
    assert lint("patches", "-o", "sarif") == 3
    [result] = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "patches/etcd.yaml"
    assert place["region"] == {"startLine": 2, "startColumn": 3}


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        pytest.param((), 2, "nothing to lint", id="nothing named"),
        pytest.param(("my.yaml",), 2, "does not tell what the patch is for", id="a name that says nothing"),
        pytest.param(("my.yaml", "--target", "etcd", "--kind", "Pod"), 2, "exclude each other", id="target and kind"),
        pytest.param(("my.yaml", "--target", "etc"), 2, "not a patch target", id="no target"),
        pytest.param(("my.yaml", "--kind", "Podd"), 3, "not a kind", id="no kind"),
        pytest.param(("patches", "--to", "v1.20"), 3, "not supported", id="no supported version"),
        pytest.param(("absent",), 1, "absent", id="no such file"),
    ],
)
def test_bad_usage_is_told(
    arguments: tuple[str, ...], code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("my.yaml", GOOD)
    assert lint(*arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert text in err


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert lint("--help") == 0
    assert "Example: garboard patch lint" in capsys.readouterr().out


def test_stdin_is_read_once_for_two_minors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"spec: {evictionResponders: []}")))
    assert lint("-", "--target", "etcd", "--to", "v1.36.4") == 3
    assert "(Kubernetes 1.37 accepts it)" in capsys.readouterr().out
