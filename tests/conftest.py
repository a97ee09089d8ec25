"""What every test may ask for."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from garboard.host import Machine
from garboard.host.runs import STATE_DIR
from garboard.lab.binaries import Binaries
from tests.support.host.mounting import call_in_read_only_machine
from tests.support.tiers import keep_capability, leave_to_verify, longest_first
from tools.harness.answers import Answers, answers_home
from tools.harness.capabilities import CAPABILITIES
from tools.harness.durations import DurationRecorder

# A busy machine is no failure of the code, so no example has a deadline. CI tries the same examples on every run: what
# it says about a change is about the change; other examples are tried wherever people run the tests, and ten times as
# many by `make verify`.
settings.register_profile("everywhere", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("verify", deadline=None, max_examples=1000)
settings.load_profile("ci" if os.environ.get("CI") else "everywhere")
# What a process with clusters of four nodes takes at most.
_LAB_BYTES = 6_000_000_000


def _print_line(line: str) -> None:
    sys.__stderr__.write(f"{line}\n") if sys.__stderr__ else None


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("garboard")
    group.addoption("--fresh", action="store_true", help="make anew what is kept between runs")
    group.addoption(
        "--seed", type=int, default=int(time.time()) // 86_400, help="of samples and random input; else the day's"
    )
    group.addoption("--capability", choices=CAPABILITIES, help="run only the tests of this one")
    group.addoption(
        "--compiled", action="store_true", help="fail unless the tunnel runs compiled (PYTHONPATH=build/compiled)"
    )
    group.addoption("--record", metavar="TIER", help="write how long the tests took, for `python -m tools.budget`")


def pytest_configure(config: pytest.Config) -> None:
    tier = config.getoption("--record")
    if tier and not _is_worker():
        config.pluginmanager.register(DurationRecorder(tier))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.write_line(f"samples and random input by --seed={config.getoption('--seed')}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Do not fail because a capability has no tests in a tier."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.getoption("--capability"):
        session.exitstatus = pytest.ExitCode.OK


def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes `-n auto` starts: two if clusters of both fit into memory."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return 2 if available >= 2 * _LAB_BYTES and (os.cpu_count() or 1) > 1 else 1


def _is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


@pytest.hookimpl(tryfirst=True)  # before -m leaves out what is marked here
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    only = config.getoption("--capability")
    if only:
        config.hook.pytest_deselected(items=keep_capability(items, only))
    leave_to_verify(items, config.getoption("--seed"))
    if _is_worker():
        longest_first(items)


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The real programs: `binaries.locate("kubectl", "v1.36.4")` is a path, and builds it on first use."""
    return Binaries(Machine(), report=_print_line)


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """What samples and random input are drawn with: another one every day, unless --seed names it."""
    found: int = request.config.getoption("--seed")
    return found


@pytest.fixture(scope="session")
def answers(request: pytest.FixtureRequest) -> Iterator[Answers]:
    """What real programs answered to questions whose answer depends on nothing else; `--fresh` asks again."""
    kept = Answers(answers_home(), is_fresh=request.config.getoption("--fresh"))
    yield kept
    kept.prune()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test marked `read_only_machine` in a child that can write to its own folder alone, if we are root."""
    if pyfuncitem.get_closest_marker("read_only_machine") is None or os.geteuid() != 0:
        return None
    scratch: Path = pyfuncitem._request.getfixturevalue("tmp_path")
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    if failure := call_in_read_only_machine(lambda: pyfuncitem.obj(**arguments), scratch):
        pytest.fail(failure, pytrace=False)
    return True


@pytest.fixture(scope="session", autouse=True)
def machine_has_no_new_runs() -> Iterator[None]:
    """Fail if a test journaled into the folder of the machine: its open run would refuse every later one."""
    before = _runs_of_the_machine()
    yield
    assert _runs_of_the_machine() <= before


def _runs_of_the_machine() -> set[str]:
    runs = STATE_DIR / "runs"
    return {each.name for each in runs.iterdir()} if runs.is_dir() else set()


@pytest.fixture(autouse=True)
def state_dir(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands in this process journal: a folder of the test, never that of the machine."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setattr("garboard.host.runs.STATE_DIR", folder)
    return folder
