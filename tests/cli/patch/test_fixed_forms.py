"""The three command forms that others script against, run on every shared vector."""

import json
from pathlib import Path
from typing import Any

import pytest

from garboard.cli.main import run
from tests.support.equality import same_value

VECTORS = Path(__file__).parents[2] / "vectors" / "patches"
AT_136 = ["--kubernetes-version", "v1.36.4"]
DELIBERATE = {"test-null-inside-array-crashes"}


def vectors(*names: str) -> list[Any]:
    return [
        pytest.param(vector, id=vector["name"])
        for name in names
        for vector in json.loads((VECTORS / f"{name}.json").read_text())["vectors"]
        if vector["name"] not in DELIBERATE
    ]


def check(vector: dict[str, Any], status: int, captured: pytest.CaptureFixture[str]) -> None:
    out, err = captured.readouterr()
    if "error" in vector:
        assert status == 3, out
        assert out == ""
        assert vector["error"] == "crash" or err.startswith(f"error[{vector['error']}]: "), err
    else:
        assert status == 0, err
        if "expectedYAML" in vector:
            assert out == vector["expectedYAML"]
        else:
            assert same_value(json.loads(out), vector["expected"])


@pytest.mark.parametrize("vector", vectors("strategic", "json-patch", "merge-patch"))
def test_apply_one_patch(vector: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, patch = tmp_path / "original.yaml", tmp_path / "patch.yaml"
    original.write_text(json.dumps(vector["original"]))
    patch.write_text(vector["patchText"] if "patchText" in vector else json.dumps(vector["patch"], ensure_ascii=False))
    form = ["patch", "apply", "--compat", "--type", vector["type"], "--kind", vector.get("kind", "")]
    status = run([*form, "-f", str(original), "--patch-file", str(patch), "-o", "json", *AT_136])
    check(vector, status, capsys)


@pytest.mark.parametrize("vector", vectors("yaml"))
def test_empty_merge_patch_converts(vector: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, patch = tmp_path / "original", tmp_path / "patch.yaml"
    is_writing = vector["type"] == "yaml-write"
    original.write_bytes(vector["json" if is_writing else "yaml"].encode("utf-8", "surrogatepass"))
    patch.write_text("{}")
    form = ["patch", "apply", "--compat", "--type", "merge", "-f", str(original), "--patch-file", str(patch)]
    status = run([*form, "-o", "yaml" if is_writing else "json"])
    check(vector, status, capsys)


@pytest.mark.parametrize("vector", vectors("kubeadm"))
def test_apply_a_directory_to_a_target(
    vector: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in vector["files"].items():
        file = tmp_path / "patches" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    base = str(VECTORS / vector["base"])
    form = ["patch", "apply", "--compat", "--target", vector["target"], "-f", base]
    status = run([*form, "--patches", str(tmp_path / "patches"), "-o", "yaml", *AT_136])
    check(vector, status, capsys)


@pytest.mark.parametrize("vector", vectors("create"))
def test_create(vector: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    form = ["patch", "create", "--compat", "--kind", vector["kind"]]
    for name in ("original", "modified", "current"):
        if name in vector:
            (tmp_path / name).write_text(json.dumps(vector[name]))
            form += [f"--{name}", str(tmp_path / name)]
    if "overwrite" in vector:
        form += ["--overwrite", str(vector["overwrite"]).lower()]
    if vector.get("preconditions"):
        form += ["--preconditions", ",".join(vector["preconditions"])]
    status = run([*form, "-o", "json", *AT_136])
    check(vector, status, capsys)
