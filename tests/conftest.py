"""What every test may ask for."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from garboard.host import Machine
from garboard.lab.binaries import Binaries

# A busy machine is no failure of the code, so no example has a deadline. CI tries the same examples on every run: what
# it says about a change is about the change; other examples are tried wherever people run the tests.
settings.register_profile("everywhere", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "everywhere")


def _tell(line: str) -> None:
    sys.__stderr__.write(f"{line}\n") if sys.__stderr__ else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that may take longest where several processes share the work: none is left with them."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        longest: dict[Path, float] = {}
        for item in items:
            longest[item.path] = max(longest.get(item.path, 0), _timeout_s(item))
        items.sort(key=lambda item: -longest[item.path])


def _timeout_s(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The real programs: `binaries.locate("kubectl", "v1.36.4")` is a path, and builds it on first use."""
    return Binaries(Machine(), report=_tell)
