"""`fleet provision` and `fleet deprovision` with Hive's documents and the synthetic installer, as a user calls them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from garboard.documents import Json, write_yaml
from tests.support.fleet.provisions import PROGRAM
from tests.support.fleet.synthetic_installer import PASSWORD

GARBOARD = str(Path(sys.executable).parent / "garboard")
SECRET, KEY = "synthetic-pull-secret-value", "cloud-key-of-this-test"
HIVE = "hive.openshift.io/v1"


class Fleet:
    """A deployment in files, its cloud and its work folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cloud, self.work = folder, folder / "cloud", folder / "work"
        self.cloud.mkdir()
        self.environment = {"MISBEHAVE": "", "SAY": SECRET}

    def write(self, *manifest_patches: Json, **provisioning: Json) -> None:
        install_config = write_yaml({"apiVersion": "v1", "metadata": {"name": "c1"}, "platform": {"none": {}}})
        environment = {**self.environment, "CLOUD": str(self.cloud), "CLOUD_TOKEN": KEY}
        variables: list[Json] = [{"name": name, "value": value} for name, value in environment.items()]
        objects: list[dict[str, Json]] = [
            {
                "apiVersion": HIVE, "kind": "ClusterDeployment", "metadata": {"name": "c1"},
                "spec": {
                    "clusterName": "c1", "baseDomain": "example.com", "platform": {"none": {}},
                    "pullSecretRef": {"name": "pull"},
                    "provisioning": {
                        "installConfigSecretRef": {"name": "ic"}, "customizationRef": {"name": "custom"},
                        "releaseImage": "example.com/release:1", "installerEnv": variables, **provisioning,
                    },
                },
            },
            {
                "apiVersion": HIVE, "kind": "ClusterDeploymentCustomization", "metadata": {"name": "custom"},
                "spec": {"installerManifestPatches": list(manifest_patches)},
            },
            {
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ic"},
                "stringData": {"install-config.yaml": install_config},
            },
            {
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"},
                "stringData": {".dockerconfigjson": json.dumps({"auths": SECRET})},
            },
        ]  # fmt: skip
        (self.folder / "fleet.yaml").write_text("---\n".join(map(write_yaml, objects)))

    def run(self, verb: str, *more: str) -> subprocess.CompletedProcess[str]:
        files = ("-f", str(self.folder / "fleet.yaml"), "--deployment", "c1")
        return subprocess.run(
            [GARBOARD, "fleet", verb, *files, "--work", str(self.work), *more],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def provision(self, *more: str) -> subprocess.CompletedProcess[str]:
        return self.run("provision", "--installer", PROGRAM, *more)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def manifest_patch(glob: str, *patches: Json) -> Json:
    return {"manifestSelector": {"glob": glob}, "patches": list(patches)}


def test_cluster_is_made_with_its_patches_and_taken_back(fleet: Fleet) -> None:
    replicas: Json = {"op": "replace", "path": "/spec/replicas", "valueJSON": "3"}
    fleet.write(manifest_patch("openshift/99_*machineset*.yaml", replicas))
    made = fleet.provision("-o", "json")
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    assert told["deployment"] == "default/c1"
    (ignition, *_) = sorted(fleet.cloud.glob(f"{told['infraID']}-*"))
    assert "replicas: 3" in json.loads(ignition.read_text())["openshift/99_worker-machineset-0.yaml"]
    assert Path(told["kubeconfig"]).read_text().startswith("apiVersion: v1")
    assert json.loads((fleet.work / "metadata.json").read_text())["cloud"]["password"] == "REDACTED"
    config = (fleet.work / "attempt-1/bootstrap.ign").parent
    assert not (config / "openshift").exists() or not list((config / "openshift").iterdir())
    taken = fleet.run("deprovision")
    assert taken.returncode == 0, taken.stderr
    assert "everything is gone" in taken.stderr
    assert list(fleet.cloud.glob("c1-*")) == []
    assert "nothing to destroy" in fleet.run("deprovision").stderr


def test_pull_secret_reaches_the_installer_and_no_output(fleet: Fleet) -> None:
    fleet.write()
    made = fleet.provision()
    assert made.returncode == 0
    assert "pullSecret" not in made.stderr
    said = made.stdout + made.stderr + (fleet.work / "provision.log").read_text()
    for secret in (SECRET, KEY, PASSWORD):
        assert secret not in said
    assert "environment: REDACTED" in said


def test_failed_patch_leaves_a_record_for_programs(fleet: Fleet) -> None:
    fleet.write(
        manifest_patch("manifests/cluster-config.yaml", {"op": "add", "path": "/data", "valueJSON": "{}"}),
        manifest_patch("manifests/none-*.yaml", {"op": "remove", "path": "/x"}),
    )
    failed = fleet.provision()
    assert failed.returncode == 3
    assert "error[manifest-no-match]" in failed.stderr
    found = json.loads((fleet.work / "failure.json").read_text())
    assert (found["stage"], found["reason"]) == ("patch", "ManifestPatchNoMatch")
    (failure,) = found["failures"]
    assert (failure["entry"], failure["selector"]) == (1, "glob 'manifests/none-*.yaml'")
    assert (fleet.cloud / "calls").read_text() == "create manifests\n"


@pytest.mark.parametrize(
    ("glob", "patch", "reason"),
    [
        ("manifests/cluster-*.yaml", {"op": "remove", "path": "/none"}, "ManifestPatchFailed"),
        ("auth/../tls/root-ca.key", {"op": "remove", "path": "/none"}, "ManifestPatchPathEscape"),
        ("/etc/passwd", {"op": "remove", "path": "/none"}, "ManifestPatchPathEscape"),
        ("manifests/[a", {"op": "remove", "path": "/none"}, "ManifestPatchInvalid"),
        ("manifests/*", {"op": "remove", "path": "none"}, "ManifestPatchInvalid"),
        ("tls/root-ca.key", {"op": "remove", "path": "/none"}, "ManifestPatchProtected"),
        (".openshift_install_state.json", {"op": "remove", "path": "/none"}, "ManifestPatchProtected"),
    ],
)
def test_each_failure_has_its_reason(fleet: Fleet, glob: str, patch: Json, reason: str) -> None:
    fleet.write(manifest_patch(glob, patch))
    failed = fleet.provision()
    assert failed.returncode == 3
    found = json.loads((fleet.work / "failure.json").read_text())
    (failure,) = found["failures"]
    assert (found["reason"], failure["reason"], failure["step"], failure["entry"]) == (
        reason, reason, "installerManifestPatches", 0,
    )  # fmt: skip
    if found["stage"] == "documents":
        assert not (fleet.cloud / "calls").exists(), "it is refused before anything begins"
        assert not (fleet.work / "provision.json").exists()


def test_documents_that_were_refused_can_be_corrected(fleet: Fleet) -> None:
    fleet.write(manifest_patch("../x"))
    assert fleet.provision().returncode == 3
    fleet.write()
    assert fleet.provision().returncode == 0
    assert not (fleet.work / "failure.json").exists()
    fleet.write(manifest_patch("../x"))
    assert fleet.provision().returncode == 3
    assert json.loads((fleet.work / "failure.json").read_text())["stage"] == "documents"


def test_refused_documents_leave_the_folder_of_another_deployment_alone(fleet: Fleet) -> None:
    fleet.write()
    assert fleet.provision().returncode == 0
    record = fleet.work / "provision.json"
    record.write_text(record.read_text().replace('"deployment": "c1"', '"deployment": "other"'))
    fleet.write(manifest_patch("../x"))
    assert fleet.provision().returncode == 3
    assert not (fleet.work / "failure.json").exists()


def test_installer_that_is_not_there_is_named(fleet: Fleet) -> None:
    fleet.write()
    failed = fleet.run("provision", "--installer", "no-such-installer")
    assert failed.returncode == 1
    assert "cannot run no-such-installer" in failed.stderr


def test_own_installer_is_rendered_without_an_installer(tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "examples/fleet/hosts"
    checked = subprocess.run(
        [GARBOARD, "fleet", "render", "-f", str(example), "-o", str(tmp_path / "r")], capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr
    patched = tmp_path / "r/rack1/hosts/worker1/patches/kubeletconfiguration.yaml"
    assert "maxPods: 42" in patched.read_text()
    assert not (tmp_path / "r/rack2/hosts/worker1").exists()


def test_folder_without_a_record_cannot_be_deprovisioned(fleet: Fleet) -> None:
    fleet.write()
    failed = fleet.run("deprovision")
    assert failed.returncode == 4
    assert "error[no-record]" in failed.stderr
