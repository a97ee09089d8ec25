from garboard.engine import MakeFolder, Note, Plan, Step, WriteFile, paths_written
from tests.support.engine.actions import issue


def test_paths_written_are_those_of_files_and_of_what_is_issued() -> None:
    steps = (
        Step(WriteFile(path="/a", content=b"", mode=0o600), ""),
        Step(MakeFolder(path="/b", mode=0o700), ""),
        Step(issue("x", "/c.key", "/c.crt"), ""),
    )
    assert paths_written(steps) == {"/a", "/c.key", "/c.crt"}


def test_warnings_are_the_notes_that_warn() -> None:
    warning = Note("odd", is_warning=True)
    assert Plan(notes=(Note("fine"), warning)).warnings == (warning,)
