"""The store of runs: which of them are no run yet, and which are damaged."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from garboard.engine import Journal, Observers, Plan, RunHeader, Step, WriteFile
from garboard.errors import NotReady
from garboard.host.node_machine import NodeMachine
from garboard.node.runs import Runs

STARTED_AT = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)


def begun(runs: Runs, tmp_path: Path, *, steps: int) -> Path:
    """Begin a run that replaces a file, and return its folder."""
    (tmp_path / "former").write_text("the only copy")
    plan = Plan((Step(WriteFile(path=str(tmp_path / "former"), content=b"new", mode=0o600), "", "files"),))
    header = RunHeader(run="", command="init", started_at=STARTED_AT)
    folder = runs.new_folder(header)
    journal = Journal.begin_run(folder, runs.codec, Observers(files=runs.machine), header, plan)
    for index in range(steps):
        journal.begin(index, plan.steps[index])
    return folder.path


@pytest.fixture
def runs(state_dir: Path) -> Runs:
    return Runs(NodeMachine(None))


@pytest.mark.parametrize("data", [b"\0" * 2000, b"\0", b"", b'{"type":"plan","form'], ids=len)
def test_run_whose_lines_have_gone_is_damaged_and_keeps_what_it_had_kept(
    runs: Runs, tmp_path: Path, data: bytes
) -> None:
    folder = begun(runs, tmp_path, steps=1)
    (folder / "journal.jsonl").write_bytes(data)
    kept = sorted((folder / "kept").iterdir())
    assert [each.folder.name for each in runs.damaged()] == [folder.name]
    with pytest.raises(NotReady, match=rf"the journal of run {folder.name} is damaged") as caught:
        runs.refuse_open()
    assert f"garboard runs forget {folder.name}" in (caught.value.hint or "")
    runs.tidy()
    assert sorted((folder / "kept").iterdir()) == kept
    aside = Path(runs.forget(folder.name).place)
    assert b"the only copy" in [each.read_bytes() for each in (aside / "kept").iterdir()]
    runs.refuse_open()


def test_journal_that_has_gone_altogether_counts_too(runs: Runs, tmp_path: Path) -> None:
    folder = begun(runs, tmp_path, steps=1)
    (folder / "journal.jsonl").unlink()
    assert [each.folder.name for each in runs.damaged()] == [folder.name]


@pytest.mark.parametrize("size", [None, 0, 1, 14, 40, -1], ids=lambda size: "no journal" if size is None else f"{size}")
def test_run_that_was_killed_before_its_plan_was_written_is_none(runs: Runs, tmp_path: Path, size: int | None) -> None:
    folder = begun(runs, tmp_path, steps=0)
    journal = folder / "journal.jsonl"
    data = journal.read_bytes()
    journal.unlink()
    if size is not None:
        journal.write_bytes(data[:size])
    assert (runs.all(), runs.damaged()) == ((), ())
    runs.tidy()
    assert not folder.exists()
