"""What every test may ask for."""

import sys

import pytest

from garboard.host import Machine
from garboard.lab.binaries import Binaries


def _tell(line: str) -> None:
    sys.__stderr__.write(f"{line}\n") if sys.__stderr__ else None


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The real programs: `binaries.locate("kubectl", "v1.36.4")` is a path, and builds it on first use."""
    return Binaries(Machine(), report=_tell)
