import json
import stat
from pathlib import Path
from typing import Any

import pytest

from garboard.cli.main import run
from garboard.documents import read_yaml
from tests.support.fleet.folder import FleetFolder
from tests.support.fleet.pool import POOL

SITE_A = """
installConfigPatches:
- {op: replace, path: /controlPlane/replicas, valueJSON: '1'}
installerManifestPatches:
- manifestSelector: {glob: "openshift/99_worker.yaml"}
  patches:
  - {op: replace, path: /spec/replicas, valueJSON: '5'}
"""
FAILING = "installerManifestPatches: [{manifestSelector: {glob: none/*}, patches: []}]"


def test_each_entry_gets_a_folder_with_the_names_that_the_installer_gave(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path, {"site-a": SITE_A})
    assert folder.render() == 0
    files = [
        "install-config.yaml",
        "manifests/cluster-network.yaml",
        "openshift/99_master.yaml",
        "openshift/99_worker.yaml",
    ]
    assert folder.rendered() == [
        "fleet-render.json",
        *(f"{site}/{name}" for site in ("site-a", "site-b") for name in files),
    ]
    assert "replicas: 5" in (folder.out / "site-a/openshift/99_worker.yaml").read_text()
    original = folder.manifests / "openshift/99_worker.yaml"
    assert (folder.out / "site-b/openshift/99_worker.yaml").read_bytes() == original.read_bytes()
    assert "replicas: 1" in (folder.out / "site-a/install-config.yaml").read_text()


def test_one_deployment_of_a_pool_can_be_rendered_and_others_need_not_be_whole(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path, {"site-b": FAILING})
    assert folder.render("--deployment", "edge-site-a") == 0
    assert {name.partition("/")[0] for name in folder.rendered()} == {"fleet-render.json", "site-a"}


def test_missing_folders_before_that_of_the_rendering_are_made(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path, {})
    assert folder.run("render", "-o", f"{tmp_path}/new/deeper/out/") == 0
    assert (tmp_path / "new/deeper/out/site-a/install-config.yaml").exists()


def test_nothing_is_written_if_one_entry_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = FleetFolder(tmp_path, {"site-b": FAILING})
    assert folder.render() == 3
    assert not folder.out.exists()
    assert list(tmp_path.glob(".*")) == []
    assert "error[manifest-no-match]: " in capsys.readouterr().err


def test_check_tells_everything_that_fails_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = FleetFolder(tmp_path, {"site-a": FAILING, "site-b": FAILING})
    assert folder.run("render", "--check", "--output", "json") == 3
    told = capsys.readouterr()
    assert [each["deployment"] for each in json.loads(told.out)["failed"]] == ["edge-site-a", "edge-site-b"]
    record = json.loads(told.out)["failed"][0]["failures"][0]
    assert (record["reason"], record["entry"], record["selector"]) == ("ManifestPatchNoMatch", 0, "glob 'none/*'")
    assert told.err.count("no manifest matches") == 2
    assert not folder.out.exists()


def test_check_of_what_is_whole_succeeds(tmp_path: Path) -> None:
    assert FleetFolder(tmp_path, {"site-a": SITE_A}).run("render", "--check") == 0


def test_line_that_writes_becomes_a_check_by_one_flag(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path, {"site-a": SITE_A})
    assert folder.render("--check") == 0
    assert not folder.out.exists()
    failing = FleetFolder(tmp_path, {"site-a": FAILING})
    assert failing.render("--check") == 3
    assert not failing.out.exists()


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_customization_that_no_cluster_could_take_is_told_as_records(
    output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = (
        "installConfigPatches: [{op: add, path: nowhere}]\n"
        "installerManifestPatches:\n- manifestSelector: {glob: ../x}\n  patches: []\n"
        "- manifestSelector: {glob: x}\n  patches: [{op: add, path: /a, valueJSON: '{'}]\n"
    )
    folder = FleetFolder(tmp_path, {"site-a": wrong})
    assert folder.run("render", "--check", "--output", output) == 3
    answer: Any = read_yaml(capsys.readouterr().out, source="answer")
    (failed,) = answer["failed"]
    assert (answer["clusters"], failed["deployment"]) == ([], None)
    assert [(each["reason"], each.get("entry"), each.get("op")) for each in failed["failures"]] == [
        ("InstallConfigPatchInvalid", None, 0),
        ("ManifestPatchPathEscape", 0, None),
        ("ManifestPatchInvalid", 1, 0),
    ]
    assert failed["failures"][1]["selector"] == "glob '../x'"


def test_earlier_rendering_is_replaced_as_a_whole_and_other_folders_are_refused(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path, {})
    assert folder.render() == 0
    (folder.out / "stray.yaml").write_text("a: b\n")
    assert folder.render("--deployment", "edge-site-b") == 0
    assert {name.partition("/")[0] for name in folder.rendered()} == {"fleet-render.json", "site-b"}
    (folder.out / "fleet-render.json").unlink()
    assert folder.render() == 1
    assert (folder.out / "site-b").is_dir()
    assert list(tmp_path.glob(".*")) == []


def test_secrets_are_replaced_unless_they_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret_manifest = b"apiVersion: v1\nkind: Secret\nmetadata: {name: k}\nstringData: {key: sharply-kept-1}\n"
    folder = FleetFolder(tmp_path, {"site-a": SITE_A})
    (folder.manifests / "openshift/secret.yaml").write_bytes(secret_manifest)
    assert folder.render() == 0
    written = "".join((folder.out / name).read_text() for name in folder.rendered())
    told = capsys.readouterr()
    for secret in ("hunter2-in-the-template", "sharply-kept-1", "pull-secret-of-the-pool"):
        assert secret not in written + told.out + told.err
    assert folder.render("--show-secrets") == 0
    assert "hunter2-in-the-template" in (folder.out / "site-a/install-config.yaml").read_text()
    assert (folder.out / "site-a/openshift/secret.yaml").read_bytes() == secret_manifest
    assert stat.S_IMODE(folder.out.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder.out / "site-a/install-config.yaml").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param([], "one of -o and --check", id="neither"),
        pytest.param(["--check", "--pool", "a", "--deployment", "b"], "exclude each other", id="pool and deployment"),
        pytest.param(["--check", "--pool", "edg"], "did you mean 'edge'?", id="misspelt pool"),
        pytest.param(["--check", "--deployment", "edge-site-c"], "did you mean 'edge-site-", id="misspelt entry"),
    ],
)
def test_wrong_options_are_refused(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert FleetFolder(tmp_path, {}).run("render", *options) == 2
    assert words in capsys.readouterr().err


def test_without_manifests_install_configs_are_rendered_and_the_rest_is_said_not_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = FleetFolder(tmp_path, {"site-a": SITE_A})
    assert run(["fleet", "render", "-f", str(folder.documents), "-o", str(folder.out), "--pool", "edge"]) == 0
    assert folder.rendered() == ["fleet-render.json", "site-a/install-config.yaml", "site-b/install-config.yaml"]
    assert "no manifests to patch" in capsys.readouterr().err


def test_missing_customization_is_named_with_the_line_that_refers_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = FleetFolder(tmp_path, {}, POOL.replace("name: site-b", "name: site-c"))
    assert folder.run("render", "--check") == 3
    told = capsys.readouterr().err
    assert "fleet.yaml:14:5: spec.inventory[1].name: ClusterDeploymentCustomization default/site-c is not in" in told
