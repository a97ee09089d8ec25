"""Values shared by the tests of the package: inputs, a clock that stands still, a folder in memory, cheap keys."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Address

from garboard.pki import CERTIFICATES, KeyAlgorithm, PkiInputs
from garboard.pki.files import NewFile, write_files
from garboard.pki.issue import IssuedPair, issue_certificate
from garboard.pki.keys import SystemKeys
from garboard.pki.store import pair_files

NOW = datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=UTC)
KEYS = SystemKeys()

# ECDSA because a key costs microseconds; what depends on the algorithm has tests of its own.
INPUTS = PkiInputs(
    node_name="node-1", advertise_address=IPv4Address("192.0.2.10"), key_algorithm=KeyAlgorithm.ECDSA_P256
)


@dataclass
class MemoryFolder:
    """A folder that is a mapping."""

    files: dict[str, bytes] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    prefix: str = "pki"

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def write(self, name: str, data: bytes, *, new_mode: int) -> None:
        self.modes.setdefault(name, new_mode)
        self.files[name] = data

    def path_of(self, name: str) -> str:
        return f"{self.prefix}/{name}"


def issue_tree(inputs: PkiInputs = INPUTS, now: datetime = NOW) -> dict[str, IssuedPair]:
    """Issue every certificate of the tree, by name."""
    issued: dict[str, IssuedPair] = {}
    for spec in CERTIFICATES:
        issued[spec.name] = issue_certificate(spec, inputs, issued.get(spec.ca or ""), KEYS, now)
    return issued


def tree_files(issued: dict[str, IssuedPair]) -> tuple[NewFile, ...]:
    return tuple(file for spec in CERTIFICATES for file in pair_files(spec.base_name, issued[spec.name]))


def full_folder(inputs: PkiInputs = INPUTS, now: datetime = NOW) -> MemoryFolder:
    folder = MemoryFolder()
    write_files(folder, tree_files(issue_tree(inputs, now)))
    return folder
