"""The Go programs that tests compare with: built before the tests, into one build cache, and kept by their content."""

import json
import os
import re
import stat
from pathlib import Path

import pytest

from tools.harness import oracles
from tools.harness.go_programs import MAX_AGE_S, GoProgram, oracles_home, program_against, program_in, remove_unused
from tools.harness.oracles import all_programs

ROOT = Path(__file__).parents[2]
# A `go` that notes how it was called.
GO = """#!/bin/sh
printf '%s\\n' "$GOCACHE" "$@" >> "$CALLS"
case "$1" in build) printf 'made of %s' "$(cat main.go)" > program ;; esac
"""
# What calls `go` for other reasons: an image of a registry, the text of an API, the builder itself.
OTHERS = {"support/cri/containerd.py", "support/cri/upstream.py", "lab/binaries/test_store.py"}


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own and a `go` that compiles nothing; return what it was told."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/go").write_text(GO)
    (tmp_path / "bin/go").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/main.go").write_text("one")
    return tmp_path / "source"


def program(source: Path) -> GoProgram:
    return program_against("sample", source, {"example.com/a": "v1.0.0"})


def test_program_is_built_once_in_the_build_cache_of_the_labs_programs(calls: Path, source: Path) -> None:
    path = program(source).built()
    assert path.read_text() == "made of one"
    said = calls.read_text().splitlines()
    assert said[0].endswith("/cache/garboard/binaries/.build/gocache")
    assert {"-trimpath", "-gcflags=all=-dwarf=false"} <= set(said)
    assert program(source).built() == path
    assert calls.read_text().splitlines() == said


def test_another_source_or_version_is_another_program(calls: Path, source: Path) -> None:
    first = program(source).built()
    assert program_against("sample", source, {"example.com/a": "v1.0.1"}).path != first
    (source / "main.go").write_text("two")
    assert program(source).built().read_text() == "made of two"
    for name in ("go.mod", "go.sum"):
        (source / name).write_text(name)
    own = program_in("sample", source).path
    (source / "go.sum").write_text("other")
    assert program_in("sample", source).path != own


def test_what_nobody_has_wanted_for_long_goes(calls: Path, source: Path) -> None:
    kept = program(source).built()
    (source / "main.go").write_text("two")
    old = program(source).built()
    (oracles_home() / "killed.1.build").mkdir()
    for path in (old, oracles_home() / "killed.1.build"):
        os.utime(path, (0, 0))
    remove_unused(kept.stat().st_mtime + MAX_AGE_S / 2)
    assert [path.name for path in oracles_home().iterdir()] == [kept.name]


def test_all_are_built_and_the_build_cache_goes(calls: Path, monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    monkeypatch.setattr(oracles, "all_programs", lambda: [program(source)])
    build_cache = oracles_home().parent / "binaries/.build/gocache"
    build_cache.mkdir(parents=True)
    oracles.main()
    assert program(source).path.exists()
    assert not build_cache.exists()


def test_without_go_the_tests_that_need_none_can_run(
    calls: Path, monkeypatch: pytest.MonkeyPatch, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(oracles, "all_programs", lambda: [program(source)])
    monkeypatch.setenv("PATH", "/nowhere")
    oracles.main()
    assert "there is no `go` on PATH" in capsys.readouterr().err


def test_table_has_every_go_program_of_the_tests() -> None:
    named = json.dumps([program.name for program in all_programs()])
    folders = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("main.go")}
    assert folders == {"documents", "fleet", "net", "patches", "rpc", "tunnel"}
    assert len({program.path for program in all_programs()}) == len(all_programs()) >= 13
    for name in ("documents", "httpproxy", "patches", "grpc-go", "stock-client", "stock-metrics", "suite", "judge"):
        assert name in named


def test_no_test_builds_a_program_of_its_own() -> None:
    calling = re.compile(r"""["']go["'], \*?["'\w]""")
    tests = ROOT / "tests"
    found = {path.relative_to(tests).as_posix() for path in tests.rglob("*.py") if calling.search(path.read_text())}
    assert found == OTHERS
