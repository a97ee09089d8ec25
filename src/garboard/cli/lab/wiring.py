"""What the lab commands share: progress on stderr."""

import sys


def tell(line: str) -> None:
    """Write a line of progress to stderr."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
