"""Values shared by the tests of the package: inputs, a clock that stands still, a folder in memory, cheap keys."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Address

from garboard.errors import GarboardError
from garboard.pki import CERTIFICATES, KeyAlgorithm, PkiInputs
from garboard.pki.decide import Decision, Generate, decide_one_for_init
from garboard.pki.files import IssuedPair, NewFile, ObservedPairs, write_files
from garboard.pki.issue import issue_certificate
from garboard.pki.keys import SystemKeys
from garboard.pki.store import pair_files
from garboard.pki.transfer import NONCE_BYTES, encrypt

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

    def write_new(self, name: str, data: bytes, *, mode: int) -> None:
        if name in self.files:
            raise GarboardError(f"file already exists: {name}", error_class="exists")
        self.modes[name] = mode
        self.files[name] = data

    def remove(self, name: str) -> None:
        del self.files[name]

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


def decide_for_init(observed: ObservedPairs, inputs: PkiInputs, now: datetime) -> tuple[Decision, ...]:
    """Decide about every certificate as the phases of `init phase certs all` do, one after the other."""
    decisions: dict[str, Decision] = {}
    for spec in CERTIFICATES:
        is_ca_planned = isinstance(decisions.get(spec.ca or ""), Generate)
        decisions[spec.name] = decide_one_for_init(spec, observed, inputs, now, is_ca_planned=is_ca_planned)
    return tuple(decisions.values())


def sealed_files(
    folder: MemoryFolder, files: Mapping[str, str], key: bytes, make_nonce: Callable[[int], bytes]
) -> dict[str, bytes]:
    """Return what a Secret of shared certificates holds; a file that is not there is left empty."""
    found = {name: folder.read(path) for name, path in files.items()}
    return {name: b"" if data is None else encrypt(data, key, make_nonce(NONCE_BYTES)) for name, data in found.items()}
