"""`change plan -o html` prints the page of a plan."""

from pathlib import Path

import pytest

from garboard.change.snapshot import snapshot_text
from garboard.cli.main import run
from tests.support.change.snapshots import f2


@pytest.mark.parametrize(
    ("request_", "status", "told"),
    [
        ("apiServer.extraArgs[profiling]=false", 10, "Allowed: nothing speaks against it."),
        ("networking.serviceSubnet=172.20.0.0/16", 11, "Blocked: nothing is done while this stands."),
    ],
)
def test_plan_is_printed_as_a_page(
    request_: str, status: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "snapshot.json"
    saved.write_text(snapshot_text(f2()))
    assert run(["change", "plan", "--set", request_, "--observed", str(saved), "-o", "html"]) == status
    page = capsys.readouterr().out
    assert page.startswith("<!DOCTYPE html>\n")
    assert page.endswith("</html>\n")
    assert told in page
    assert request_.partition("=")[0] in page
