"""The Go libraries themselves, asked through the program in `oracle/`, which is built on first use."""

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).parent / "oracle"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the libraries made of a text, and their complaint if they did not take all of it."""

    texts: tuple[str, ...]
    error: str | None


def ask(operation: str, texts: Iterable[bytes]) -> list[Answer]:
    """Return one answer for each text; the operation is `read`, `write`, `json`, `split` or `stream`."""
    questions = [{"Op": operation, "Data": base64.b64encode(text).decode()} for text in texts]
    done = subprocess.run(
        [_program()], input="\n".join(map(json.dumps, questions)).encode(), capture_output=True, check=True, timeout=120
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions)
    return [Answer(tuple(each["texts"] or ()), each.get("error")) for each in answers]


def _program() -> Path:
    sources = [_SOURCE / name for name in ("main.go", "go.mod", "go.sum")]
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = cache / "garboard" / "test-programs" / f"documents-oracle-{digest}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        # Built beside and moved, so that two test runs at once do not use half a program.
        fresh = program.with_suffix(f".{os.getpid()}")
        subprocess.run(["go", "build", "-o", str(fresh), "."], cwd=_SOURCE, check=True)
        fresh.replace(program)
    return program
