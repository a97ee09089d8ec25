"""A target three ways: how the file of a node stands, and what is shown of it."""

import pytest

from garboard.phases.live import LiveState, LiveTarget

RENDERED, PATCHED = "a: 1\nb: 1\n", "a: 1\nb: 2\n"


def target(data: bytes | None, *, patched: str = PATCHED) -> LiveTarget:
    return LiveTarget.of("etcd", "/etc/etcd.yaml", rendered=RENDERED, patched=patched, data=data)


@pytest.mark.parametrize(
    ("data", "state", "diffs"),
    [
        pytest.param(None, LiveState.MISSING, 1, id="no file"),
        pytest.param(b"b: 2\na: 1\n", LiveState.PATCHED, 1, id="the same, written otherwise"),
        pytest.param(RENDERED.encode(), LiveState.UNPATCHED, 1, id="not patched yet"),
        pytest.param(b"a: 3\nb: 2\n", LiveState.DIFFERENT, 2, id="edited by hand"),
    ],
)
def test_state_of_a_file(data: bytes | None, state: LiveState, diffs: int) -> None:
    assert target(data).state is state
    assert len(target(data).diffs()) == diffs


def test_what_the_patches_change_is_told_apart_from_the_rest() -> None:
    by_patches, by_others = target(b"a: 3\nb: 2\n").diffs(context=0)
    assert by_patches.lines[3:] == ("-b: 1\n", "+b: 2\n")
    assert by_others.lines[3:] == ("-a: 1\n", "+a: 3\n")
    assert (by_others.before, by_others.after) == ("etcd (patched)", "/etc/etcd.yaml (on disk)")


def test_without_patches_a_file_as_rendered_is_as_it_should_be() -> None:
    assert target(RENDERED.encode(), patched=RENDERED).state is LiveState.PATCHED
