"""What follows from what a host says: may it be claimed, what is next there, may it be reset."""

import pytest

from garboard.errors import BadDocument
from garboard.fleet.installers import (
    BeginCommand,
    CommandDone,
    HostClaim,
    HostRefused,
    HostView,
    NextCommand,
    ResumeRun,
    next_command,
    reuse_of,
    why_not_claimed,
)
from garboard.fleet.installers.host_view import HostRun, read_view

PIN = "sha256:1"
CLAIM = HostClaim("c1-x", "cp1", PIN)


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (HostView(), ""),
        (HostView(files=("pki/ca.crt",)), "there is something in /etc/kubernetes (pki/ca.crt)"),
        (HostView(claim=CLAIM, files=("pki/ca.crt",), authorities=(PIN,)), ""),
        (HostView(claim=CLAIM, authorities=(f"sha256:0,{PIN}",)), ""),
        (HostView(claim=CLAIM, authorities=(PIN, "sha256:2")), "belongs to another cluster"),
        (HostView(claim=CLAIM, authorities=("unreadable",)), "belongs to another cluster"),
        (HostView(claim=HostClaim("o-1", "cp1", PIN)), "carries the infraID o-1"),
        (HostView(claim=HostClaim("c1-x", "cp2", PIN)), "two hosts of the install config lead to one machine"),
    ],
)
def test_host_is_claimed_if_it_is_bare_or_ours(view: HostView, said: str) -> None:
    assert said in why_not_claimed(view, CLAIM)
    assert bool(said) == bool(why_not_claimed(view, CLAIM))


def test_reuse_is_seen_by_the_authority() -> None:
    assert reuse_of(HostView(claim=CLAIM, authorities=("sha256:2",)), CLAIM)
    assert not reuse_of(HostView(claim=CLAIM), CLAIM)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ((), BeginCommand()),
        ((("join", "open"),), ResumeRun("0")),
        ((("join", "committed"),), CommandDone()),
        ((("join", "unconfirmed"),), CommandDone()),
        ((("join", "undone"),), BeginCommand()),
        ((("join", "committed"), ("reset", "committed")), BeginCommand()),
        ((("join", "undone"), ("join", "open")), ResumeRun("1")),
        ((("join", "committed"), ("certs renew", "committed")), CommandDone()),
    ],
)
def test_next_command_follows_from_the_runs_since_the_claim(
    runs: tuple[tuple[str, str], ...], expected: NextCommand
) -> None:
    found = tuple(HostRun(str(index), *each) for index, each in enumerate(runs))
    assert next_command(HostView(claim=CLAIM, runs=found), "join", "cp1") == expected


@pytest.mark.parametrize("run", [HostRun("1", "upgrade", "open"), HostRun("1", "", "damaged", "torn")])
def test_run_of_somebody_else_is_not_resumed(run: HostRun) -> None:
    with pytest.raises(HostRefused, match="run 1"):
        next_command(HostView(claim=CLAIM, runs=(run,)), "join", "cp1")


def test_view_is_read_as_it_was_written() -> None:
    view = HostView(
        claim=CLAIM, files=("a",), authorities=(PIN,), runs=(HostRun("1", "init", "open", "x"),), locked_by="y"
    )
    assert read_view(view.document()) == view
    assert read_view(HostView().document()) == HostView()


@pytest.mark.parametrize("document", [None, [], {}, {**HostView().document(), "claim": {"infraID": ""}}, "x"])
def test_answer_that_is_no_view_is_refused(document: object) -> None:
    with pytest.raises(BadDocument):
        read_view(document)  # type: ignore[arg-type]
