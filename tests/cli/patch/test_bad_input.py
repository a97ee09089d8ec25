"""What bad input gives: a line `error[class]: …` with a hint, an exit code of the table, no output, nothing written."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from garboard.cli.main import run
from tests.support.cli.patch.commands import PATCH_SET, POD, READERS, Workplace

DEEP = 10_000
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
# Refused whatever they stand for: an original, a patch, the marker or a patch set.
BAD_TEXTS = {
    "not YAML": b"a: [1, 2\nb: }",
    "not UTF-8": b"a: \xff\xfe\n",
    "NUL byte": b"a: x\0y\n",
    "control character": b"a: \x07\n",
    "binary": bytes(range(256)) * 50,
    "lone surrogate": b'a: "\xed\xa0\x80"',
    "half of a surrogate pair": b'a: "\\ud83d"',
    "billion laughs": BOMB.encode(),
    "self reference": b"a: &a [*a]",
    "unknown alias": b"a: *b",
    "deep flow lists": b"[" * DEEP + b"]" * DEEP,
    "deep flow maps": b"{a: " * DEEP + b"1" + b"}" * DEEP,
    "deep block lists": b"- " * DEEP + b"a",
    "deep block maps": b"".join(b" " * depth + b"a:\n" for depth in range(1000)),
    "deep JSON": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "brackets without end": b"[" * 100_000,
    "infinity": b"a: .inf",
    "map as key": b"{[a]: b}",
    "tab as indentation": b"a:\n\tb: 1\n",
    "another YAML version": b"%YAML 1.2\n---\na: 1\n",
}
CASES = [
    pytest.param(name, reader, data, id=f"{label} as {name} for {reader}")
    for label, data in BAD_TEXTS.items()
    for name, readers in READERS.items()
    for reader in readers
]


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace.make(tmp_path)


def refused(arguments: list[str], captured: pytest.CaptureFixture[str], *, status: int = 3) -> str:
    """Run a command that must refuse, and return the class of its error."""
    assert run(arguments) == status
    out, err = captured.readouterr()
    assert out == ""
    found = re.match(r"error\[([a-z0-9-]+)\]: .+\n(?:.*\n)*hint: .+\n\Z", err)
    assert found, err
    return found[1]


def test_every_command_works_on_good_files(workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in workplace.commands().items():
        assert run(command) == 0, f"{name}: {capsys.readouterr().err}"


@pytest.mark.parametrize(("name", "reader", "data"), CASES)
def test_bad_text_is_refused(
    name: str, reader: str, data: bytes, workplace: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    (workplace.folder / name).write_bytes(data)
    before = workplace.contents()
    error_class = refused(workplace.commands()[reader], capsys)
    assert error_class in ("bad-document", "not-utf-8")
    assert workplace.contents() == before


@pytest.mark.parametrize("reader", ["apply target", "apply target compat", "diff", "explain", "create", "capture"])
def test_second_document_is_refused_where_one_is_expected(
    reader: str, workplace: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    (workplace.folder / "original.yaml").write_text(f"{POD}---\n{POD}")
    assert refused(workplace.commands()[reader], capsys) == "bad-document"


def test_second_document_in_a_patch_file_is_refused_unless_kubectl_s_way_is_asked_for(
    workplace: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    (workplace.folder / "patch.yaml").write_text("spec: {priority: 1}\n---\nspec: {priority: 2}\n")
    assert refused(workplace.commands()["apply"], capsys) == "bad-document"
    assert run(workplace.commands()["apply compat"]) == 0
    assert "priority: 1" in capsys.readouterr().out


def test_second_document_in_a_patch_set_is_refused(workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    (workplace.folder / "set.yaml").write_text(f"{PATCH_SET}---\n{PATCH_SET}")
    assert refused(workplace.commands()["apply set"], capsys) == "bad-document"


def test_comment_before_the_only_document_is_no_document(workplace: Workplace) -> None:
    (workplace.folder / "original.yaml").write_text(f"# generated\n---\n{POD}---\n# the end\n")
    assert run(workplace.commands()["apply target"]) == 0


@pytest.mark.parametrize(
    ("change", "status", "error_class"),
    [
        pytest.param({"--target": "kube-apisever"}, 2, "unknown-target", id="misspelt target"),
        pytest.param({"--target": "kube-scheduler"}, 3, "wrong-target", id="target of another component"),
        pytest.param({"--target": "kubeletconfiguration"}, 3, "wrong-target", id="target of another kind"),
        pytest.param({"--patches": "original.yaml"}, 3, "not-a-directory", id="file as patch directory"),
        pytest.param({"--patches": "nowhere"}, 1, "unreadable", id="absent patch directory"),
        pytest.param({"-f": "nowhere.yaml"}, 1, "unreadable", id="absent original"),
        pytest.param({"-f": "patches"}, 3, "not-a-file", id="directory as original"),
        pytest.param({"-f": ""}, 3, "not-a-file", id="empty name"),
        pytest.param({"-f": "a\0b"}, 1, "unreadable", id="name with a NUL"),
        pytest.param({"-f": "x" * 5000}, 1, "unreadable", id="name too long"),
    ],
)
def test_wrong_argument_is_refused(
    change: dict[str, str], status: int, error_class: str, workplace: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    command = workplace.commands()["apply target"]
    for option, value in change.items():
        given_value = value if option == "--target" or not value else workplace.path(value)
        command[command.index(option) + 1] = given_value
    assert refused(command, capsys, status=status) == error_class


@pytest.mark.parametrize("version", ["v1.2.3", "v1.35.0", "v1.38.0", "banana", "1", "v1.37.1.1", "", "v1.٣٧.1"])
def test_unknown_version_is_refused(version: str, workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*workplace.commands()["apply target"], "--kubernetes-version", version]
    assert run(command) in (2, 3)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error[")
    assert "\nhint: " in err


def test_symlinked_patch_directory_is_refused(workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    (workplace.folder / "link").symlink_to("patches")
    command = [part if part != workplace.path("patches") else workplace.path("link")
               for part in workplace.commands()["apply target"]]  # fmt: skip
    assert refused(command, capsys) == "not-a-directory"


@pytest.mark.parametrize("make", ["broken link", "link to itself", "link to a directory", "directory"])
def test_patch_that_is_no_file_is_refused(make: str, workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    path = workplace.folder / "patches" / "etcd.yaml"
    if make == "directory":
        path.mkdir()
        assert run(workplace.commands()["apply target"]) == 0  # kubeadm walks into it and finds nothing
        return
    path.symlink_to({"broken link": "nowhere", "link to itself": "etcd.yaml", "link to a directory": "common"}[make])
    arguments = workplace.commands()["apply target"]
    error_class = refused(arguments, capsys, status=3 if make == "link to a directory" else 1)
    assert error_class == ("not-a-file" if make == "link to a directory" else "unreadable")


def test_file_whose_reading_fails_is_refused(workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    command = workplace.commands()["apply"]
    command[command.index("-f") + 1] = "/proc/self/mem"  # permissions do not stop root; this does
    assert refused(command, capsys, status=1) == "unreadable"


def test_output_that_cannot_be_written_leaves_nothing(workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    before = workplace.contents()
    command = workplace.commands()["capture"]
    command[command.index("--out") + 1] = workplace.path("nowhere/captured.yaml")
    assert refused(command, capsys, status=1) == "unwritable"
    assert workplace.contents() == before


@pytest.mark.parametrize("name", ["patch.yaml", "set.yaml", "original.yaml"])
def test_empty_file_gives_no_traceback(name: str, workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    (workplace.folder / name).write_bytes(b"")
    for reader in READERS[name]:
        status = run(workplace.commands()[reader])
        assert status in (0, 3), capsys.readouterr().err


def in_child(
    arguments: list[str], *, closing: int | None = None, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run the command in a process of its own, whose memory is limited: what is bounded stays below it."""
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "
    return subprocess.run(
        [sys.executable, "-c", f"{limited}from garboard.cli.main import main; main()", *arguments],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, **(environment or {})},
        preexec_fn=None if closing is None else lambda: os.close(closing),
    )


@pytest.mark.parametrize("name", ["original.yaml", "patch.yaml"])
def test_file_of_50_mb_is_refused_quickly(name: str, workplace: Workplace) -> None:
    (workplace.folder / name).write_bytes(b"# filler\n" * (50 * 1024 * 1024 // 9))
    done = in_child(workplace.commands()["apply"])
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.startswith(b"error[too-large]: ")
    assert b"\nhint: " in done.stderr


def test_closed_stdin_is_refused(workplace: Workplace) -> None:
    command = [part if part != workplace.path("original.yaml") else "-" for part in workplace.commands()["apply"]]
    done = in_child(command, closing=0)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"error[unreadable]: ")


def test_closed_stdout_is_told(workplace: Workplace) -> None:
    done = in_child(workplace.commands()["apply"], closing=1)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error[unwritable]: ")


def test_closed_stderr_changes_nothing(workplace: Workplace) -> None:
    done = in_child(workplace.commands()["apply"], closing=2)
    assert (done.returncode, b"priority: 7" in done.stdout) == (0, True)


def test_full_disk_is_told(workplace: Workplace) -> None:
    with Path("/dev/full").open("wb") as full:
        program = "import sys; from garboard.cli.main import main; main()"
        command = [sys.executable, "-c", program, *workplace.commands()["apply"]]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error[unwritable]: ")
    assert b"Traceback" not in done.stderr


def test_output_is_utf_8_whatever_the_locale(workplace: Workplace) -> None:
    (workplace.folder / "patch.yaml").write_text("metadata: {annotations: {greeting: grüß}}\n", encoding="utf-8")
    done = in_child(workplace.commands()["apply"], environment={"PYTHONIOENCODING": "ascii"})
    assert "grüß".encode() in done.stdout
    assert done.returncode == 0


def test_compile_into_a_file_is_refused(workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    command = workplace.commands()["compile"]
    command[command.index("--out") + 1] = workplace.path("original.yaml")
    assert refused(command, capsys, status=1) == "unwritable"
    assert (workplace.folder / "original.yaml").read_text() == POD


def mutated_documents() -> st.SearchStrategy[bytes]:
    """Documents with a piece cut out, doubled, or replaced by random bytes: most still look like documents."""
    texts = st.sampled_from([POD.encode(), PATCH_SET.encode(), b"- {op: add, path: /a, value: 1}\n", b'{"a": [1]}'])
    pieces = st.binary(max_size=6) | st.sampled_from(
        [b"\n", b"- ", b": ", b"{", b"]", b"&a ", b"*a", b"<<: ", b"---\n"]
    )

    def mutate(text: bytes, start: int, length: int, piece: bytes) -> bytes:
        start %= len(text)
        return text[:start] + piece + text[start + length :]

    return st.builds(mutate, texts, st.integers(0, 400), st.integers(0, 40), pieces)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.binary(max_size=200) | mutated_documents(), st.sampled_from([(n, r) for n, rs in READERS.items() for r in rs])
)
@example(b"patches: [{file: patch.yaml, target: {labelSelector: '!'}}]", ("set.yaml", "apply set"))
@example(b"patches: [{file: ../../etc, type: args}]", ("set.yaml", "apply set"))
@example(b"\xef\xbb\xbf", ("original.yaml", "apply"))
@example("a: 1".encode("utf-16"), ("set.yaml", "apply set"))
@example(b"kind: [1]\napiVersion: {a: 1}\nmetadata: 3\n", ("original.yaml", "apply set"))
@example(b"spec: {containers: [null]}", ("patches/kube-apiserver.yaml", "apply target compat"))
def test_random_bytes_give_an_outcome_or_an_error_line(data: bytes, case: tuple[str, str]) -> None:
    name, reader = case
    with tempfile.TemporaryDirectory() as folder, captured_streams(Path(folder)) as streams:
        workplace = Workplace.make(Path(folder) / "files")
        (workplace.folder / name).write_bytes(data)
        status = run(workplace.commands()[reader])
        sys.stdout.flush()
        sys.stderr.flush()
        err = streams[1].read_text(errors="replace")
    assert status in (0, 1, 2, 3)
    if status:
        assert err.startswith("error[")
        assert "\nhint: " in err


@contextmanager
def captured_streams(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Put real files behind stdout and stderr: they encode, as a terminal does."""
    paths = folder / "stdout", folder / "stderr"
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (path.open("w", encoding="utf-8") for path in paths)
    try:
        yield paths
    finally:
        sys.stdout.close()
        sys.stderr.close()
        sys.stdout, sys.stderr = before
