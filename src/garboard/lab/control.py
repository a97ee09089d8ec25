"""Talking to a lab's supervisor: one request and one answer, each a line of JSON, over a socket of the file system.

The descriptor of the socket's folder is opened here and not by `host`: it only names the socket for this process.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from garboard.documents import Json
from garboard.errors import GarboardError

ANSWER_WITHIN_S = 120.0


class SupervisorGone(GarboardError):
    """The supervisor of this lab does not answer."""

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


async def answer_one(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    dispatch: Callable[[dict[str, Json]], Awaitable[Json]],
) -> None:
    """Answer the one request of a connection; an error is an answer too."""
    try:
        answer = await dispatch(json.loads(await reader.readline()))
    except GarboardError as error:
        answer = {"error": error.message, "hint": error.hint, "class": error.error_class}
    except Exception as error:  # noqa: BLE001  # a request must not end the supervisor, whatever is wrong with it
        sys.stderr.write(f"request failed: {error!r}\n")
        answer = {"error": f"the supervisor failed: {error!r}", "hint": "see its log", "class": "supervisor"}
    try:
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
        writer.close()
    except OSError:
        pass  # the client has gone
