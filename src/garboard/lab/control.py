"""Talking to a lab's supervisor: one request and one answer, each a line of JSON, over a socket of the file system."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from garboard.documents import Json
from garboard.errors import GarboardError

ANSWER_WITHIN_S = 120.0


class SupervisorGone(GarboardError):
    """Nobody answers for this lab."""

    default_class = "lab-not-running"


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Name a socket by its open folder: the kernel takes at most 108 bytes, and a lab's home may lie deep."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def ask(control: Path, request: dict[str, Json], *, timeout_s: float = ANSWER_WITHIN_S) -> dict[str, Json]:
    """Send `request` to the supervisor behind the socket `control` and return its answer, or raise what it says."""
    try:
        with short_path(control) as path, socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(path)
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile() as lines:
                answer = json.loads(lines.readline() or "{}")
    except (OSError, ValueError) as error:
        raise SupervisorGone(
            f"the supervisor behind {control} does not answer: {error}",
            hint="remove what is left of this lab with `garboard lab prune`",
        ) from error
    if "error" in answer:
        raise GarboardError(answer["error"], hint=answer.get("hint"), error_class=answer.get("class"))
    assert isinstance(answer, dict)
    return answer
