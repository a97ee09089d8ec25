"""`patch diff` and `patch lint` with --config: everything rendered and patched at once, and beside the node's disk."""

import json
from pathlib import Path

import pytest

from garboard.cli.main import run

CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint:
  advertiseAddress: 192.0.2.10
nodeRegistration:
  name: cp1
  criSocket: unix:///run/crio/crio.sock
patches:
  directory: patches
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
"""
FILES = {
    "garboard.yaml": "",
    "kube-apiserver+args.yaml": "profiling: false\n",
    "kubeletconfiguration.yaml": "maxPods: 60\n",
    "role/worker/kubeletconfiguration.yaml": "maxPods: 70\n",
    "node/cp2/kube-scheduler.yaml": "metadata: {labels: {team: a}}\n",
}
MANIFESTS = Path(__file__).parents[3] / "examples" / "patches" / "manifests"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kubeadm.yaml").write_text(CONFIG)
    for name, text in FILES.items():
        path = tmp_path / "patches" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def changed(out: str) -> list[str]:
    """Return the lines that a diff adds."""
    return [line[1:].strip() for line in out.splitlines() if line.startswith("+") and not line.startswith("+++")]


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        pytest.param([], ["- --profiling=false", "maxPods: 60"], id="the node of the configuration"),
        pytest.param(
            ["--node", "cp2"], ["- --profiling=false", "team: a", "maxPods: 60"], id="another control-plane node"
        ),
        pytest.param(["--role", "worker", "--node", "w1"], ["maxPods: 70"], id="a worker has a kubelet only"),
        pytest.param(["--target", "kubeletconfiguration"], ["maxPods: 60"], id="one target"),
    ],
)
def test_everything_that_a_node_has_is_rendered_and_patched(
    options: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["patch", "diff", "--config", "kubeadm.yaml", *options]) == 0
    assert changed(capsys.readouterr().out) == lines


@pytest.mark.parametrize("command", [["diff"], ["lint"], ["new", "etcd"]], ids=str)
def test_warnings_about_the_configuration_are_shown_once(
    command: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "kubeadm.yaml").write_text(CONFIG + "clusterNam: x\n")
    assert run(["patch", *command, "--config", "kubeadm.yaml"]) == 0
    assert capsys.readouterr().err.count('unknown field "clusterNam"') == 1


def test_only_the_user_s_patches_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "diff", "--config", "kubeadm.yaml"]) == 0
    out, err = capsys.readouterr()
    assert "containerRuntimeEndpoint" not in "".join(changed(out))
    assert "instance-config" not in err


def test_directory_on_the_line_counts_instead_of_the_configuration_s(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "etcd.yaml").write_text("metadata: {labels: {team: b}}\n")
    assert run(["patch", "diff", "--config", "kubeadm.yaml", "--patches", "other"]) == 0
    assert changed(capsys.readouterr().out) == ["team: b"]


def test_apply_prints_all_that_is_rendered(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "apply", "--config", "kubeadm.yaml"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n---\n") == 6
    assert "kind: DaemonSet" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["diff"], "name manifests with -f, or render them with --config", id="nothing"),
        pytest.param(["diff", "--config", "kubeadm.yaml", "-f", "x"], "exclude each other", id="both"),
        pytest.param(["diff", "--config", "kubeadm.yaml", "-p", "a: 1"], "goes with --patches", id="one patch"),
        pytest.param(["diff", "-f", "x", "--live"], "--live needs --config", id="live without a configuration"),
        pytest.param(
            ["diff", "--config", "kubeadm.yaml", "--role", "worker", "--target", "etcd"], "a worker has no etcd",
            id="a target of others",
        ),
        pytest.param(["explain", "--config", "kubeadm.yaml"], "garboard config explain TARGET", id="explain"),
        pytest.param(["lint", "x", "--config", "kubeadm.yaml", "-f", "x"], "exclude each other", id="lint both"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_bad_usage(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["patch", *arguments]) == 2
    assert said in capsys.readouterr().err


# The disk of a node, below --rootfs


@pytest.fixture
def node(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A node whose files are as kubeadm would have written them with the patches."""
    (folder / "etc/kubernetes/manifests").mkdir(parents=True)
    (folder / "var/lib/kubelet").mkdir(parents=True)
    (folder / "tmp").mkdir()
    rendered = ["patch", "apply", "--config", "/kubeadm.yaml", "--patches", "/patches", "--rootfs", str(folder)]
    assert run([*rendered, "-o", "json"]) == 0
    decoder, text = json.JSONDecoder(), capsys.readouterr().out
    while text:
        document, end = decoder.raw_decode(text)
        text = text[end:].lstrip()
        name = document.get("metadata", {}).get("name")
        path = "var/lib/kubelet/config.yaml" if name is None else f"etc/kubernetes/manifests/{name}.yaml"
        if document["kind"] not in ("Deployment", "DaemonSet"):
            (folder / path).write_text(json.dumps(document))
    return folder


def live(node: Path, *options: str) -> int:
    return run(["patch", "diff", "--config", "/kubeadm.yaml", "--patches", "/patches", "--live", "--exit-code",
                "--rootfs", str(node), *options])  # fmt: skip


def states(err: str) -> dict[str, str]:
    lines = [line.removeprefix("[live] ").partition(" ") for line in err.splitlines() if line.startswith("[live]")]
    return {path.rpartition("/")[2]: state for path, _, state in lines}


def test_patched_files_are_recognised(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert live(node) == 0
    out, err = capsys.readouterr()
    assert set(states(err).values()) == {"is as rendered and patched"}
    assert len(states(err)) == 5
    assert changed(out) == ["- --profiling=false", "maxPods: 60"]


def test_each_file_is_told_three_ways(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifests = node / "etc/kubernetes/manifests"
    (manifests / "etcd.yaml").unlink()
    api_server = (manifests / "kube-apiserver.yaml").read_text()
    (manifests / "kube-apiserver.yaml").write_text(api_server.replace(', "--profiling=false"', ""))
    scheduler = manifests / "kube-scheduler.yaml"
    scheduler.write_text(scheduler.read_text().replace("--leader-elect=true", "--leader-elect=false"))
    assert live(node) == 1
    out, err = capsys.readouterr()
    assert states(err) == {
        "etcd.yaml": "is not there",
        "kube-apiserver.yaml": "is as rendered: the patches are not applied yet",
        "kube-controller-manager.yaml": "is as rendered and patched",
        "kube-scheduler.yaml": "differs from what is rendered and patched",
        "config.yaml": "is as rendered and patched",
    }
    assert "+++ /etc/kubernetes/manifests/kube-scheduler.yaml (on disk)" in out
    assert "- --leader-elect=false" in changed(out)


# Manifests that find their targets


def test_manifests_of_a_folder_find_their_patches(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "patches" / "kubeletconfiguration.yaml").unlink()
    assert run(["patch", "diff", "-f", str(MANIFESTS), "--patches", "patches"]) == 0
    assert changed(capsys.readouterr().out) == ["- --profiling=false"]


def test_several_documents_of_one_file_find_their_patches(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [(MANIFESTS / f"{name}.yaml").read_text() for name in ("kube-apiserver", "kube-scheduler")]
    (folder / "both.yaml").write_text("---\n".join(texts))
    options = ["--patches", "patches", "--node", "cp2", "--role", "control-plane"]
    assert run(["patch", "diff", "-f", "both.yaml", *options]) == 0
    assert changed(capsys.readouterr().out) == ["- --profiling=false", "team: a"]


def test_manifest_without_a_target_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "web.yaml").write_text("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n")
    assert run(["patch", "diff", "-f", "web.yaml", "--patches", "patches"]) == 3
    assert "error[wrong-target]: web.yaml is nothing that kubeadm patches" in capsys.readouterr().err


def test_manifest_that_is_patched_already_is_recognised(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "apply", "-f", str(MANIFESTS / "kube-apiserver.yaml"), "--patches", "patches"]) == 0
    (folder / "patched.yaml").write_text(capsys.readouterr().out)
    assert run(["patch", "diff", "-f", "patched.yaml", "--patches", "patches"]) == 3
    err = capsys.readouterr().err
    assert "error[no-change]: patched.yaml is already patched" in err
    assert "--config kubeadm.yaml" in err


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        pytest.param("spec: {hostNetwrk: true}\n", "error[unknown-field]", id="a misspelt field"),
        pytest.param("metadata: {labels: {teir: null}}\n", "error[zero-match]", id="nothing to remove"),
    ],
)
def test_patch_that_cannot_change_anything_is_not_taken_for_applied(
    patch: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "one").mkdir()
    (folder / "one" / "kube-scheduler.yaml").write_text(patch)
    assert run(["patch", "diff", "-f", str(MANIFESTS / "kube-scheduler.yaml"), "--patches", "one"]) == 3
    assert said in capsys.readouterr().err


# Lint


def test_lint_tries_the_patches_on_what_is_rendered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "lint", "--config", "kubeadm.yaml"]) == 0
    (folder / "patches" / "etcd.yaml").write_text("spec: {nodeName: null}\n")
    (folder / "patches" / "kube-scheduler+json.yaml").write_text("- {op: remove, path: /spec/nodeName}\n")
    assert run(["patch", "lint", "--config", "kubeadm.yaml"]) == 3
    out = capsys.readouterr().out
    assert "patches/etcd.yaml:1:8: error[zero-match]" in out
    assert "patches/kube-scheduler+json.yaml:1:16: error[path-missing]" in out


def test_lint_takes_the_version_of_the_configuration(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "kubeadm.yaml").write_text(CONFIG.replace("v1.37.1", "v1.36.4"))
    assert run(["patch", "lint", "--config", "kubeadm.yaml"]) == 0
    assert "against Kubernetes v1.36.4" in capsys.readouterr().err


def test_lint_without_any_directory_says_how_to_name_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "kubeadm.yaml").write_text(CONFIG.replace("patches:\n  directory: patches\n", ""))
    assert run(["patch", "lint", "--config", "kubeadm.yaml"]) == 2
    assert "set patches.directory in InitConfiguration" in capsys.readouterr().err


# How a diff is shown


def test_stat_counts_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "diff", "--config", "kubeadm.yaml", "--stat"]) == 0
    assert capsys.readouterr().out == (
        " kube-apiserver (from kubeadm.yaml)       |    1 +\n"
        " kubeletconfiguration (from kubeadm.yaml) |    1 +\n"
        " 2 documents changed, 2 lines added, 0 removed\n"
    )


def test_context_is_as_wide_as_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "diff", "--config", "kubeadm.yaml", "-U", "0", "--target", "kubeletconfiguration"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


@pytest.mark.parametrize(("color", "is_colored"), [("always", True), ("never", False), ("auto", False)])
def test_color_is_for_terminals_or_those_who_ask(
    color: str, is_colored: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR")
    assert run(["patch", "diff", "--config", "kubeadm.yaml", "--color", color]) == 0
    assert ("\x1b[32m+" in capsys.readouterr().out) is is_colored
