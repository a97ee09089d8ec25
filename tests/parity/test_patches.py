"""The real kubeadm and kubectl beside `garboard patch apply --compat`: the same bytes, and the same refusals."""

import json
from pathlib import Path

import pytest

from garboard.cli.main import run
from garboard.documents import Json
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from tests.support.parity.kubeadm import Kubeadm
from tools.harness.answers import Answers

pytestmark = pytest.mark.real

DIRECTORIES: dict[str, dict[str, str]] = {
    "no patch": {},
    "the three types in walk order": {
        "kube-scheduler0.yaml": "spec:\n  priority: 7\n  containers:\n  - name: kube-scheduler\n    tty: true\n",
        "kube-scheduler1+merge.yaml": "metadata: {annotations: {team: a}}\n---\nmetadata: {labels: {tier: null}}\n",
        "kube-scheduler2+json.json": '[{"op": "add", "path": "/spec/containers/0/command/-", "value": "--v=4"}]',
    },
    "new containers go first, quantities are rewritten, unknown fields vanish": {
        "kube-scheduler.yaml": "nonsense: 1\nspec:\n  containers:\n  - name: side\n    image: x\n    resources:\n"
        "      limits: {cpu: 0.5, memory: 1024Mi}\n    environment: x\n",
    },
    "directives": {
        "kube-scheduler+strategic.yaml": "spec:\n  $retainKeys: [containers, hostNetwork, volumes]\n"
        "  volumes:\n  - {name: kubeconfig, $patch: delete}\n",
    },
    "sub-folders and ignored files": {
        "b/kube-scheduler.yaml": "spec: {priority: 2}\n",
        "a/kube-scheduler.yaml": "spec: {priority: 1}\n",
        "kube-scheduler.yml": "spec: {priority: 3}\n",
        "README.md": "hello",
    },
    "replace that adds": {
        "kube-scheduler+json.yaml": "- {op: replace, path: /metadata/annotations, value: {a: b}}\n",
    },
    "another kind is discarded": {"kube-scheduler+merge.yaml": "kind: ConfigMap\n"},
    "wrong type": {"kube-scheduler.yaml": "spec: {priority: high}\n"},
    "missing merge key": {"kube-scheduler.yaml": "spec: {containers: [{image: x}]}\n"},
    "broken file of another target": {"etcd.yaml": "a: [\n"},
    "unknown type": {"kube-scheduler+patch.yaml": "a: 1\n"},
    "comment before the first separator of a merge patch": {"kube-scheduler+merge.yaml": "# note\n---\nspec: {}\n"},
}


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
@pytest.mark.parametrize("files", DIRECTORIES.values(), ids=list(DIRECTORIES))
def test_patch_directory_gives_what_kubeadm_writes(
    files: dict[str, str],
    version: KubernetesVersion,
    binaries: Binaries,
    answers: Answers,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kubeadm = Kubeadm(binaries.locate("kubeadm", str(version)), str(version), answers)
    base, patched = tmp_path / "base", tmp_path / "patched"
    for etc in (base, patched):
        (etc / "patches").mkdir(parents=True)
    for name, text in files.items():
        (patched / "patches" / name).parent.mkdir(exist_ok=True)
        (patched / "patches" / name).write_text(text)
    assert write_scheduler(kubeadm, base) == 0
    theirs = write_scheduler(kubeadm, patched)
    manifest = Path("kubernetes", "manifests", "kube-scheduler.yaml")
    form = ["patch", "apply", "--compat", "--target", "kube-scheduler", "-f", str(base / manifest), "-o", "yaml"]
    ours = run([*form, "--patches", str(patched / "patches"), "--kubernetes-version", str(version)])
    out, err = capsys.readouterr()
    assert (ours == 0) == (theirs == 0), err
    if theirs == 0:
        assert out == (patched / manifest).read_text()


def write_scheduler(kubeadm: Kubeadm, etc: Path) -> int:
    """Let kubeadm write the scheduler's manifest below `etc`, with the patches there."""
    init: dict[str, Json] = {
        "patches": {"directory": "/etc/patches"},
        "localAPIEndpoint": {"advertiseAddress": "192.0.2.1"},
    }
    config = kubeadm.write_config(etc, init, {})
    return kubeadm.run(etc, "init", "phase", "control-plane", "scheduler", "--config", config).returncode


DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"a": "1"}, "finalizers": ["x", "y"]},
    "spec": {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "template": {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}, {"name": "b"}]}},
    },
}
KUBECTL_CASES: list[tuple[str, Json]] = [
    ("strategic", {"spec": {"template": {"spec": {"containers": [{"name": "z"}, {"name": "b", "image": "x"}]}}}}),
    ("strategic", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
    ("strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"], "labels": {"a": None}}}),
    ("strategic", {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}),
    ("strategic", {"spec": {"strategy": {"$patch": "merge"}}}),
    ("merge", {"metadata": {"labels": None, "annotations": {"a": "<&>"}}}),
    ("json", [{"op": "replace", "path": "/spec/replicas", "value": 3}]),
    ("json", [{"op": "add", "path": "/metadata/finalizers/-1", "value": "z"}]),
    ("json", [{"op": "remove", "path": "/spec/nothing"}]),
    ("json", [{"op": "test", "path": "/metadata/name", "value": "other"}]),
]


@pytest.mark.parametrize("output", ["json", "yaml"])
@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
@pytest.mark.parametrize(("type_", "patch"), KUBECTL_CASES)
def test_single_patch_gives_what_kubectl_prints(
    type_: str,
    patch: Json,
    version: KubernetesVersion,
    output: str,
    binaries: Binaries,
    answers: Answers,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    original, patch_file = tmp_path / "original.json", tmp_path / "patch.json"
    original.write_text(json.dumps(DEPLOYMENT))
    patch_file.write_text(json.dumps(patch))
    form = ["--type", type_, "-f", str(original), "--patch-file", str(patch_file), "-o", output]
    kubectl = binaries.locate("kubectl", str(version))
    # It is given the same in its arguments and its input, by which its answer is kept.
    given = ("--type", type_, "-f", "-", "--patch", patch_file.read_text(), "-o", output)
    theirs = answers.run(kubectl, "patch", "--local", *given, stdin=original.read_text())
    ours = run(["patch", "apply", "--compat", *form, "--kubernetes-version", str(version)])
    out, err = capsys.readouterr()
    assert (ours == 0) == (theirs.returncode == 0), err + theirs.stderr
    assert out == theirs.stdout
