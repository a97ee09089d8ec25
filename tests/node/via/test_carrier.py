"""Carriers that are small shell scripts: what they do to a command, and what is known of it afterwards.

The words that they are given, and the lines that come back, stay what they are.
"""

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard import __version__
from garboard.errors import BadUsage, GarboardError, NotReady
from garboard.node.via import Carrier, CommandEnded, CommandFound, CommandUnknown, NodeUnknown, RemoteRun, Via
from garboard.node.via.carrier import QUIET_S, Lines, printable
from garboard.retry import Clock
from tests.support.node.reporters import MemoryReporter
from tools.harness.scratch import GARBOARD

LONG_S = 120.0
CONFIG = """apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
nodeRegistration: {name: node-1, criSocket: unix:///run/none.sock}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
encryptionAlgorithm: ECDSA-P256
"""
CERTIFICATES_ONLY = (
    "--skip-phases=preflight,kubeconfig,etcd,control-plane,kubelet-start,wait-control-plane,upload-config,upload-certs,"
    "mark-control-plane,bootstrap-token,kubelet-finalize,addon,show-join-command"
)
# $1 is the name of the node, $2 garboard; what is left are the words.
_SCRIPT = """#!/bin/sh
cd {folder} || exit
node=$1; shift 2
case "$1" in
  version) . ./version ;;
  status) . ./status ;;
  *) . ./command ;;
esac
"""


@dataclass
class Nodes:
    """Nodes that one script stands for, a reporter that remembers, and time that passes only while somebody waits."""

    folder: Path
    reporter: MemoryReporter = field(default_factory=MemoryReporter)
    elapsed_s: float = 0.0

    def __post_init__(self) -> None:
        script = self.folder / "carrier"
        script.write_text(_SCRIPT.format(folder=shlex.quote(str(self.folder))))
        script.chmod(0o755)
        self.version_is(f'echo \'{{"garboard": "{__version__}"}}\'')
        self.status_is(answer())

    def version_is(self, script: str) -> None:
        (self.folder / "version").write_text(script)

    def status_is(self, *scripts: str) -> None:
        """Answer the first question with the first script, and so on; the last one answers all further ones."""
        for number, each in enumerate(scripts):
            (self.folder / f"status-{number}").write_text(each)
        (self.folder / "status").write_text(
            f"n=$(cat asked 2>/dev/null || echo 0); echo $((n + 1)) >asked\n"
            f"[ $n -lt {len(scripts)} ] || n={len(scripts) - 1}\n. ./status-$n\n"
        )

    def command_is(self, script: str) -> None:
        (self.folder / "command").write_text(script)

    def questions(self) -> int:
        return int((self.folder / "asked").read_text())

    def carrier(self) -> Carrier:
        return Carrier(Via.parse(f"{self.folder}/carrier {{node}}"), self.reporter, Clock(self._now_s, self._sleep))

    def change(self, *words: str, find_out_s: float = 300.0) -> CommandEnded | CommandFound:
        carrier = self.carrier()
        carrier.require_same_version(["cp2"])
        return carrier.change("cp2", words, timeout_s=LONG_S, find_out_s=find_out_s)

    def _now_s(self) -> float:
        return self.elapsed_s

    def _sleep(self, seconds: float) -> None:
        self.elapsed_s += seconds


@pytest.fixture
def nodes(tmp_path: Path) -> Nodes:
    return Nodes(tmp_path)


def answer(*runs: dict[str, object], locked_by: str = "") -> str:
    return f"echo {shlex.quote(json.dumps({'runs': runs, 'lockedBy': locked_by}))}"


def an_init(state: str, finished: int) -> dict[str, object]:
    return {"run": "1-init", "command": "init", "state": state, "steps": 9, "finished": finished}


def test_output_comes_line_by_line_with_the_name_of_the_node(nodes: Nodes) -> None:
    nodes.command_is("echo one; echo two >&2; printf 'no end'; exit 3")
    assert nodes.carrier().run("cp2", ["upgrade"], timeout_s=LONG_S) == CommandEnded(3)
    assert sorted(nodes.reporter.lines) == ["[cp2] no end", "[cp2] one", "[cp2] two"]


def test_line_is_reported_while_the_command_still_runs(nodes: Nodes) -> None:
    class Releasing(MemoryReporter):
        def report(self, line: str, /) -> None:
            super().report(line)
            (nodes.folder / "heard").touch()

    nodes.reporter = Releasing()
    nodes.command_is("echo first; while [ ! -e heard ]; do sleep 0.01; done; echo second")
    assert nodes.carrier().run("cp2", ["upgrade"], timeout_s=LONG_S) == CommandEnded(0)
    assert nodes.reporter.lines == ["[cp2] first", "[cp2] second"]


def test_flood_of_warnings_blocks_nothing(nodes: Nodes) -> None:
    nodes.command_is("yes 'warning: 0123456789' | head -n 20000 >&2; cat >got; echo done")
    secret = b"s3cret\n" * 50_000
    assert nodes.carrier().run("cp2", ["upgrade"], stdin=secret, timeout_s=LONG_S) == CommandEnded(0)
    assert (nodes.folder / "got").read_bytes() == secret
    assert nodes.reporter.lines.count("[cp2] warning: 0123456789") == 20_000
    assert nodes.reporter.lines[-1] == "[cp2] done"
    assert "s3cret" not in "".join(nodes.reporter.lines)


def test_secret_is_in_no_command_line(nodes: Nodes) -> None:
    nodes.command_is("tr '\\0' ' ' </proc/$$/cmdline; env; cat >/dev/null")
    nodes.carrier().run("cp2", ["upgrade", "--token=-"], stdin=b"abcdef.0123456789abcdef", timeout_s=LONG_S)
    told = "\n".join(nodes.reporter.lines)
    assert "--token=-" in told
    assert "0123456789abcdef" not in told
    with pytest.raises(BadUsage):
        nodes.carrier().run("cp2", ["upgrade", "--token", "a b"], timeout_s=LONG_S)


def test_terminal_of_the_coordinator_that_is_gone_stops_nothing(nodes: Nodes) -> None:
    class Gone(MemoryReporter):
        def report(self, line: str, /) -> None:
            raise BrokenPipeError(line)

    nodes.reporter = Gone()
    nodes.command_is("echo one; echo two; touch done")
    assert nodes.carrier().run("cp2", ["upgrade"], timeout_s=LONG_S) == CommandEnded(0)
    assert (nodes.folder / "done").exists()


@pytest.mark.parametrize("status", [0, 1, 4, 14, 127, 130])
def test_status_of_our_own_is_what_the_command_ended_with(nodes: Nodes, status: int) -> None:
    nodes.command_is(f"exit {status}")
    assert nodes.carrier().run("cp2", ["upgrade"], timeout_s=LONG_S) == CommandEnded(status)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param("exit 255", "the connection failed", id="as ssh ends"),
        pytest.param("kill -9 $$", "was ended by signal 9", id="killed"),
        pytest.param("exit 143", "was ended by signal 15", id="a shell whose program was ended"),
    ],
)
def test_lost_connection_leaves_the_outcome_unknown(nodes: Nodes, script: str, reason: str) -> None:
    nodes.command_is(f"echo begun; {script}")
    outcome = nodes.carrier().run("cp2", ["upgrade"], timeout_s=LONG_S)
    assert isinstance(outcome, CommandUnknown)
    assert reason in outcome.reason
    assert nodes.reporter.lines == ["[cp2] begun"]


def test_command_that_never_ends_is_unknown_at_its_deadline(nodes: Nodes) -> None:
    nodes.command_is("printf 'password: '; while :; do sleep 600; done")
    assert nodes.carrier().run("cp2", ["upgrade"], timeout_s=1.0) == CommandUnknown("it did not end within 1 s")
    assert nodes.reporter.lines == ["[cp2] password: "]


def test_node_is_asked_until_its_run_has_ended(nodes: Nodes) -> None:
    busy = answer(an_init("open", 4), locked_by="garboard init (process 7)")
    nodes.status_is(answer(), busy, "exit 255", busy, answer(an_init("committed", 9)))
    nodes.command_is("kill -9 $$")
    found = nodes.change("init")
    assert found == CommandFound(
        "the connection was ended by signal 9", (RemoteRun("1-init", "init", "committed", 9, 9),)
    )
    assert not found.is_open
    assert nodes.questions() == 5
    assert nodes.reporter.lines == [
        "[cp2] the connection was ended by signal 9; asking what became of garboard init",
        "[cp2] garboard init (process 7) is at work there",
        "[cp2] cp2 does not answer garboard status --all -o json: the connection failed (status 255)",
    ]


@pytest.mark.parametrize("state", ["open", "damaged"])
def test_run_that_was_cut_short_on_the_node_is_known_too(nodes: Nodes, state: str) -> None:
    nodes.status_is(answer(an_init("open", 1)), answer(an_init(state, 4)))
    nodes.command_is("exit 255")
    found = nodes.change("resume")
    assert isinstance(found, CommandFound)
    assert found.is_open
    assert [each.finished for each in found.runs] == [4]


def test_command_without_a_trace_has_not_begun_but_it_is_given_time(nodes: Nodes) -> None:
    nodes.status_is(answer(an_init("committed", 9)))
    nodes.command_is("exit 255")
    assert nodes.change("init") == CommandFound("the connection failed (status 255)", ())
    assert nodes.elapsed_s >= QUIET_S


def test_node_that_stays_unknown_stops_everything(nodes: Nodes) -> None:
    nodes.status_is(answer(), "echo no route >&2; exit 255")
    nodes.command_is("exit 255")
    with pytest.raises(NodeUnknown) as caught:
        nodes.change("upgrade", "node", find_out_s=60.0)
    assert caught.value.message == (
        "what became of `garboard upgrade node` on cp2 is unknown after 60 s: the connection failed (status 255), then "
        "cp2 does not answer garboard status --all -o json: the connection failed (status 255) (no route)"
    )
    assert f"{nodes.folder}/carrier cp2 garboard status" in (caught.value.hint or "")
    assert caught.value.exit_code == 5
    assert nodes.elapsed_s == pytest.approx(60.0)


def test_node_that_works_for_too_long_is_unknown(nodes: Nodes) -> None:
    nodes.status_is(answer(), answer(an_init("open", 2), locked_by="garboard init (process 7)"))
    nodes.command_is("exit 255")
    with pytest.raises(NodeUnknown, match=r"garboard init \(process 7\) is at work there"):
        nodes.change("init")


def test_nothing_begins_on_a_node_that_does_not_answer(nodes: Nodes) -> None:
    nodes.status_is("echo 'Permission denied' >&2; exit 255")
    nodes.command_is("touch begun")
    with pytest.raises(NodeUnknown, match="Permission denied"):
        nodes.change("init")
    assert not (nodes.folder / "begun").exists()


def test_command_that_ends_is_not_asked_for(nodes: Nodes) -> None:
    nodes.command_is("exit 4")
    assert nodes.change("init") == CommandEnded(4)
    assert nodes.questions() == 1


def test_nodes_with_the_same_version_are_let_through(nodes: Nodes) -> None:
    nodes.carrier().require_same_version([f"n{number}" for number in range(12)])


def test_node_with_another_version_is_refused_before_anything_is_written(nodes: Nodes) -> None:
    nodes.version_is(f"v={__version__}; [ $node != w3 ] || v=0.0.1; echo '{{\"garboard\": \"'$v'\"}}'")
    with pytest.raises(NotReady, match=r"and w3 has 0\.0\.1; nothing has been changed") as caught:
        nodes.carrier().require_same_version(["cp1", "w2", "w3"])
    assert caught.value.error_class == "version-skew"


def test_node_whose_version_was_not_compared_is_not_changed(nodes: Nodes) -> None:
    nodes.command_is("touch begun")
    carrier = nodes.carrier()
    carrier.require_same_version(["cp1"])
    with pytest.raises(AssertionError, match="before the first write"):
        carrier.change("cp2", ["init"], timeout_s=LONG_S, find_out_s=1.0)
    assert not (nodes.folder / "begun").exists()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("exit 255", r"cp1 does not answer .*status 255.* \(and 1 more: cp2\)", id="out of reach"),
        pytest.param("exit 127", "cp1 does not answer .*it ended with status 127", id="garboard is not there"),
        pytest.param("echo Welcome", "cp1: it answers 'Welcome", id="something else answers"),
        pytest.param("yes 0123456789", "cp1 answers .* without end", id="an answer without end"),
    ],
)
def test_node_that_does_not_say_its_version_is_refused(nodes: Nodes, script: str, said: str) -> None:
    nodes.version_is(script)
    with pytest.raises(NodeUnknown, match=said):
        nodes.carrier().require_same_version(["cp1", "cp2"])


def test_program_that_is_not_there_is_named() -> None:
    carrier = Carrier(Via.parse("no-such-program {node}"), MemoryReporter())
    with pytest.raises(GarboardError, match="cannot run no-such-program"):
        carrier.run("cp1", ["status"], timeout_s=LONG_S)


@pytest.fixture
def real_node(tmp_path: Path) -> Callable[[str], Carrier]:
    """Carriers to garboard itself, on a machine that is a folder; `how` runs the command line that stands for "$@"."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "kubeadm.yaml").write_text(CONFIG)
    program = f"{GARBOARD} --rootfs {root}"

    def carrier(how: str) -> Carrier:
        script = tmp_path / "carrier"
        script.write_text(f'#!/bin/sh\nshift 2\ncase "$1" in init) {how} ;; *) exec {program} "$@" ;; esac\n')
        script.chmod(0o755)
        patient = Clock(sleep=lambda seconds: time.sleep(min(seconds, 0.2)))
        return Carrier(Via.parse(f"{script} {{node}}"), MemoryReporter(), patient)

    return lambda how: carrier(how.replace("GARBOARD", program).replace("ROOT", str(root)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root journals")
def test_configuration_goes_by_stdin(real_node: Callable[[str], Carrier], tmp_path: Path) -> None:
    carrier = real_node('GARBOARD "$@"')
    carrier.require_same_version(["node-1"])
    words = ["init", "--config=-", CERTIFICATES_ONLY]
    assert carrier.change("node-1", words, stdin=CONFIG.encode(), timeout_s=LONG_S, find_out_s=LONG_S) == CommandEnded(
        0
    )
    assert (tmp_path / "root/etc/kubernetes/pki/ca.key").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root journals")
@pytest.mark.parametrize(
    "how",
    [
        pytest.param('setsid GARBOARD "$@" & kill -9 $$', id="killed at once"),
        pytest.param('GARBOARD "$@" 2>&1 | head -c 1; exit 255', id="nobody reads"),
        pytest.param(
            'GARBOARD "$@" & until ls ROOT/var/lib/garboard/runs/*/journal.jsonl; do sleep 0.01; done; '
            "kill -HUP $!; exit 255",
            id="hung up",
        ),
    ],
)
def test_run_outlives_its_connection_and_is_found(
    real_node: Callable[[str], Carrier], how: str, tmp_path: Path
) -> None:
    carrier = real_node(how)
    carrier.require_same_version(["node-1"])
    found = carrier.change(
        "node-1", ["init", "--config=/kubeadm.yaml", CERTIFICATES_ONLY], timeout_s=LONG_S, find_out_s=300.0
    )
    assert isinstance(found, CommandFound)
    assert [(each.command, each.state) for each in found.runs] == [("init", "committed")]
    assert len(list((tmp_path / "root/etc/kubernetes/pki").rglob("*.*"))) == 22


WORDS = st.lists(st.from_regex(r"[A-Za-z0-9_./:,-][A-Za-z0-9_./=:,-]*", fullmatch=True), max_size=6)


def test_operators_command_is_split_as_a_shell_does_and_names_the_node() -> None:
    via = Via.parse("ssh -o 'ProxyCommand=nc %h 22' root@{node} sudo")
    assert via.command("cp2", ["status", "-o", "json"]) == (
        "ssh", "-o", "ProxyCommand=nc %h 22", "root@cp2", "sudo", "garboard", "status", "-o", "json",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "names no program", id="empty"),
        pytest.param("'' {node}", "names no program", id="an empty program"),
        pytest.param("ssh '{node}", "No closing quotation", id="open quote"),
        pytest.param("ssh cp1", r"no \{node\}", id="every node is the same"),
        pytest.param("ssh {nodes}", r"no \{node\}", id="another placeholder"),
        pytest.param("ssh\0 {node}", "null character", id="null"),
    ],
)
def test_command_that_cannot_work_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadUsage, match=said):
        Via.parse(text)


@pytest.mark.parametrize("node", ["-oProxyCommand=reboot", "", "a b", "a;b", "CP1", "cp1\n", "{node}", "$(id)"])
def test_name_that_no_node_has_is_refused(node: str) -> None:
    with pytest.raises(BadUsage, match="is no name of a node"):
        Via.parse("ssh {node}").command(node, [])


@given(words=WORDS)
def test_words_that_are_let_through_reach_the_program_as_they_are(words: list[str]) -> None:
    """ssh joins words with spaces; what a shell makes of the line is what we gave."""
    command = Via.parse("ssh {node}").command("n", words)
    assert shlex.split(" ".join(command[2:])) == ["garboard", *words]


@given(word=st.text())
def test_word_is_let_through_only_if_it_is_plain(word: str) -> None:
    is_plain = re.fullmatch(r"[A-Za-z0-9_./=:,-]+", word) is not None and not word.startswith("=")
    if is_plain:
        assert Via.parse("ssh {node}").command("n", [word])[-1] == word
    else:
        with pytest.raises(BadUsage):
            Via.parse("ssh {node}").command("n", [word])


def test_real_shell_takes_every_character_literally() -> None:
    word = "AZaz09_./=:,-"
    line = " ".join(Via.parse("ssh {node}").command("n", [word, "--x=-1", "-"])[3:])
    said = subprocess.run(["sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == [word, "--x=-1", "-"]


def split(*chunks: bytes, longest: int = 100) -> list[str]:
    taken: list[str] = []
    lines = Lines(taken.append, longest)
    for each in chunks:
        lines.feed(each)
    lines.end()
    return taken


def test_lines_are_whole_however_they_come() -> None:
    assert split(b"on", b"e\ntw", b"o\n\nthree") == ["one", "two", "", "three"]
    assert split() == []


def test_line_without_an_end_is_cut() -> None:
    assert split(b"x" * 25, longest=10) == ["x" * 10, "x" * 10, "x" * 5]
    assert split(b"x" * 25 + b"\n", longest=10) == ["x" * 10, "x" * 10, "x" * 5]


def test_line_drives_no_terminal() -> None:
    assert split(b"\x1b[2Jall\tis \xff well\x07\r\n") == ["\ufffd[2Jall is \ufffd well\ufffd"]


@given(st.lists(st.binary(max_size=30), max_size=8))
def test_nothing_is_lost_and_nothing_but_lines_comes(chunks: list[bytes]) -> None:
    whole = b"".join(chunks).decode("utf-8", "replace")
    expected = [printable(each) for each in whole.removesuffix("\n").split("\n")] if whole else []
    assert split(*chunks, longest=1000) == expected
