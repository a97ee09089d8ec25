"""Where programs come from, with a stand-in for `go` that records its calls and a server that is not there."""

import json
import threading
from pathlib import Path

import pytest

from garboard.errors import GarboardError, NotReady
from garboard.host import Machine
from garboard.lab.binaries import Binaries, BinarySource
from garboard.lab.binaries.pins import Pins

PINS = b"""
[kubernetes."v1.37.1"]
[alone]
one = "v2.0.0"
two = "v2.0.0"
[module."example.com/tool"]
variables = ["example.com/tool.version={version}"]
sum."v2.0.0" = "h1:expected"
[program.one]
module = "example.com/tool"
files.one = "cmd/one"
release = "plain"
[program.two]
module = "example.com/tool"
files.two = "cmd/two"
[release.plain]
url = "http://127.0.0.1:9/{program}"
checksum = "http://127.0.0.1:9/{program}.sha256"
"""

# Port 9 of the loopback address refuses at once, as a machine without a way out does.

GO = """#!/usr/bin/env python3
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
arguments = sys.argv[1:]
with (here / "calls").open("a") as calls:
    calls.write(json.dumps([arguments, os.environ["GOCACHE"]]) + "\\n")
if arguments[:2] == ["mod", "download"]:
    print(json.dumps({"Sum": "%s", "GoMod": str(here / "go.mod"), "Dir": str(here)}))
elif arguments[:2] == ["mod", "edit"]:
    print(json.dumps({"Go": "1.26"}))
elif arguments[0] == "build":
    pathlib.Path(os.environ["GOCACHE"]).mkdir(parents=True, exist_ok=True)
    out = pathlib.Path(arguments[arguments.index("-o") + 1])
    packages = arguments[arguments.index("-o") + 2:]
    for package in packages:
        made = out / package.rpartition("/")[2] if out.is_dir() else out
        made.write_text("#!/bin/sh\\necho " + package + "\\n")
        made.chmod(0o755)
"""


class GoMachine(Machine):
    """This machine with our own `go`."""

    def __init__(self, folder: Path, module_sum: str = "h1:expected") -> None:
        folder.mkdir()
        self.go = folder / "go"
        self.go.write_text(GO % module_sum)
        self.go.chmod(0o755)
        (folder / "go.sum").write_text("")

    def find_program(self, name: str) -> Path | None:
        return self.go if name == "go" else None

    def calls(self) -> list[list[str]]:
        return [json.loads(line)[0] for line in (self.go.parent / "calls").read_text().splitlines()]


def store(machine: Machine, tmp_path: Path, **options: object) -> Binaries:
    return Binaries(machine, cache=tmp_path / "cache", pins=Pins.parse(PINS), **options)  # type: ignore[arg-type]


def test_builds_take_over_when_no_release_can_be_reached(tmp_path: Path) -> None:
    machine = GoMachine(tmp_path / "go")
    said: list[str] = []
    binaries = store(machine, tmp_path, report=said.append)
    assert machine.run([binaries.locate("one")]).stdout == "example.com/tool/cmd/one\n"
    assert any("releases cannot be reached" in line for line in said)


def test_programs_of_one_module_are_built_in_one_call(tmp_path: Path) -> None:
    machine = GoMachine(tmp_path / "go")
    binaries = store(machine, tmp_path, source=BinarySource.BUILD)
    binaries.get([binaries.pins.wanted("one"), binaries.pins.wanted("two")])
    [build] = [call for call in machine.calls() if call[0] == "build"]
    assert build[-2:] == ["example.com/tool/cmd/one", "example.com/tool/cmd/two"]
    assert {"-trimpath", "-mod=mod"} <= set(build)
    assert "-s -w -X example.com/tool.version=v2.0.0" in build
    assert machine.run([binaries.locate("two")]).stdout == "example.com/tool/cmd/two\n"


def test_the_files_of_a_program_may_have_other_names_than_their_packages(tmp_path: Path) -> None:
    machine = GoMachine(tmp_path / "go")
    pins = PINS.replace(b'files.one = "cmd/one"', b'files.one = "cmd/server"\nfiles.extra = "cmd/agent"')
    binaries = Binaries(machine, cache=tmp_path / "cache", pins=Pins.parse(pins), source=BinarySource.BUILD)
    folder = binaries.locate("one")
    assert sorted(path.name for path in folder.iterdir()) == ["extra", "one"]
    assert machine.run([folder / "one"]).stdout == "example.com/tool/cmd/server\n"


def test_the_source_of_the_next_module_is_fetched_while_one_is_built(tmp_path: Path) -> None:
    """The build of `one` waits until the source of `other` was asked for, which one after the other would never be."""
    machine = GoMachine(tmp_path / "go")
    waits = """
    if "example.com/tool/cmd/one" in packages:
        import time
        limit = time.monotonic() + 20
        while '"list"' not in (here / "calls").read_text():
            assert time.monotonic() < limit, "nothing was fetched meanwhile"
            time.sleep(0.01)
"""
    machine.go.write_text(machine.go.read_text() + waits)
    other = b"""
[module."example.org/other"]
sum."v2.0.0" = "h1:expected"
[program.other]
module = "example.org/other"
files.other = "cmd/other"
"""
    pins = Pins.parse(PINS.replace(b'two = "v2.0.0"', b'two = "v2.0.0"\nother = "v2.0.0"') + other)
    binaries = Binaries(machine, cache=tmp_path / "cache", pins=pins, source=BinarySource.BUILD)
    binaries.get([pins.wanted("one"), pins.wanted("other")])
    assert not list((tmp_path / "cache/.build").glob("fetch-*"))


def test_trouble_with_fetching_ahead_is_told_by_the_build(tmp_path: Path) -> None:
    machine = GoMachine(tmp_path / "go")
    machine.go.write_text(machine.go.read_text() + "\nelif arguments[0] == 'list': sys.exit('no network')\n")
    pins = Pins.parse(PINS.replace(b'module = "example.com/tool"\nfiles.two', b'module = ""\nfiles.two')
                      .replace(b'files.two = "cmd/two"', b'files.two = "pause.go"'))  # fmt: skip
    binaries = Binaries(machine, cache=tmp_path / "cache", pins=pins, source=BinarySource.BUILD)
    assert [found.path.name for found in binaries.get([pins.wanted("two"), pins.wanted("one")])] == ["two", "one"]


def test_the_build_cache_does_not_outlive_the_build(tmp_path: Path) -> None:
    store(GoMachine(tmp_path / "go"), tmp_path).locate("one")
    assert not (tmp_path / "cache/.build/gocache").exists()


def test_the_build_cache_stays_when_asked_to(tmp_path: Path) -> None:
    store(GoMachine(tmp_path / "go"), tmp_path, keep_build_cache=True).locate("one")
    assert (tmp_path / "cache/.build/gocache").exists()
    given = tmp_path / "given"
    store(GoMachine(tmp_path / "go2"), tmp_path, build_cache=given).locate("two")
    assert given.exists()


def test_an_interrupted_build_keeps_what_it_has_compiled_and_the_next_one_goes_on(tmp_path: Path) -> None:
    machine = GoMachine(tmp_path / "go")
    real = machine.go.read_text()
    machine.go.write_text(real + "\n    out.unlink(); sys.exit('killed while linking')\n")
    binaries = store(machine, tmp_path, source=BinarySource.BUILD)
    with pytest.raises(GarboardError, match="killed while linking"):
        binaries.locate("two")
    assert (tmp_path / "cache/.build/gocache").exists()
    assert binaries.find(binaries.pins.wanted("two")) is None, "half a build is no program"
    machine.go.write_text(real)
    assert machine.run([binaries.locate("two")]).stdout == "example.com/tool/cmd/two\n"
    assert not (tmp_path / "cache/.build/gocache").exists()


def test_what_is_in_the_cache_is_not_made_again(tmp_path: Path) -> None:
    machine = GoMachine(tmp_path / "go")
    binaries = store(machine, tmp_path)
    path = binaries.locate("one")
    before = machine.calls()
    assert binaries.locate("one") == path
    assert machine.calls() == before


def test_a_given_folder_comes_first(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "one").write_text("#!/bin/sh\n")
    binaries = store(GoMachine(tmp_path / "go"), tmp_path, given=given)
    (given / "one").chmod(0o644)
    assert binaries.find(binaries.pins.wanted("one")) is None, "what cannot be run is no program"
    (given / "one").chmod(0o755)
    assert binaries.locate("one") == given / "one"


def test_a_module_with_another_hash_is_refused(tmp_path: Path) -> None:
    binaries = store(GoMachine(tmp_path / "go", module_sum="h1:tampered"), tmp_path)
    with pytest.raises(GarboardError, match="has the hash h1:tampered, pinned is h1:expected") as raised:
        binaries.locate("two")
    assert raised.value.error_class == "bad-checksum"


def test_without_go_the_hint_names_three_ways(tmp_path: Path) -> None:
    machine = GoMachine(tmp_path / "go")
    machine.find_program = lambda name: None  # type: ignore[method-assign]
    with pytest.raises(NotReady, match="no `go` on PATH") as raised:
        store(machine, tmp_path, source=BinarySource.BUILD).locate("two")
    assert raised.value.exit_code == 4
    assert raised.value.hint is not None
    assert "--from" in raised.value.hint


def test_two_at_once_build_once(tmp_path: Path) -> None:
    machine = GoMachine(tmp_path / "go")
    paths: list[Path] = []
    threads = [threading.Thread(target=lambda: paths.append(store(machine, tmp_path).locate("two"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paths)) == 1
    assert sum(call[:2] == ["mod", "download"] for call in machine.calls()) == 1


@pytest.mark.real
def test_pause_is_built_from_its_own_source(tmp_path: Path) -> None:
    # With the cache of this user, where Go's own library is compiled already.
    cache = Path(Machine().run(["go", "env", "GOCACHE"]).stdout.strip())
    binaries = Binaries(Machine(), cache=tmp_path, build_cache=cache)
    assert Machine().run([binaries.locate("pause"), "--version"]).stdout == "pause 3.10.2\n"


@pytest.mark.real
def test_real_programs_know_their_version(binaries: Binaries) -> None:
    for version in ("v1.36.4", "v1.37.1"):
        kubeadm = Machine().run([binaries.locate("kubeadm", version), "version", "-o", "short"])
        assert kubeadm.stdout == f"{version}\n"
    assert "3.7.0" in Machine().run([binaries.locate_for("etcd", "v1.37.1"), "--version"]).stdout
