"""The tunnel's modules compiled: the extensions are those of the sources, and a wheel has them if that is asked for."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.compiled.modules import HOT, SHARED, extensions, for_mypyc

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
_LOADED = """
import importlib, sys
names = [f"garboard.{name.replace('/', '.')}" for name in sys.argv[1:]]
print(*(importlib.import_module(name).__file__ for name in names))
"""


def test_every_module_that_is_compiled_exists() -> None:
    assert [name for name in HOT if not (SOURCE / f"garboard/{name}.py").is_file()] == []
    assert len(set(HOT)) == len(HOT)


def test_the_type_that_mypyc_does_not_find_is_imported_behind_the_docstring() -> None:
    text = '"""A module."""\n\nview = memoryview(b"")\n'
    assert for_mypyc(text) == '"""A module."""\nfrom builtins import memoryview\n\nview = memoryview(b"")\n'
    assert for_mypyc('"""A module."""\n') == '"""A module."""\n'


def test_every_module_that_names_it_has_a_docstring_to_put_it_behind() -> None:
    texts = [(SOURCE / f"garboard/{name}.py").read_text() for name in HOT]
    assert all(for_mypyc(text) != text for text in texts if "memoryview" in text)


@pytest.mark.real
@pytest.mark.timeout(900)
def test_extensions_take_the_place_of_their_sources(tmp_path: Path) -> None:
    made = extensions(SOURCE)
    assert len([*made.rglob("*.so")]) == len(HOT) + 1
    environment = {**os.environ, "PYTHONPATH": str(_with_sources(made, tmp_path))}
    told = subprocess.run(
        [sys.executable, "-c", _LOADED, *HOT], env=environment, check=True, capture_output=True, text=True
    )
    assert all(path.endswith(".so") for path in told.stdout.split())


def _with_sources(made: Path, folder: Path) -> Path:
    for path in (*SOURCE.rglob("*.py"), *made.rglob("*.so")):
        link = folder / path.relative_to(SOURCE if path.suffix == ".py" else made)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    return folder


@pytest.mark.real
@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_wheel_is_for_every_python_unless_extensions_are_asked_for(is_compiled: bool, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir")
    asked = {"HATCH_BUILD_HOOK_ENABLE_CUSTOM": "true"} if is_compiled else {}
    subprocess.run([*command, str(tmp_path), str(ROOT)], check=True, env={**os.environ, **asked})
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl") != is_compiled
    with zipfile.ZipFile(wheel) as archive:
        found = [name for name in archive.namelist() if name.endswith(".so")]
    assert any(name.startswith(SHARED) for name in found) == is_compiled
    assert len(found) == (len(HOT) + 1 if is_compiled else 0)
