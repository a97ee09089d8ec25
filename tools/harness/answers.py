"""What real programs answered, kept in the user's cache: the same program, input and environment answer the same.

Only what depends on nothing else is kept here: no answer of a running cluster, and none that holds a date or a key.
"""

import hashlib
import json
import os
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

MAX_BYTES = 200_000_000


def answers_home() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "garboard" / "answers"


@dataclass(frozen=True)
class Answers:
    """Answers by the digest of their question, each with a digest of its own; a damaged one is asked for again."""

    folder: Path
    is_fresh: bool = False  # ask again, whatever is kept

    def get(self, question: Iterable[str], ask: Callable[[], bytes]) -> bytes:
        """Return the answer to a question, from the cache or by asking; what asking raises is not kept."""
        key = hashlib.sha256(json.dumps(list(question)).encode()).hexdigest()
        path = self.folder / key[:2] / key[2:]
        kept = None if self.is_fresh else _read(path)
        if kept is not None:
            return kept
        answer = ask()
        _write(path, answer)
        return answer

    def run(
        self, program: Path, *arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program that reads its arguments, its input and its environment alone, or return what it said."""
        command = [str(program), *arguments]
        given = {"PATH": os.defpath, **(environment or {})}

        def ask() -> bytes:
            done = subprocess.run(
                command, input=stdin, env=given, capture_output=True, text=True, timeout=280, check=False
            )
            if done.returncode < 0:  # ended by a signal: by the machine, not by its input
                raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
            return json.dumps([done.returncode, done.stdout, done.stderr]).encode()

        variables = [f"{name}={value}" for name, value in sorted(given.items())]
        question = ("run", program_digest(program), *arguments, "", *variables, "", stdin)
        status, out, err = json.loads(self.get(question, ask))
        return subprocess.CompletedProcess(command, status, out, err)

    def prune(self, max_bytes: int = MAX_BYTES) -> None:
        """Remove the answers that were not asked for longest, until the others fit."""
        found = []
        for path in self.folder.glob("*/*"):
            with suppress(OSError):
                found.append((path.stat().st_mtime, path.stat().st_size, path))
        left = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if left <= max_bytes:
                return
            path.unlink(missing_ok=True)
            left -= size


def program_digest(program: Path) -> str:
    """Return the digest of a program's bytes, read once for each version of the file."""
    state = program.stat()
    return _digest(program, state.st_ino, state.st_size, state.st_mtime_ns)


def sources_digest(folder: Path, *patterns: str) -> str:
    """Return a digest of the files below a folder that match, for a program that is only built to be asked."""
    found = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in folder.rglob(pattern) if path.is_file()}):
        content = path.read_bytes()
        found.update(f"{path.relative_to(folder)} {len(content)}\n".encode() + content)
    return found.hexdigest()


@lru_cache
def _digest(program: Path, _inode: int, _size: int, _mtime_ns: int) -> str:
    with program.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> bytes | None:
    """Return a kept answer and note that it was wanted; None if there is none, or what is there is damaged."""
    try:
        digest, packed = path.read_bytes().split(b"\n", 1)
        answer = zlib.decompress(packed)
        path.touch()
    except (OSError, ValueError, zlib.error):
        return None
    return answer if hashlib.sha256(answer).hexdigest().encode() == digest else None


def _write(path: Path, answer: bytes) -> None:
    """Put an answer in its place as a whole, so that another process never reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(handle, "wb") as file:
        file.write(hashlib.sha256(answer).hexdigest().encode() + b"\n" + zlib.compress(answer, 1))
    Path(name).replace(path)
