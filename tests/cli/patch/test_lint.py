"""`garboard patch lint` from the command line: inputs, outputs and exit codes."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from garboard.cli.main import run
from garboard.documents import read_yaml

BASE = Path(__file__).parents[2] / "vectors" / "patches" / "kubeadm-base"
GOOD = "spec: {terminationGracePeriodSeconds: 5}\n"
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
    assert capsys.readouterr() == ("", "0 errors, 0 warnings against Kubernetes v1.37.1, rendered by default\n")


def test_errors_exit_with_3_and_are_told_at_their_place(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/etcd.yaml", WRONG)
    assert lint("patches") == 3
    out, err = capsys.readouterr()
    assert out == (
        "patches/etcd.yaml:2:3: error[unknown-field]: PodSpec of Kubernetes 1.37 has no field 'prioritee'\n"
        "  hint: did you mean 'priority'?\n"
    )
    assert err == "1 error, 0 warnings against Kubernetes v1.37.1, rendered by default\n"


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
    assert err == "2 errors, 0 warnings against Kubernetes v1.36.4, rendered by default\n"


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
        pytest.param(("patches", "--to", "v1.20"), 2, "not supported", id="no supported version"),
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


@pytest.mark.timeout(20)
def test_named_pipe_among_the_patches_is_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("patches/etcd.yaml")
    assert lint("patches") == 3
    assert "error[not-a-file]: patches/etcd.yaml is a named pipe, not a regular file" in capsys.readouterr().out


NO_PROBE = "spec: {containers: [{name: etcd, livenessProbe: null}]}\n"


def test_danger_is_accepted_by_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/etcd.yaml", NO_PROBE)
    tried = ("patches", "-f", str(BASE / "etcd.yaml"))
    assert lint(*tried) == 3
    assert "error[probe-removed]" in capsys.readouterr().out
    assert lint(*tried, "--accept", "probe-removed") == 0
    out, err = capsys.readouterr()
    assert "note[probe-removed]: livenessProbe: kubeadm's livenessProbe is gone (accepted)\n" in out
    assert err == "0 errors, 0 warnings, 1 accepted against Kubernetes v1.37.1\n"


def test_rule_is_disabled_by_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/etcd.yaml", NO_PROBE)
    assert lint("patches", "-f", str(BASE / "etcd.yaml"), "--disable", "probe-removed") == 0
    assert capsys.readouterr().out == ""


def test_warnings_are_errors_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/etcd.yaml", GOOD)
    write("patches/etcd1.yaml", GOOD)
    assert lint("patches", "--warnings-as-errors") == 3
    assert "error[overlapping-patches]" in capsys.readouterr().out


def test_code_that_cannot_be_accepted_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/etcd.yaml", GOOD)
    assert lint("patches", "--accept", "required-field") == 2
    assert "required-field cannot be accepted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        pytest.param("kube-apiserver.yaml", "spec: {containers: null}\n", "required-field", id="validity"),
        pytest.param("kube-apiserver.yaml", "spec: {hostNetwork: false}\n", "host-network-off", id="danger"),
        pytest.param(
            "kube-apiserver.yaml",
            "spec: {containers: [{name: kube-apiserver, volumeMounts: [{name: audit, mountPath: /a}]}]}\n",
            "missing-volume",
            id="two fields",
        ),
        pytest.param("kubeletconfiguration.yaml", "staticPodPath: /other\n", "static-pods-off", id="kubelet"),
    ],
)
def test_results_are_judged_on_what_is_rendered_by_default(
    name: str, text: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(f"patches/{name}", text)
    assert lint("patches") == 3
    assert lint(f"patches/{name}") == 3
    assert capsys.readouterr().out.count(f"error[{code}]") == 2


def test_what_a_default_rendering_cannot_tell_is_not_told_and_a_patch_that_fails_on_it_is_not_judged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("patches/etcd0.yaml", "spec: {hostNetwork: true}\n")  # changes nothing there
    write("patches/etcd1+json.yaml", "- {op: remove, path: /spec/nodeSelector/disk}\n")
    write("patches/garboard.yaml", "")
    write("patches/role/worker/etcd.yaml", GOOD)
    assert lint("patches") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "[lint] patches/etcd1+json.yaml: the result is not judged: " in err
    assert "[lint] patches/role/worker/etcd.yaml: the result is not judged: such a node has no etcd" in err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kube-apiserver", "spec: {containers: [{name: apiserver, resources: {requests: {cpu: 1}}}]}"),
        ("corednsdeployment", "spec: {template: {spec: {containers: [{name: core-dns, imagePullPolicy: Always}]}}}"),
    ],
)
def test_misspelt_container_is_found_without_a_configuration(
    name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(f"patches/{name}.yaml", text)
    assert lint("patches") == 3
    assert "error[zero-match]: there is no container" in capsys.readouterr().out


CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
nodeRegistration: {name: cp1, criSocket: unix:///run/containerd/containerd.sock}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
controlPlaneEndpoint: 192.0.2.10:6443
"""


@pytest.mark.parametrize("options", [(), ("--config", "kubeadm.yaml"), ("--config", "kubeadm.yaml", "--node", "cp1")])
def test_role_and_node_of_a_tree_are_tried_together(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    write("kubeadm.yaml", CONFIG)
    write("patches/garboard.yaml", "")
    volume = "{name: audit, hostPath: {path: /var/log/audit, type: DirectoryOrCreate}}"
    mount = "{name: kube-apiserver, volumeMounts: [{name: audit, mountPath: /var/log/audit}]}"
    write("patches/role/control-plane/kube-apiserver.yaml", f"spec: {{volumes: [{volume}]}}")
    write("patches/node/cp1/kube-apiserver.yaml", f"spec: {{containers: [{mount}]}}")
    assert lint("patches", *options) == 0, capsys.readouterr().out
    write("patches/node/cp1/kube-apiserver.yaml", "spec: {volumes: [{name: audit, emptyDir: {}}]}")
    assert lint("patches", *options) == 3
    assert "error[several-sources]" in capsys.readouterr().out


def test_node_of_an_option_has_the_layer_of_its_role_as_diff_does(capsys: pytest.CaptureFixture[str]) -> None:
    write("kubeadm.yaml", CONFIG)
    write("patches/garboard.yaml", "")
    write("patches/role/control-plane/kube-apiserver.yaml", "spec: {containers: null}")
    assert lint("patches", "--config", "kubeadm.yaml", "--node", "cp2") == 3
    assert "required-field" in capsys.readouterr().out


def test_manifest_that_is_patched_already_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    write("patches/kube-scheduler0.yaml", "spec: {hostNetwork: true}")
    write("patches/kube-scheduler1.yaml", "metadata: {namespace: kube-system}")
    assert lint("patches", "-f", str(BASE / "kube-scheduler.yaml")) == 3
    out = capsys.readouterr().out
    assert out.count("error[no-change]") == 1
    assert "the document is already patched: none of the 2 patches for it changes it" in out


def test_own_member_of_etcd_is_no_danger_where_no_configuration_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    base: Any = read_yaml((BASE / "etcd.yaml").read_bytes(), source="etcd")
    words = [word.replace("192.0.2.10", "198.51.100.7") for word in base["spec"]["containers"][0]["command"]]
    own = [word for word in words if not word.startswith(("--name", "--initial-c"))]
    own += ["--name=db1", "--initial-cluster=db1=https://198.51.100.7:2380"]
    write("patches/etcd.yaml", json.dumps({"spec": {"containers": [{"name": "etcd", "command": own}]}}))
    assert lint("patches") == 0, capsys.readouterr().out
    write("kubeadm.yaml", CONFIG)
    assert lint("patches", "--config", "kubeadm.yaml") == 3
    assert "critical-flag-changed" in capsys.readouterr().out
