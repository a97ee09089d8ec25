"""Commands in this process journal into a folder of the test, not into that of the machine."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state_dir(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setattr("garboard.host.runs.STATE_DIR", folder)
    return folder
