"""kubeadm itself beside garboard: the same text printed, the same files accepted, the same problems named."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from garboard.cli.main import run
from garboard.config import ConfigFile, FixedFacts, InvalidConfiguration, ReadOptions, check_file
from garboard.documents import read_stream, write_yaml
from garboard.errors import GarboardError
from garboard.host.facts import MachineFacts
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from tests.support.config.configurations import COMPONENTS, EXPERIMENTAL, INVALID, V1BETA3, VALID, VALID_SINCE_1_37

pytestmark = [
    pytest.mark.real,
    pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str),
]
OLDER, NEWER = SUPPORTED_VERSIONS[:2]

# Where garboard means to differ (docs/compatibility.md): tokens are not repeated, YAML errors have a place, and hints
# name garboard's commands.
OTHER_WORDS = {
    "token text", "join with half a discovery", "not yaml", "separator with text", "flow style that begins like json",
    "component in flow style", "old api", "component config of another version",
}  # fmt: skip
RANDOM_TOKEN = re.compile(r"token: [a-z0-9]{6}\.[a-z0-9]{16}")


class Kubeadm:
    def __init__(self, program: Path) -> None:
        self.program = program

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=60, check=False)
        errors = [line for line in done.stderr.splitlines() if not re.match(r"[WI][0-9]{4} |To see the stack", line)]
        return done.returncode, done.stdout, "\n".join(errors).removeprefix("error: ")

    def warnings(self, *arguments: str) -> list[str]:
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=60, check=True)
        # A warning may go on over several lines; each begins with its level, time and place in the source.
        return [entry.strip() for entry in re.split(r"(?m)^W[^\]\n]*\] ", done.stderr)[1:]]

    def dry_run(self, folder: Path, *arguments: str) -> Path:
        """Run with --dry-run and return the folder of the files that would have been written."""
        folder.mkdir()
        environment = {"KUBEADM_INIT_DRYRUN_DIR": str(folder), "PATH": os.environ["PATH"]}
        command = [str(self.program), *arguments, "--dry-run"]
        subprocess.run(command, capture_output=True, timeout=60, check=True, env=environment)
        return folder


@pytest.fixture
def kubeadm(binaries: Binaries, version: KubernetesVersion) -> Kubeadm:
    return Kubeadm(binaries.locate("kubeadm", str(version)))


def garboard(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = run(list(arguments))
    return status, capsys.readouterr().out


def written(tmp_path: Path, text: str, version: KubernetesVersion) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(text.replace("VERSION", str(version)))
    return str(path)


@pytest.mark.parametrize("what", ["init", "join", "reset", "upgrade"])
def test_printed_defaults_are_equal(
    kubeadm: Kubeadm, version: KubernetesVersion, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["config", "print", f"{what}-defaults"]
    if what == "init":
        command += ["--component-configs", "KubeProxyConfiguration", "--component-configs", "KubeletConfiguration"]
    _, expected, _ = kubeadm(*command)
    assert garboard(capsys, *command, "--kubernetes-version", str(version)) == (0, expected)


@pytest.mark.parametrize("name", [*VALID, *VALID_SINCE_1_37])
def test_valid_file_is_accepted_and_printed_alike(
    kubeadm: Kubeadm, version: KubernetesVersion, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, (VALID | VALID_SINCE_1_37)[name], version)
    given_version = ("--kubernetes-version", str(version))
    assert kubeadm("config", "validate", "--config", path) == (0, "ok\n", "")
    assert garboard(capsys, "config", "validate", "--config", path, *given_version) == (0, "ok\n")
    status, migrated = garboard(capsys, "config", "migrate", "--old-config", path, *given_version)
    assert status == 0
    if version == OLDER and name in VALID_SINCE_1_37:
        return  # kubeadm 1.36 cannot migrate an UpgradeConfiguration
    assert settled(migrated) == settled(
        with_kept_timeout(kubeadm("config", "migrate", "--old-config", path)[1], version)
    )


def settled(text: str) -> str:
    """Drop what is random: the token of a file that names none."""
    return RANDOM_TOKEN.sub("token: random", text)


def with_kept_timeout(text: str, version: KubernetesVersion) -> str:
    """Undo a defect of kubeadm 1.36, which forgets this timeout when it migrates v1beta4."""
    if version != OLDER:
        return text
    return text.replace("controlPlaneComponentHealthCheck: 0s", "controlPlaneComponentHealthCheck: 4m0s")


@pytest.mark.parametrize("name", [name for name, text in VALID.items() if "ClusterConfiguration" in text])
@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_images_are_listed_alike(
    kubeadm: Kubeadm,
    version: KubernetesVersion,
    name: str,
    output: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ("config", "images", "list", "--config", written(tmp_path, VALID[name], version), "--output", output)
    assert garboard(capsys, *command) == (0, kubeadm(*command)[1])


@pytest.mark.parametrize("flags", [
    ("--image-repository", "example.com/k8s"),
    ("--feature-gates", "RootlessControlPlane=true"),
    ("--feature-gates", "Nonsense=true"),
    ("--feature-gates", "RootlessControlPlane"),
    ("--image-repository", "UPPER CASE"),
], ids=" ".join)  # fmt: skip
def test_images_are_listed_alike_from_flags(
    kubeadm: Kubeadm, version: KubernetesVersion, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("config", "images", "list", "--kubernetes-version", str(version), *flags)
    expected_status, expected, _ = kubeadm(*command)
    status, listed = garboard(capsys, *command)
    assert (status == 0, listed) == (expected_status == 0, expected)


@pytest.mark.parametrize("suffix", ["-rc.1", "-alpha.1.20+0123abc", "+build-5"])
@pytest.mark.parametrize("prefix", ["", "ci/", "release/"])
def test_versions_become_the_same_tags(
    kubeadm: Kubeadm, version: KubernetesVersion, prefix: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("config", "images", "list", "--kubernetes-version", f"{prefix}{version}{suffix}")
    assert garboard(capsys, *command) == (0, kubeadm(*command)[1])


@pytest.mark.parametrize("name", V1BETA3)
def test_v1beta3_is_read_by_1_36_and_migrated_by_garboard_only_at_1_37(
    kubeadm: Kubeadm, version: KubernetesVersion, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, V1BETA3[name], version)
    given_version = ("--kubernetes-version", str(version))
    accepted, _, _ = kubeadm("config", "validate", "--config", path)
    status, _ = garboard(capsys, "config", "validate", "--config", path, *given_version)
    assert (status == 0) == (accepted == 0) == (version == OLDER)
    status, migrated = garboard(capsys, "config", "migrate", "--old-config", path, *given_version)
    assert status == 0
    if version == OLDER:
        assert settled(migrated) == settled(kubeadm("config", "migrate", "--old-config", path)[1])
    else:
        fresh = tmp_path / "migrated.yaml"
        fresh.write_text(migrated)
        assert settled(kubeadm("config", "migrate", "--old-config", str(fresh))[1]) == settled(migrated)


@pytest.mark.parametrize("name", EXPERIMENTAL)
@pytest.mark.parametrize("flags", [(), ("--allow-experimental-api",)], ids=["not allowed", "allowed"])
def test_v1_is_checked_and_migrated_alike(
    kubeadm: Kubeadm,
    version: KubernetesVersion,
    name: str,
    flags: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = written(tmp_path, EXPERIMENTAL[name], version)
    given_version = ("--kubernetes-version", str(version))
    for command in (("config", "validate", "--config", path), ("config", "migrate", "--old-config", path)):
        expected_status, expected, _ = kubeadm(*command, *flags)
        status, printed = garboard(capsys, *command, *flags, *given_version)
        assert (status == 0, settled(printed)) == (expected_status == 0, settled(expected))
        assert version != OLDER or status != 0


@pytest.mark.parametrize("name", INVALID)
def test_invalid_file_is_refused_with_the_same_problems(
    kubeadm: Kubeadm, version: KubernetesVersion, name: str, tmp_path: Path
) -> None:
    text = INVALID[name].replace("VERSION", str(version))
    status, _, told = kubeadm("config", "validate", "--config", written(tmp_path, text, version))
    assert status != 0
    options = ReadOptions(is_strict=True, detects_cri=False)
    with pytest.raises(GarboardError) as caught:
        check_file(ConfigFile.read(text, file="config.yaml", host=FixedFacts(), options=options, version=version))
    if name not in OTHER_WORDS:
        assert not left_untold(told, caught.value), told


def left_untold(told: str, error: GarboardError) -> str:
    """Return what kubeadm says and we do not; it joins problems by commas, within brackets if there are several."""
    problems = (
        error.problems if isinstance(error, InvalidConfiguration) else (error.message, error.message.partition(": ")[2])
    )
    for problem in problems:
        without_line = re.sub(r" \(line [0-9]+\)$", "", problem)
        for wording in (without_line, without_line.partition("strict decoding error: ")[2]):
            told = told.replace(wording, "") if wording else told
    return told.strip("[], ")


@pytest.mark.parametrize("name", COMPONENTS)
def test_component_configurations_are_completed_alike(
    kubeadm: Kubeadm, version: KubernetesVersion, name: str, tmp_path: Path
) -> None:
    text = COMPONENTS[name].replace("VERSION", str(version))
    path = written(tmp_path, text, version)
    status, manifests, _ = kubeadm("init", "phase", "addon", "kube-proxy", "--print-manifest", "--config", path)
    assert status == 0
    kubelet_files = kubeadm.dry_run(tmp_path / "dry-run", "init", "phase", "kubelet-start", "--config", path)
    loaded = ConfigFile.read(text, file=path, host=MachineFacts(), options=ReadOptions(detects_cri=False)).init()
    facts = loaded.config.cluster.facts
    assert write_yaml(loaded.components.kube_proxy.printed(facts)) == kube_proxy_config(manifests) + "\n"
    # On a node the kubelet's own instance configuration has been merged in already.
    kubelet = {
        **loaded.components.kubelet.printed(facts),
        "containerRuntimeEndpoint": loaded.config.node_registration.cri_socket,
    }
    assert write_yaml(kubelet) == (kubelet_files / "config.yaml").read_text()


def kube_proxy_config(manifests: str) -> str:
    for manifest in read_stream(manifests, source="kubeadm"):
        match manifest.value:
            case {"kind": "ConfigMap", "data": {"config.conf": str(text)}}:
                return text
            case _:
                continue
    pytest.fail("kubeadm printed no configuration of kube-proxy")


@pytest.mark.parametrize("name", [*COMPONENTS, "unknown fields", "repeated keys"])
def test_warnings_are_the_same(kubeadm: Kubeadm, version: KubernetesVersion, name: str, tmp_path: Path) -> None:
    text = (COMPONENTS | INVALID)[name].replace("VERSION", str(version))
    path = written(tmp_path, text, version)
    told = kubeadm.warnings("config", "images", "list", "--config", path)
    loaded = ConfigFile.read(text, file=path, host=MachineFacts(), options=ReadOptions(detects_cri=False)).init()
    assert set(loaded.warnings) == set(told)
