"""What the programs of the other tests run: the sources, or compiled modules if the tests are given `--compiled`."""

import subprocess
from pathlib import Path

import pytest

from tests.support.tunnel.programs import OURS, Program, programs
from tools.compiled.modules import HOT, SHARED, digest, is_whole
from tools.harness.certificates import Certificates

pytestmark = pytest.mark.real

SOURCE = Path(__file__).parents[2] / "src"
_FILES = """
import importlib, sys
import garboard, tests.support.tunnel.command
print(*garboard.__path__, *(importlib.import_module(name).__file__ for name in sys.argv[1:]), sep="\\n")
"""


@pytest.fixture
def is_compiled(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--compiled"))


def has_compiled_code(program: Program) -> bool:
    """Whether the code of the extensions is in the memory of a running program: one of them holds that of all."""
    return f"/{SHARED}__mypyc." in Path(f"/proc/{program.process.pid}/maps").read_text()


def test_running_programs_are_compiled_only_if_they_should_be(
    certificates: Certificates, front: str, tmp_path: Path, is_compiled: bool
) -> None:
    with programs(None, certificates, tmp_path) as started:
        server = started.server("ours", "grpc", front)
        agent = started.agent("ours", server)
        agent.wait_for("/readyz")
        assert [has_compiled_code(server), has_compiled_code(agent)] == [is_compiled, is_compiled]


def test_every_module_of_the_list_is_that_of_the_sources_as_they_are(is_compiled: bool) -> None:
    """Compiled modules lie beside a copy of the sources that they were made from."""
    names = [f"garboard.{name.replace('/', '.')}" for name in HOT]
    told = subprocess.run([OURS[0], "-c", _FILES, *names], check=True, capture_output=True, text=True)
    package, *files = map(Path, told.stdout.splitlines())
    assert {path.suffix for path in files} == {".so" if is_compiled else ".py"}, package
    assert all(path.is_relative_to(package) for path in files)
    assert is_whole(package.parent) == is_compiled
    assert digest(package.parent) == digest(SOURCE)
