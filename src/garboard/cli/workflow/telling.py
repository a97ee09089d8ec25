"""What a run shows on stdout, and how it seals files: the hands that need nothing but this process."""

import os
import sys

from garboard.engine import Tell
from garboard.host.node_machine import NodeMachine


def tell(line: str) -> None:
    """Say something about the run on stderr."""
    sys.stderr.write(f"{line}\n")


class Screen:
    """Shows what the one who runs a plan shall keep."""

    def __init__(self, machine: NodeMachine) -> None:
        self.machine = machine

    def tell(self, action: Tell) -> None:
        sys.stdout.write(self._with_pins(action) if action.pins else action.text)
        sys.stdout.flush()

    def _with_pins(self, action: Tell) -> str:
        from garboard.phases.init.next_steps import with_pins

        return with_pins(action, self.machine.read)


class FileSealer:
    """Seals with AES-GCM, every file with a nonce of its own."""

    def seal(self, data: bytes, key: bytes) -> bytes:
        from garboard.pki.transfer import NONCE_BYTES, encrypt

        return encrypt(data, key, os.urandom(NONCE_BYTES))
