"""Minors are data: a row of `model/minors.py` and generated schema data are all that a new one needs."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "src/garboard"
ROWS = "\n# The oldest first"
# As different from 1.37 as a row can be, so that a value that is not taken from the row shows.
ROW = """
from dataclasses import replace

_V1_38 = replace(
    _V1_37,
    reference=KubernetesVersion(1, 38, 0),
    etcd_tag="3.8.0-0",
    coredns_tag="v1.14.4",
    pause_tag="3.11",
    minimum_external_etcd="3.6.9-0",
    minimum_kubelet=Minor(1, 35),
    cgroup_driver_fallback_ends=Minor(1, 40),
    config_api=ConfigApi(
        written="kubeadm.k8s.io/v1",
        read=("kubeadm.k8s.io/v1", "kubeadm.k8s.io/v1beta4"),
        deprecated=("kubeadm.k8s.io/v1beta4",),
        removed={**_V1_37.config_api.removed, "kubeadm.k8s.io/v2alpha1": "v1.37"},
    ),
    feature_gates=(*_V1_37.feature_gates, KubeadmGate("MadeUpGate", default=True, stage="BETA")),
    patch_targets=(*_STATIC_POD_TARGETS, "kubeletconfiguration", "kubeproxydaemonset"),
    kube_proxy_mode="nftables",
    warns_about_ipvs=False,
    is_any_wildcard_bind_recommended=False,
    has_merge_method=False,
    has_resolv_conf_leak=True,
    checks_configured_bind_address=False,
    refuses_empty_image_volume=False,
    node_port_keywords=("primary", "elsewhere"),
    has_unlimited_events=False,
    refuses_unused_throttling_factor=False,
)
"""


def with_a_made_up_minor(folder: Path) -> Path:
    """Return a copy of the package to which Kubernetes 1.38 was added, as docs/adding-a-minor.md tells it."""
    package = folder / "garboard"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(package / "schema/data/v1.37", package / "schema/data/v1.38")
    minors = package / "model/minors.py"
    before, found, after = minors.read_text().partition(ROWS)
    assert found
    rows, count = re.subn(r"\bROWS = \((.*)\)", r"ROWS = (\1, _V1_38)", after, count=1)
    assert count == 1
    minors.write_text(before + ROW + found + rows)
    return package


def test_a_minor_that_was_added_as_data_alone_serves_everywhere(tmp_path: Path) -> None:
    package = with_a_made_up_minor(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.model.made_up_minor"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    failures = json.loads(done.stdout)
    assert not failures, "\n".join(f"{walk}:\n{told}" for walk, told in failures.items())


VERSION_TEXT = re.compile(r"v?1\.[34][0-9](\.[0-9]+)?")
MINOR_NUMBERS = range(33, 45)


def decided_by_minor(source: str) -> Iterator[int]:
    """Yield the lines that name a minor to decide by it: a version made of numbers, a table by minor, a comparison."""
    for each in ast.walk(ast.parse(source)):
        match each:
            case ast.Call(func=ast.Name(id="Minor" | "KubernetesVersion"), args=[ast.Constant(), *_]):
                yield each.lineno
            case ast.Dict(keys=keys) if any(_is_minor(key) for key in keys):
                yield each.lineno
            case ast.Compare(left=left, comparators=others) if _compares_minors((left, *others)):
                yield each.lineno
            case ast.MatchValue(value=value) if _is_minor(value):
                yield each.lineno


def _is_minor(part: ast.expr | None) -> bool:
    match part:
        case ast.Constant(value=str(text)):
            return VERSION_TEXT.fullmatch(text) is not None
        case ast.Constant(value=int(number)) | ast.Tuple(elts=[ast.Constant(value=1), ast.Constant(value=int(number))]):
            return number in MINOR_NUMBERS
        case _:
            return False


def _compares_minors(parts: tuple[ast.expr, ...]) -> bool:
    """Tell whether a minor is among the parts; a bare number is one only beside something that is called a minor."""
    are_called_so = any("minor" in ast.unparse(part) for part in parts)
    return any(_is_minor(part) and (are_called_so or not isinstance(_value(part), int)) for part in parts)


def _value(part: ast.expr) -> object:
    return part.value if isinstance(part, ast.Constant) else None


def test_only_the_rows_decide_by_minor() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path != PACKAGE / "model/minors.py"
        for line in decided_by_minor(path.read_text())
    ]
    assert not found, "what differs between minors is a field of MinorFacts (src/garboard/model/minors.py)"


@pytest.mark.parametrize("source", [
    '_ENDS = {36: "1.37", 37: "1.38"}',
    'VERSIONS = {"1.36": "v3.6.8"}',
    'TAGS = {(1, 36): "a"}',
    "SINCE = Minor(1, 37)",
    "is_new = version >= KubernetesVersion(1, 37, 0)",
    "is_new = facts.minor.minor >= 37",
    'is_old = str(minor) == "1.36"',
])  # fmt: skip
def test_deciding_by_minor_is_noticed(source: str) -> None:
    assert [*decided_by_minor(source)] == [1]
