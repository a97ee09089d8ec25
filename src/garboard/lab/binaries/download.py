"""Downloading a program from its official release and verifying the checksum that is published with it."""

import hashlib
import io
import platform
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from garboard.errors import GarboardError
from garboard.lab.binaries.pins import Wanted
from garboard.lab.machine import LabMachine

# The first request shows whether releases can be reached at all; where they cannot, it should fail soon.
CHECKSUM_TIMEOUT_S = 5.0
DOWNLOAD_TIMEOUT_S = 600.0
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x"}


class BadChecksum(GarboardError):
    """A download is not what was published."""

    default_class = "bad-checksum"


@dataclass(frozen=True, slots=True)
class Downloader:
    machine: LabMachine
    arch: str

    def download(self, wanted: Wanted, into: Path) -> None:
        """Put the files of `wanted` in the folder `into`; refuse what does not match its published checksum."""
        release = wanted.program.release
        if release is None:
            raise GarboardError(f"{wanted.program.name} has no release download", error_class="no-release")
        url = self._fill(release.url, wanted)
        listed = self.machine.fetch(self._fill(release.checksum, wanted), timeout_s=CHECKSUM_TIMEOUT_S)
        expected = published_checksum(listed.decode("ascii", "replace"), unquote(Path(urlsplit(url).path).name))
        data = self.machine.fetch(url, timeout_s=DOWNLOAD_TIMEOUT_S)
        found = hashlib.sha256(data).hexdigest()
        if found != expected:
            raise BadChecksum(
                f"{url} has the SHA-256 {found}, published is {expected}",
                hint="do not use it; try again later or build from source with --source build",
            )
        self.machine.make_folder(into)
        for name in wanted.program.files:
            member = self._fill(release.member, wanted, file=name) if release.member else None
            self.machine.write_file(into / name, extract(data, member, url) if member else data, mode=0o755)

    def _fill(self, template: str, wanted: Wanted, file: str = "") -> str:
        return template.format(
            version=wanted.version, number=wanted.version.removeprefix("v"),
            arch=self.arch, program=wanted.program.name, file=file,
        )  # fmt: skip


def machine_architecture() -> str:
    """Return this machine's architecture as releases spell it."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def published_checksum(listing: str, name: str) -> str:
    """Return the SHA-256 of `name` from a checksum file: a bare digest, or lines of `digest  name`."""
    for line in listing.splitlines():
        digest, _, rest = line.strip().partition(" ")
        if re.fullmatch(r"[0-9a-f]{64}", digest) and (not rest or Path(rest.strip(" *")).name == name):
            return digest
    raise BadChecksum(f"the published checksums do not list {name}", hint="build from source with --source build")


def extract(archive: bytes, member: str, source: str) -> bytes:
    """Return one file of a tar archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            handle = tar.extractfile(member)
            assert handle is not None
            return handle.read()
    except (tarfile.TarError, KeyError, AssertionError, OSError, EOFError) as error:
        raise BadChecksum(f"{source} is no archive with {member} in it", hint="use --source build") from error
