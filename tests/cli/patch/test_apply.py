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


@pytest.mark.parametrize("patch", ["", "  \n"])
def test_merge_patch_without_content_is_refused_as_by_kubectl(
    patch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Folder(tmp_path, POD).apply(patch, "--type", "merge") == 3
    assert "a merge patch must be a mapping" in capsys.readouterr().err


@pytest.mark.parametrize("type_", ["strategic", "json"])
def test_comment_only_patch_is_the_same_for_lint_and_diff(
    type_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "original.yaml").write_text(POD)
    (tmp_path / f"kube-scheduler+{type_}.yaml").write_text("# spec: {priority: 7}\n")
    original, patch = str(tmp_path / "original.yaml"), str(tmp_path / f"kube-scheduler+{type_}.yaml")
    assert run(["patch", "lint", patch, "-f", original]) == 0
    assert run(["patch", "diff", "-f", original, "--type", type_, "--patch-file", patch]) == 0
    assert capsys.readouterr().out == ""


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


def test_patch_on_the_line_is_applied_as_by_kubectl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Folder(tmp_path, POD)
    assert folder.apply_with("-p", "spec: {priority: 7}") == 0
    assert "priority: 7" in capsys.readouterr().out
    assert folder.apply_with("-p", '[{"op": "remove", "path": "/spec/nope"}]', "--type", "json") == 3
    assert "error[path-missing]: -p:1:" in capsys.readouterr().err
    assert folder.apply_with("-p", "  ") == 2
    assert folder.apply_with("-p", "a: 1", "--patch-file", "x") == 2


SET = """\
apiVersion: garboard.dev/v1alpha1
kind: PatchSet
patches:
- target: {kind: Pod}
  type: strategic
  patch: |
    spec: {hostNetwork: false}
"""


@pytest.fixture
def api_server() -> str:
    return str(Path(__file__).parents[3] / "examples/patches/manifests/kube-apiserver.yaml")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["-p", "spec: {hostNetwork: false}"], id="-p"),
        pytest.param(["-p", "spec: {hostNetwork: false}", "--target", "kube-apiserver"], id="-p with its target"),
        pytest.param(["--patch-file", "patch.yaml"], id="--patch-file"),
        pytest.param(["--patch-set", "set.yaml"], id="--patch-set"),
    ],
)
@pytest.mark.parametrize("command", ["apply", "diff"])
def test_result_is_judged_however_the_patch_is_given(
    command: str,
    words: list[str],
    api_server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("patch.yaml").write_text("spec: {hostNetwork: false}\n")
    Path("set.yaml").write_text(SET)
    assert run(["patch", command, "-f", api_server, *words]) == 3
    assert capsys.readouterr().err.startswith("error[host-network-off]: ")
    assert run(["patch", command, "-f", api_server, *words, "--accept", "host-network-off"]) == 0
    assert "note[host-network-off]: " in capsys.readouterr().err
    assert run(["patch", command, "-f", api_server, *words, "--compat"]) == 0


def test_result_is_judged_in_lint_of_a_patch_set(
    api_server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "set.yaml").write_text(SET)
    assert run(["patch", "lint", "--patch-set", str(tmp_path / "set.yaml"), "-f", api_server]) == 3
    assert "error[host-network-off]" in capsys.readouterr().out


def test_code_that_cannot_be_accepted_is_refused(api_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["patch", "apply", "-f", api_server, "-p", "spec: {priority: 7}", "--accept", "missing-volume"]
    assert run(words) == 2
    assert "missing-volume cannot be accepted" in capsys.readouterr().err


@pytest.mark.parametrize("mode", [(), ("--compat",)], ids=["strict", "compat"])
def test_merge_patch_file_without_content_is_refused(
    mode: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "patch.yaml").write_text("\n")
    words = ["--type", "merge", "-f", str(tmp_path / "pod.yaml"), "--patch-file", str(tmp_path / "patch.yaml")]
    assert run(["patch", "apply", *mode, *words]) == 3
    assert capsys.readouterr().out == ""
