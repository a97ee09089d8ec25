"""The tunnel's modules compiled: the extensions are those of the sources, and a wheel has them if that is asked for."""

import os
import subprocess
import sys
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools.compiled import cache
from tools.compiled.cache import extensions
from tools.compiled.modules import EXTENSIONS, HOT, SHARED, for_mypyc, is_whole

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


@dataclass
class FakeCompiler:
    """Stands in for mypyc: every extension is a file with a few bytes."""

    source: Path
    done: list[Path] = field(default_factory=list)
    # Two that compile at once meet here; one that is alone goes on after a moment.
    meeting: threading.Barrier = field(default_factory=lambda: threading.Barrier(2, timeout=0.5))

    def __call__(self, folder: Path) -> None:
        self.done.append(folder)
        with suppress(threading.BrokenBarrierError):
            self.meeting.wait()
        for path in EXTENSIONS:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(b"code")

    def edit(self, text: str) -> None:
        (self.source / "garboard/rpc/wire.py").write_text(text)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCompiler:
    """The cache and the sources are folders of the test."""
    (tmp_path / "src/garboard/rpc").mkdir(parents=True)
    fake = FakeCompiler(tmp_path / "src")
    fake.edit("first = True\n")
    monkeypatch.setattr(cache, "_CACHE", tmp_path / "cache")
    monkeypatch.setattr(cache, "compile_copy", fake)
    return fake


def made_days_ago(made: Path, days: int) -> Path:
    moment = time.time() - days * 86_400
    os.utime(made, (moment, moment))
    return made


def test_same_sources_are_compiled_once_also_by_two_at_once(compiler: FakeCompiler) -> None:
    with ThreadPoolExecutor(2) as both:
        first, second = both.map(extensions, [compiler.source] * 2)
    assert first == second == extensions(compiler.source)
    assert is_whole(first)
    assert len(compiler.done) == 1


def test_other_sources_leave_what_somebody_was_just_given(compiler: FakeCompiler) -> None:
    first = extensions(compiler.source)
    compiler.edit("second = True\n")
    second = extensions(compiler.source)
    assert first != second
    assert is_whole(first)
    assert is_whole(second)


def test_what_was_not_wanted_for_a_day_is_removed(compiler: FakeCompiler) -> None:
    old = made_days_ago(extensions(compiler.source), 2)
    left_by_a_kill = old.with_name(".new-x")
    left_by_a_kill.mkdir()
    made_days_ago(left_by_a_kill, 2)
    compiler.edit("second = True\n")
    wanted = made_days_ago(extensions(compiler.source), 2)
    assert not old.exists()
    assert not left_by_a_kill.exists()
    assert extensions(compiler.source) == wanted
    compiler.edit("third = True\n")
    last = extensions(compiler.source)
    assert {path for path in last.parent.iterdir() if path.is_dir()} == {wanted, last}


def test_what_a_removal_has_left_is_made_again(compiler: FakeCompiler) -> None:
    made = extensions(compiler.source)
    (made / min(EXTENSIONS)).unlink()
    assert extensions(compiler.source) == made
    assert is_whole(made)
    assert len(compiler.done) == 2


def test_copy_that_is_cut_short_has_no_name_and_leaves_nothing(
    compiler: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_file: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            extensions(compiler.source)
    assert [path for path in cache._CACHE.iterdir() if path.is_dir()] == []
    assert is_whole(extensions(compiler.source))


def test_sources_that_are_edited_while_they_are_compiled_are_compiled_again(
    compiler: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edited_meanwhile(folder: Path) -> None:
        compiler(folder)
        compiler.edit("second = True\n")

    monkeypatch.setattr(cache, "compile_copy", edited_meanwhile)
    first = extensions(compiler.source)
    assert extensions(compiler.source) != first
    assert len(compiler.done) == 2


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
