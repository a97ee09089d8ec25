"""The mistakes that people make in a configuration, and what they are told to do about them."""

from pathlib import Path

import pytest

from garboard.cli.main import run

GOOD = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.37.1\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(GOOD + "networking: {podSubnt: 10.1.0.0/16}\n", "hint: did you mean 'podSubnet'?", id="field"),
        pytest.param(GOOD.replace("Cluster", "Clustr"), "bad.yaml:1: did you mean ClusterConfiguration?", id="kind"),
        pytest.param(GOOD.replace("Configuration", "Config"), "did you mean ClusterConfiguration?", id="short kind"),
        pytest.param(GOOD.replace("Cluster", "My"), "the kinds are InitConfiguration, ", id="foreign kind"),
        pytest.param(GOOD.replace("v1beta4", "v1beta9"), "bad.yaml:1: ClusterConfiguration has another", id="version"),
        pytest.param(
            GOOD.replace("v1.37.1", "v1.20.0"), "bad.yaml: kubernetesVersion: Kubernetes 1.20 is not supported",
            id="unsupported minor",
        ),
    ],
)  # fmt: skip
def test_mistake_is_told_with_the_way_out(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text(text)
    assert run(["config", "validate", "--config", "bad.yaml"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "\nhint: " in err


MAPS = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
apiServer:
  extraArgs:
    profiling: false
    audit-log-maxage: 3
  certSAN: [a]
networking:
  podSubnet: nonsense
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  kubeletExtraArgs: {v: "5"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ResetConfiguration
certificatesDir: pki
"""


def test_maps_of_arguments_get_their_line_and_new_form_beside_all_other_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text(MAPS)
    assert run(["config", "validate", "--config", "bad.yaml"]) == 3
    err = capsys.readouterr().err
    for said in (
        "APIServer.apiServer.extraArgs of type []v1beta4.Arg (line 5)",
        "NodeRegistrationOptions.nodeRegistration.kubeletExtraArgs of type []v1beta4.Arg (line 15)",
        'unknown field "apiServer.certSAN" (line 8)',
        'networking.podSubnet: Invalid value: "nonsense": couldn\'t parse subnet (line 10)',
        'certificatesDir: Invalid value: "pki": path is not absolute (line 19)',
        "write apiServer.extraArgs as a list of names and values: [{",
        '[{name: profiling, value: "false"}, {name: audit-log-maxage, value: "3"}]',
        "did you mean 'certSANs'?",
    ):
        assert said in err


def test_what_follows_from_a_value_of_a_wrong_type_is_not_told_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery: token\n")
    assert run(["config", "validate", "--config", "bad.yaml"]) == 3
    err = capsys.readouterr().err
    assert "cannot unmarshal string into Go struct field" in err
    assert "Required value" not in err


def test_old_api_is_told_with_the_command_that_converts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.yaml").write_text(GOOD.replace("v1beta4", "v1beta3"))
    assert run(["config", "validate", "--config", "old.yaml"]) == 3
    err = capsys.readouterr().err
    assert "hint: `garboard config migrate --old-config old.yaml` converts it" in err
    assert "kubeadm config migrate" not in err


HANDED_ON = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
apiServer:
  extraArgs:
  - {name: profilng, value: "false"}
  - {name: max-requests-inflight, value: many}
  extraEnvs:
  - {name: A=B, value: x}
  extraVolumes:
  - {name: Bad_Name, hostPath: /a, mountPath: /a, pathType: Dir}
scheduler:
  extraArgs: {v: "2"}
controllerManager:
  extraArgs:
  - {name: contollers, value: "*"}
etcd:
  local:
    extraArgs:
    - {name: quota-backend-bytes, value: 8G}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  kubeletExtraArgs:
  - {name: node-ips, value: 10.0.0.1}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systmd
"""


def test_what_components_would_refuse_is_told_by_its_code_and_line_beside_a_value_of_a_wrong_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text(HANDED_ON)
    assert run(["config", "validate", "--config", "bad.yaml"]) == 3
    err = capsys.readouterr().err
    for said in (
        "of type []v1beta4.Arg (line 13)",
        "[unknown-flag] apiServer.extraArgs[0]: kube-apiserver of Kubernetes 1.37 has no flag --profilng (line 6); d",
        "[bad-flag-value] apiServer.extraArgs[1]: --max-requests-inflight: expected a whole number (line 7)",
        "[bad-name] apiServer.extraEnvs[0].name: 'A=B' must be printable ASCII characters other than '=' (line 9)",
        "[bad-name] apiServer.extraVolumes[0].name: 'Bad_Name' must be a DNS label",
        "[unsupported-value] apiServer.extraVolumes[0].pathType: 'Dir' is none of",
        "[unknown-flag] controllerManager.extraArgs[0]: ",
        "[bad-flag-value] etcd.local.extraArgs[0]: --quota-backend-bytes: ",
        "[unknown-flag] nodeRegistration.kubeletExtraArgs[0]: ",
        "[unsupported-value] cgroupDriver: 'systmd' is none of cgroupfs, systemd (line 30); did you mean 'systemd'?",
    ):
        assert said in err


@pytest.mark.parametrize(
    ("section", "status", "said"),
    [
        pytest.param(
            "  extraArgs:\n  - {name: encryption-provider-config-automatic-reload, value: 'true'}\n",
            3,
            "[flag-conflict] apiServer.extraArgs[0]: --encryption-provider-config-automatic-reload: ",
            id="flags that do not go together",
        ),
        pytest.param(
            "  extraVolumes:\n  - {name: mine, hostPath: /a, mountPath: /etc/kubernetes/pki}\n",
            3,
            "[duplicate-mount-path] apiServer.extraVolumes[0]",
            id="a mount where kubeadm has one",
        ),
        pytest.param(
            "  extraArgs:\n  - {name: audit-policy-file, value: /etc/audit.yaml}\n",
            0,
            "warning: [unmounted-file] apiServer.extraArgs[0]: ",
            id="a file that no mount holds",
        ),
        pytest.param(
            "  extraArgs:\n  - {name: authorization-mode, value: AlwaysAllow}\n",
            0,
            "warning: [authorization-weakened] apiServer.extraArgs[0]: ",
            id="a danger",
        ),
        pytest.param(
            "  extraArgs:\n  - {name: anonymous-auth, value: 'false'}\n",
            0,
            "warning: [probe-mismatch] apiServer.extraArgs[0]: ",
            id="probes that are not answered",
        ),
    ],
)
def test_what_only_the_rendered_pod_shows_is_told_at_the_field_that_decides_it(
    section: str,
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kubeadm.yaml").write_text(f"{GOOD}apiServer:\n{section}")
    assert run(["config", "validate", "--config", "kubeadm.yaml"]) == status
    assert said in capsys.readouterr().err


def test_arguments_of_an_old_api_version_are_judged_at_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = GOOD.replace("v1beta4", "v1beta3").replace("v1.37.1", "v1.36.4")
    Path("old.yaml").write_text(f"{text}apiServer:\n  extraArgs: {{profilng: 'false'}}\n")
    assert run(["config", "validate", "--config", "old.yaml"]) == 3
    assert "[unknown-flag] apiServer.extraArgs.profilng: " in capsys.readouterr().err
