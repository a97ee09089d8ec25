from pathlib import Path

import pytest

from tests.support.fleet.folder import FleetFolder

EVERYWHERE = """
installerManifestPatches:
- manifestSelector: {glob: "openshift/*"}
  patches:
  - {op: add, path: /metadata/annotations, valueJSON: '{"by": "pool"}'}
"""
SITE_A = """
installConfigPatches:
- {op: replace, path: /controlPlane/replicas, valueJSON: '1'}
installerManifestPatches:
- manifestSelector: {name: worker}
  patches:
  - {op: replace, path: /metadata/annotations/by, value: site-a}
- manifestSelector: {kind: Secret}
  onNoMatch: warn
  patches:
  - {op: add, path: /stringData/key, value: sharply-kept-2}
"""


@pytest.fixture
def folder(tmp_path: Path) -> FleetFolder:
    return FleetFolder(tmp_path, {"everywhere": EVERYWHERE, "site-a": SITE_A})


def test_field_is_told_with_the_line_of_each_customization_that_wrote_it(
    folder: FleetFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("metadata.annotations.by", "--file", "openshift/99_worker.yaml", "--deployment", "edge-site-a")
    assert folder.run("explain", *options) == 0
    told = capsys.readouterr().out
    lines = folder.documents.read_text().splitlines()
    mine, shared = (
        next(n for n, line in enumerate(lines, 1) if text in line) for text in ("value: site-a", '"by": "pool"')
    )
    assert f"set by {folder.documents}:{mine}:" in told
    assert '(json patch of ClusterDeploymentCustomization default/site-a), over "pool"' in told
    assert f'was "pool", set by {folder.documents}:{shared}:' in told


def test_everything_that_customizations_set_is_told_by_file(
    folder: FleetFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder.run("explain", "--deployment", "edge-site-a") == 0
    told = capsys.readouterr().out
    for name in ("install-config.yaml: controlPlane.replicas: 1", "openshift/99_master.yaml: metadata.annotations.by"):
        assert name in told


def test_name_that_a_pool_gives_is_told_with_the_pool(folder: FleetFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert folder.run("explain", "metadata.name", "--deployment", "edge-site-b") == 0
    assert "fleet.yaml:3:12 (ClusterPool default/edge)" in capsys.readouterr().out


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_secrets_are_not_told(output: str, folder: FleetFolder, capsys: pytest.CaptureFixture[str]) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: k}\nstringData: {other: sharply-kept-3}\n"
    (folder.manifests / "openshift/x.yaml").write_text(secret)
    assert folder.run("explain", "--deployment", "edge-site-a", "-o", output) == 0
    assert (
        folder.run("explain", "--deployment", "edge-site-a", "-o", output, "stringData", "--file", "openshift/x.yaml")
        == 0
    )
    assert folder.run("explain", "--deployment", "edge-site-a", "-o", output, "password") == 0
    told = capsys.readouterr().out
    assert "REDACTED" in told
    for each in ("sharply-kept-2", "sharply-kept-3", "hunter2"):
        assert each not in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param(["--pool", "edge"], "explain is about one cluster", id="several"),
        pytest.param(["--deployment", "edge-site-a", "--file", "openshift/99_workr.yaml"],
                     "did you mean 'openshift/99_worker.yaml'?", id="misspelt file"),
    ],
)  # fmt: skip
def test_question_that_means_nothing_is_refused(
    options: list[str], words: str, folder: FleetFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder.run("explain", *options) == 2
    assert words in capsys.readouterr().err
