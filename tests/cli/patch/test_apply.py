"""`patch apply` beside kubectl and kubeadm where the shared vectors are silent (facts from running both)."""

import io
import json
from pathlib import Path

import pytest

from garboard.cli.main import run

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-scheduler}\nspec: {containers: [{name: a, image: b}]}\n"


class Folder:
    """Files to patch, and the two forms of patching them."""

    def __init__(self, path: Path, original: str) -> None:
        self.path = path
        (path / "original.yaml").write_text(original)

    def apply(self, patch: str, *options: str) -> int:
        (self.path / "patch.yaml").write_text(patch)
        return self.apply_with("--patch-file", str(self.path / "patch.yaml"), *options)

    def apply_directory(self, patch: str, target: str = "kube-scheduler") -> int:
        (self.path / "patches").mkdir()
        (self.path / "patches" / f"{target}+merge.yaml").write_text(patch)
        return self.apply_with("--patches", str(self.path / "patches"), "--target", target)

    def apply_with(self, *options: str) -> int:
        return run(["patch", "apply", "--compat", "-f", str(self.path / "original.yaml"), *options])


@pytest.mark.parametrize("original", ["", "# nothing\n", "---\n---\n"])
@pytest.mark.parametrize("type_", ["merge", "json", "strategic"])
def test_original_without_a_document_is_refused(
    original: str, type_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Folder(tmp_path, original).apply("a: b", "--type", type_) == 3
    assert "holds no document" in capsys.readouterr().err


@pytest.mark.parametrize("named", [[], ["--kind", "CustomResourceDefinition"]])
def test_custom_resource_definition_has_no_type_to_kubectl(
    named: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
    assert Folder(tmp_path, definition).apply("metadata: {labels: {a: b}}", *named) == 3
    assert capsys.readouterr().err.startswith("error[unsupported-kind]: ")


@pytest.mark.parametrize("type_", ["merge", "strategic", "STRATEGIC"])
def test_integer_beyond_int64_is_rounded(type_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Folder(tmp_path, POD).apply("x: 18446744073709551615", "--type", type_, "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["x"] == 18446744073709552000


def test_every_document_of_a_stream_is_patched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Folder(tmp_path, f"{POD}---\n# no object\n---\n{POD}").apply("spec: {priority: 7}") == 0
    assert capsys.readouterr().out.count("priority: 7") == 2


@pytest.mark.parametrize("kind", ["v1 Secret", "apps/v1 Deployment", "policy/v1 Eviction"])
def test_static_pod_of_another_api_kind_stays_unpatched(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api_version, name = kind.split()
    patch = f"apiVersion: {api_version}\nkind: {name}\nmetadata: {{labels: {{a: b}}}}\n"
    assert Folder(tmp_path, POD).apply_directory(patch) == 0
    out = capsys.readouterr().out
    assert "kind: Pod" in out
    assert "labels" not in out


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param("kind: Podd", id="no such kind"),
        pytest.param("{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration}", id="a configuration"),
        pytest.param("{apiVersion: audit.k8s.io/v1, kind: Event}", id="not an object of the API"),
        pytest.param("{kind: ConfigMap, data: {a: 5}}", id="an object that does not decode"),
    ],
)
def test_static_pod_that_no_longer_decodes_is_refused(
    patch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Folder(tmp_path, POD).apply_directory(patch) == 3
    assert capsys.readouterr().err.startswith("error[typed-decode]: ")


@pytest.mark.parametrize("patch", ["kind: null", "apiVersion: null", "{apiVersion: '', kind: ''}"])
def test_addon_without_a_kind_is_what_its_target_says(
    patch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: coredns}\n"
    assert Folder(tmp_path, deployment).apply_directory(patch, target="corednsdeployment") == 0
    assert capsys.readouterr().out.startswith("apiVersion: apps/v1\nkind: Deployment\n")


def test_order_of_layers_and_documents_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Folder(tmp_path, POD)
    patches = {
        "garboard.yaml": "",
        "node/n1/kube-scheduler.yaml": "spec: {priority: 4}\n",
        "common/kube-scheduler.yaml": "spec: {priority: 1}\n---\nspec: {priority: 2}\n",
        "role/worker/kube-scheduler+merge.yaml": "spec: {priority: 3}\n",
        "role/control-plane/kube-scheduler.yaml": "spec: {priority: 5}\n",
    }
    for name, text in patches.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    layers = ["--patches", f"{tmp_path}/tree", "--target", "kube-scheduler", "--node", "n1", "--role", "worker"]
    assert folder.apply_with(*layers) == 0
    told = capsys.readouterr().err.replace(f"{tmp_path}/tree/", "").splitlines()
    assert told == [
        "[patches] ignored role/control-plane/kube-scheduler.yaml: the layer of another role than worker",
        "[patches] applied common/kube-scheduler.yaml (strategic)",
        "[patches] applied common/kube-scheduler.yaml#2 (strategic)",
        "[patches] applied role/worker/kube-scheduler+merge.yaml (merge)",
        "[patches] applied node/n1/kube-scheduler.yaml (strategic)",
    ]


@pytest.mark.parametrize(
    ("type_", "patch"),
    [
        ("merge", "spec: {priority: 7}"),
        ("strategic", "spec: {priority: 7}"),
        ("json", "[{op: add, path: /spec/priority, value: 7}]"),
    ],
)
def test_patch_is_read_from_stdin(
    type_: str, patch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(patch.encode())))
    assert Folder(tmp_path, POD).apply_with("--patch-file", "-", "--type", type_) == 0
    assert "priority: 7" in capsys.readouterr().out


def test_stdin_is_not_read_for_two_purposes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "apply", "-f", "-", "--patch-file", "-"]) == 2
    assert capsys.readouterr().err.startswith("error[usage]: stdin")
