import json

import pytest

from garboard.cli.main import run
from garboard.node.via.remote_status import BadAnswer, RemoteRun, RemoteStatus, read_status, read_version

OPEN = RemoteRun("1-init", "init", "open", 40, 3)
DONE = RemoteRun("1-init", "init", "committed", 40, 40)


def test_own_answers_are_understood(state_dir: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "--all", "-o", "json"]) == 0
    assert read_status(capsys.readouterr().out) == RemoteStatus({}, "")
    assert run(["version", "-o", "json"]) == 0
    assert read_version(capsys.readouterr().out)


def test_runs_are_read_damaged_ones_too() -> None:
    document = {
        "runs": [
            {"run": "1-init", "command": "init", "state": "open", "steps": 40, "finished": 3, "failure": None},
            {"run": "2-join", "state": "damaged", "failure": "line 3 is no JSON"},
        ],
        "lockedBy": "garboard init (process 9)",
    }
    found = read_status(json.dumps(document))
    damaged = RemoteRun("2-join", "", "damaged", failure="line 3 is no JSON")
    assert found == RemoteStatus({"1-init": OPEN, "2-join": damaged}, "garboard init (process 9)")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("", id="nothing"),
        pytest.param('Welcome!\n{"runs": [], "lockedBy": ""}', id="a login shell that greets"),
        pytest.param("[]", id="a list"),
        pytest.param('{"runs": []}', id="an older garboard"),
        pytest.param('{"runs": [{"run": "1"}], "lockedBy": ""}', id="a run without a state"),
        pytest.param('{"runs": {}, "lockedBy": ""}', id="no list of runs"),
        pytest.param('{"runs": [7], "lockedBy": ""}', id="a run that is none"),
    ],
)
def test_other_answers_are_refused(answer: str) -> None:
    with pytest.raises(BadAnswer):
        read_status(answer)


def test_only_what_has_moved_is_of_the_command() -> None:
    old = RemoteRun("0-init", "init", "committed", 40, 40)
    before = RemoteStatus({"0-init": old})
    assert RemoteStatus({"0-init": old}).since(before) == ()
    assert RemoteStatus({"0-init": old, "1-init": OPEN}).since(before) == (OPEN,)
    assert RemoteStatus({"0-init": old, "1-init": DONE}).since(RemoteStatus({"1-init": OPEN, "0-init": old})) == (DONE,)
