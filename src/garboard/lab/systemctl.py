"""The `systemctl` and `journalctl` of a node: programs of its own, which import next to nothing."""

import inspect
import sys

# The services of a node write to files; of journalctl's options only the unit and the number of lines mean something.
JOURNAL_SCRIPT = """\
#!/bin/sh
unit=kubelet lines=50
while [ $# -gt 0 ]; do
    case "$1" in
        -n) lines=$2; shift ;;
        -u | -*u) unit=$2; shift ;;
    esac
    shift
done
exec tail -n "$lines" "/var/log/${unit%.service}.log"
"""

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
