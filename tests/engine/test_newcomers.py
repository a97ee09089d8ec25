"""What came into folders that an interrupted run is still to empty."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from garboard.engine import Action, ControlService, EmptyFolder, Plan, RemoveSandboxes, Step
from garboard.engine.journal import Progress, RunHeader, RunRecord
from garboard.engine.newcomers import newcomers, sparing

KILLED_AT = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)
STOP = ControlService(service="kubelet", verb="stop")


@dataclass
class Changed:
    """Folders with what has changed in them."""

    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def changed_since(self, path: str, moment: datetime) -> tuple[str, ...]:
        assert moment == KILLED_AT
        return self.paths.get(path, ())


def record(*finished: int) -> RunRecord:
    header = RunHeader(run="run-1", command="reset", started_at=KILLED_AT)
    return RunRecord(header, Progress(finished={index: {} for index in finished}), last_at=KILLED_AT)


def plan(*actions: Action) -> Plan:
    return Plan(tuple(Step(each, "") for each in actions))


def test_names_in_the_folder_are_told_once_and_kept_ones_not_at_all() -> None:
    files = Changed({"/pki": ("ca.key", "etcd/ca.key", "etcd/ca.crt", "kept/x")})
    whole = plan(EmptyFolder(path="/pki", keeps=("kept",)))
    found = newcomers(whole, record(), files)
    assert found == {0: ("ca.key", "etcd")}
    assert sparing(whole, found) == plan(EmptyFolder(path="/pki", keeps=("kept", "ca.key", "etcd")))


@pytest.mark.parametrize(
    ("is_quiet", "finished", "is_told"),
    [
        pytest.param(False, (), False, id="the kubelet may have written it"),
        pytest.param(False, (0,), False, id="a pod may have written it"),
        pytest.param(False, (0, 1), True, id="nothing runs that writes there"),
        pytest.param(True, (), True, id="no service writes there at all"),
        pytest.param(True, (0, 1, 2), False, id="it has been emptied"),
    ],
)
def test_folder_of_a_service_is_looked_at_once_the_service_is_stopped(
    is_quiet: bool, finished: tuple[int, ...], is_told: bool
) -> None:
    whole = plan(STOP, RemoveSandboxes(), EmptyFolder(path="/var/lib/kubelet", is_quiet=is_quiet))
    found = newcomers(whole, record(*finished), Changed({"/var/lib/kubelet": ("pods/x",)}))
    assert found == ({2: ("pods",)} if is_told else {})


def test_journal_that_does_not_say_when_it_ended_tells_nothing() -> None:
    whole = plan(EmptyFolder(path="/pki", is_quiet=True))
    assert newcomers(whole, replace(record(), last_at=None), Changed({"/pki": ("x",)})) == {}
