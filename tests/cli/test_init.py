"""`garboard init` and `garboard join` as commands: what they take, print, touch and refuse."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from garboard.cli.main import run
from garboard.errors import ClusterUnreachable
from garboard.model.lifecycle import JoinConfiguration, TokenDiscovery

CONFIG = """
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
nodeRegistration: {name: node-1}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
encryptionAlgorithm: ECDSA-P256
certificatesDir: PKI
"""
KUBECONFIGS = {"admin.conf", "super-admin.conf", "kubelet.conf", "controller-manager.conf", "scheduler.conf"}


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "kubeadm.yaml"
    path.write_text(CONFIG.replace("PKI", str(tmp_path / "pki")))
    return str(path)


def tree(folder: Path) -> dict[str, str]:
    return {
        str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in folder.rglob("*")
        if each.is_file()
    }


def test_certificates_and_kubeconfigs_are_made_and_then_kept(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "phase", "certs", "all", "--config", config]) == 0
    kubeconfigs = ["init", "phase", "kubeconfig", "all", "--config", config, "--kubeconfig-dir", str(tmp_path / "conf")]
    assert run(kubeconfigs) == 0
    out, err = capsys.readouterr()
    assert out == "", "progress goes to stderr"
    assert "[certs/apiserver] issue certificate apiserver" in err
    assert {each.name for each in (tmp_path / "conf").iterdir()} == KUBECONFIGS
    assert (tmp_path / "conf/admin.conf").stat().st_mode & 0o777 == 0o600
    before = tree(tmp_path)
    assert run(["init", "phase", "certs", "all", "--config", config]) == 0
    assert run(kubeconfigs) == 0
    assert "Using existing ca certificate authority" in capsys.readouterr().err
    assert tree(tmp_path) == before


def test_certificates_chain_up_for_openssl(config: str, tmp_path: Path) -> None:
    assert run(["init", "phase", "certs", "all", "--config", config]) == 0
    for ca, leaf in (("ca", "apiserver"), ("etcd/ca", "etcd/peer"), ("front-proxy-ca", "front-proxy-client")):
        command = ["openssl", "verify", "-CAfile", str(tmp_path / f"pki/{ca}.crt"), str(tmp_path / f"pki/{leaf}.crt")]
        assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def test_dry_run_prints_the_plan_and_touches_nothing(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(tmp_path)
    texts = []
    for _ in range(2):
        assert run(["init", "phase", "certs", "all", "--config", config, "--dry-run"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0].endswith("plan: 11 steps on node-1\n")
    assert tree(tmp_path) == before
    assert not (tmp_path / "pki").exists()


@pytest.mark.parametrize("name", ["dryRun: true"])
def test_dry_run_of_the_file_counts(name: str, config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(config)
    path.write_text(path.read_text().replace("localAPIEndpoint", f"{name}\nlocalAPIEndpoint", 1))
    assert run(["init", "phase", "certs", "ca", "--config", config]) == 0
    assert "plan: 1 step on node-1" in capsys.readouterr().out
    assert not (tmp_path / "pki").exists()


def test_plan_is_printed_as_json_and_yaml(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "phase", "certs", "ca", "--config", config, "--dry-run", "-o", "json"]) == 0
    (step,) = json.loads(capsys.readouterr().out)["steps"]
    assert (step["phase"], step["node"], step["action"]["type"]) == ("certs/ca", "node-1", "issue")
    assert run(["init", "phase", "certs", "ca", "--config", config, "--dry-run", "-o", "yaml"]) == 0
    assert "phase: certs/ca" in capsys.readouterr().out


def test_whole_init_is_planned(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--config", config, "--dry-run", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    kinds = {step["action"]["type"] for step in document["steps"]}
    assert kinds >= {"issue", "write-file", "put-object", "patch-object", "wait", "show-message"}
    assert "unsupported" not in kinds
    assert "PRIVATE KEY" not in json.dumps(document)


def test_machine_that_is_not_ready_is_left_as_it_is(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getuid", lambda: 1000)
    assert run(["init", "--config", config]) == 4
    err = capsys.readouterr().err
    assert "error[preflight]: this machine is not ready; nothing has been changed:" in err
    assert "[IsPrivilegedUser] this is not run as root" in err
    assert not (tmp_path / "pki").exists()


def test_phase_that_needs_a_cluster_says_how_to_name_one(
    config: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("garboard.host.node_machine.NodeMachine.read", lambda self, path: None)
    assert run(["init", "phase", "mark-control-plane", "--config", config]) == 1
    assert "/etc/kubernetes/admin.conf does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        pytest.param(["phase", "certs", "all", "--cert-dir", "x"], 2, "can not mix '--config'", id="mixed flags"),
        pytest.param(["--skip-phases", "nope", "--dry-run"], 2, "invalid phase name: nope", id="unknown phase"),
        pytest.param(["--skip-phases", "upload-certs", "--dry-run"], 2, "unresolved dependencies", id="needed phase"),
    ],
)
def test_wrong_use_is_refused(
    words: list[str], status: int, told: str, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", *words, "--config", config]) == status
    assert told in capsys.readouterr().err


def test_phase_with_parts_needs_one_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "phase", "certs"]) != 0


def test_alias_is_a_sub_command(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "phase", "uploadconfig", "kubeadm", "--config", config, "--dry-run"]) == 0
    assert "put ConfigMap kube-system/kubeadm-config" in capsys.readouterr().out


def test_manifests_of_an_addon_are_printed(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "phase", "addon", "kube-proxy", "--config", config, "--print-manifest"]) == 0
    kinds = [line.removeprefix("kind: ") for line in capsys.readouterr().out.splitlines() if line.startswith("kind: ")]
    assert sorted(kinds) == ["ClusterRoleBinding", "ConfigMap", "DaemonSet", "Role", "RoleBinding", "ServiceAccount"]


def test_skipped_addon_is_disabled_in_what_is_stored(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--config", config, "--dry-run", "--skip-phases", "addon/kube-proxy"]) == 0
    out = capsys.readouterr().out
    assert "addon/kube-proxy" not in out
    assert "proxy:\n          disabled: true" in out


def test_unknown_field_is_a_warning_or_with_strict_config_refused(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(config).write_text(Path(config).read_text() + "clusterNmae: x\n")
    words = ["init", "phase", "certs", "ca", "--config", config, "--dry-run"]
    assert run(words) == 0
    assert "clusterNmae" in capsys.readouterr().err
    assert run([*words, "--strict-config"]) == 3


def test_patches_are_watched_and_with_strict_patches_refused(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches/kube-scheduler.yaml").write_text("spec: {hostNetwrok: true}\n")
    words = [
        "init", "phase", "control-plane", "scheduler", "--dry-run", "--kubernetes-version", "v1.36.4",
        "--patches", str(tmp_path / "patches"),
    ]  # fmt: skip
    assert run(words) == 0
    assert "warning: [unknown-field]" in capsys.readouterr().out
    assert run([*words, "--strict-patches"]) == 3
    assert "hostNetwrok" in capsys.readouterr().err


def test_danger_of_a_patch_is_accepted_by_its_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches/kube-scheduler.yaml").write_text("spec: {hostNetwork: false}\n")
    words = [
        "init", "phase", "control-plane", "scheduler", "--dry-run", "--kubernetes-version", "v1.36.4",
        "--patches", str(tmp_path / "patches"), "--strict-patches",
    ]  # fmt: skip
    assert run(words) == 3
    assert "host-network-off" in capsys.readouterr().err
    assert run([*words, "--accept", "host-network-off"]) == 0
    assert "(accepted)" in capsys.readouterr().out
    assert run([*words, "--accept", "host-network-of"]) == 2
    assert "did you mean 'host-network-off'?" in capsys.readouterr().err


@pytest.fixture
def endpoints(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The endpoints that join looks for a cluster at; nobody is there."""
    asked: list[str] = []

    def nobody(config: JoinConfiguration, *_: object, **__: object) -> NoReturn:
        assert isinstance(config.discovery, TokenDiscovery)
        asked.append(config.discovery.api_server_endpoint)
        raise ClusterUnreachable("nobody is there")

    monkeypatch.setattr("garboard.node.join.find_cluster", nobody)
    return asked


def test_join_takes_its_endpoint_before_or_after_flags(endpoints: list[str]) -> None:
    flags = ["--token", "abcdef.0123456789abcdef", "--discovery-token-unsafe-skip-ca-verification", "--dry-run"]
    for words in (["192.0.2.1:6443", *flags], [*flags, "192.0.2.1:6443"]):
        assert run(["join", *words, "--node-name", "worker-1"]) == 5
    assert endpoints == ["192.0.2.1:6443"] * 2


def test_flags_of_a_control_plane_are_ignored_with_a_warning_on_a_worker(
    endpoints: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--token", "abcdef.0123456789abcdef", "--discovery-token-unsafe-skip-ca-verification", "--dry-run"]
    assert run(["join", "192.0.2.1:6443", *flags, "--apiserver-bind-port", "7443"]) == 5
    assert "warning: without --control-plane these are ignored: --apiserver-bind-port" in capsys.readouterr().err


def test_phase_without_discovery_needs_the_administrators_kubeconfig(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["join", "phase", "control-plane-join", "all", "--control-plane", "--dry-run"]) != 0
    assert "/etc/kubernetes/admin.conf" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["init"], ["join"], ["init", "phase"], ["init", "phase", "certs"], ["init", "phase", "certs", "apiserver"]],
    ids=" ".join,
)
def test_help_has_an_example(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "--help"]) == 0
    assert "Example: garboard " in capsys.readouterr().out


def test_listing_the_commands_loads_no_phase() -> None:
    program = "import sys; from garboard.cli.main import run; run(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "garboard.phases" not in done.stdout
    assert "cryptography" not in done.stdout
