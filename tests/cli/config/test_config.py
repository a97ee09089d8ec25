from pathlib import Path

import pytest

from garboard.cli.main import run
from tests.config.configurations import CLUSTER, V1BETA3


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


def test_an_empty_file_is_ok_as_in_kubeadm(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text("")
    assert run(["config", "validate", "--config", str(config)]) == 0


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
    assert run(["config", "print", "init-defaults", "--kubernetes-version", "v1.35.0"]) == 3
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
