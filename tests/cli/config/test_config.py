import os
from pathlib import Path

import pytest

from garboard.cli.main import run
from tests.support.config.configurations import CLUSTER, V1BETA3


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "kubeadm.yaml"
    path.write_text(CLUSTER.replace("VERSION", "v1.36.4"))
    return path


def test_a_valid_file_is_ok(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "validate", "--config", str(config)]) == 0
    assert capsys.readouterr() == ("ok\n", "")


def test_problems_go_to_stderr_with_status_3(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text(CLUSTER.replace("VERSION", "v1.36.4") + "certificatesDir: pki\n")
    assert run(["config", "validate", "--config", str(config)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"error[invalid-configuration]: {config} is not valid:\n"
        '  certificatesDir: Invalid value: "pki": path is not absolute (line 4)\n'
    )


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n# nothing yet\n---\n"])
def test_without_a_document_there_is_nothing_to_validate(
    text: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(text)
    assert run(["config", "validate", "--config", str(config)]) == 3
    assert "nothing to validate" in capsys.readouterr().err
    assert run(["config", "migrate", "--old-config", str(config)]) == 3
    assert "nothing to migrate" in capsys.readouterr().err


def test_migrating_names_what_it_leaves_out(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubelet = "---\n# ours\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 50\n"
    config.write_text(CLUSTER.replace("VERSION", "v1.36.4") + kubelet)
    assert run(["config", "migrate", "--old-config", str(config)]) == 0
    err = capsys.readouterr().err
    assert "KubeletConfiguration (line 5) is left out" in err
    assert "comments are left out (line 5)" in err


def test_migrating_writes_a_file_that_validates(config: Path, tmp_path: Path) -> None:
    config.write_text(V1BETA3["v1beta3 init"].replace("VERSION", "v1.37.1"))
    fresh = tmp_path / "fresh.yaml"
    assert run(["config", "validate", "--config", str(config)]) == 3
    assert run(["config", "migrate", "--old-config", str(config), "--new-config", str(fresh)]) == 0
    assert fresh.stat().st_mode & 0o777 == 0o644
    assert run(["config", "validate", "--config", str(fresh)]) == 0


def test_the_minor_of_the_file_decides_about_images(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "images", "list", "--config", str(config)]) == 0
    assert "registry.k8s.io/etcd:3.6.8-0" in capsys.readouterr().out


def test_without_a_file_the_newest_minor_is_meant_and_no_network_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "images", "list"]) == 0
    assert "registry.k8s.io/kube-apiserver:v1.37.1" in capsys.readouterr().out


def test_another_minor_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "print", "init-defaults", "--kubernetes-version", "v1.35.0"]) == 2
    assert "the supported minors are 1.36, 1.37" in capsys.readouterr().err


def test_unknown_fields_are_warnings_unless_told_otherwise(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text(CLUSTER.replace("VERSION", "v1.36.4") + "foo: 1\n")
    command = ["config", "images", "list", "--config", str(config)]
    assert run(command) == 0
    assert 'strict decoding error: unknown field "foo"' in capsys.readouterr().err
    assert run([*command, "--strict-config"]) == 3


@pytest.mark.parametrize("arguments", [
    ["config", "validate"],
    ["config", "print", "init-defaults", "--component-configs", "Nonsense"],
    ["config", "images", "list", "--feature-gates", "Nonsense=true"],
], ids=" ".join)  # fmt: skip
def test_bad_usage_gives_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr().err.startswith("error[usage]: ")


def test_a_missing_file_is_an_error_with_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "validate", "--config", "/no/such/file"]) != 0
    assert "/no/such/file" in capsys.readouterr().err


@pytest.mark.timeout(20)
def test_named_pipe_in_place_of_a_configuration_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert run(["config", "validate", "--config", str(tmp_path / "pipe")]) == 3
    assert "pipe is a named pipe, not a regular file" in capsys.readouterr().err
