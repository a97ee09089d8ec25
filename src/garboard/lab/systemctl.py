"""The `systemctl` of a node: a program of its own, which asks the lab's supervisor and imports next to nothing."""

import inspect
import sys

# The text below runs as a script in the node; it must stay free of anything but the standard library.


def main() -> None:
    """Send the arguments to the supervisor, print its answer and end with its status."""
    import json
    import socket

    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect("/var/lib/garboard-lab/systemctl.sock")
    except OSError as error:
        sys.exit(f"Failed to connect to the lab's supervisor: {error.strerror}")
    connection.sendall(json.dumps({"do": "systemctl", "arguments": sys.argv[1:]}).encode() + b"\n")
    answer = json.loads(connection.makefile().readline())
    sys.stdout.write(answer.get("text", ""))
    sys.exit(answer.get("status", 1))


def render_script(python: str) -> str:
    """Write the script that goes into a node as /usr/bin/systemctl."""
    return f"#!{python} -IS\nimport sys\n\n\n{inspect.getsource(main)}\n\nmain()\n"
