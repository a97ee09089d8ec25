"""Downloads against a web server on the loopback address, with the real HTTP client."""

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host import Machine
from garboard.lab.binaries import Binaries, BinarySource
from garboard.lab.binaries.download import BadChecksum, published_checksum
from garboard.lab.binaries.pins import Pins

PINS = """
[kubernetes."v1.37.1"]
[alone]
tool = "v2.0.0"
packed = "v2.0.0"
unreleased = "v1.0.0"
[module."example.com/tool"]
sum."v2.0.0" = "h1:none"
[program.tool]
module = "example.com/tool"
files.tool = ""
release = "plain"
[program.packed]
module = "example.com/tool"
files.one = ""
files.two = ""
release = "archive"
[program.unreleased]
module = "example.com/tool"
files.unreleased = ""
[release.plain]
url = "{server}/{{version}}/{{program}}"
checksum = "{server}/{{version}}/{{program}}.sha256"
[release.archive]
url = "{server}/{{version}}/{{program}}-{{number}}.tgz"
checksum = "{server}/{{version}}/SHA256SUMS"
member = "{{program}}/{{file}}"
"""


@dataclass
class Server:
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            data = state.files.get(self.path)
            self.send_response(404 if data is None else 200)
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the parent's
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield state
    http.shutdown()
    http.server_close()


@pytest.fixture
def binaries(server: Server, tmp_path: Path) -> Binaries:
    return store(server.address, tmp_path)


def store(address: str, cache: Path, source: BinarySource = BinarySource.DOWNLOAD) -> Binaries:
    pins = Pins.parse(PINS.format(server=address).encode())
    return Binaries(Machine(), cache=cache / "cache", source=source, pins=pins)


def archive(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(f"packed/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def test_a_download_that_matches_its_checksum_is_kept_and_runs(server: Server, binaries: Binaries) -> None:
    program = b"#!/bin/sh\necho ran\n"
    digest = hashlib.sha256(program).hexdigest()
    server.files = {"/v2.0.0/tool": program, "/v2.0.0/tool.sha256": f"{digest}\n".encode()}
    path = binaries.locate("tool")
    assert Machine().run([path]).stdout == "ran\n"
    server.asked.clear()
    assert binaries.locate("tool") == path
    assert server.asked == []


def test_a_download_that_does_not_match_is_refused_and_nothing_is_kept(server: Server, tmp_path: Path) -> None:
    server.files = {"/v2.0.0/tool": b"other bytes", "/v2.0.0/tool.sha256": b"0" * 64}
    for source in (BinarySource.DOWNLOAD, BinarySource.AUTO):
        binaries = store(server.address, tmp_path, source)
        with pytest.raises(BadChecksum, match="has the SHA-256"):
            binaries.locate("tool")
        assert binaries.find(binaries.pins.wanted("tool")) is None


def test_files_are_taken_out_of_an_archive(server: Server, binaries: Binaries) -> None:
    data = archive(one=b"1", two=b"2", three=b"3")
    sums = f"{'0' * 64}  other-2.0.0.tgz\n{hashlib.sha256(data).hexdigest()}  packed-2.0.0.tgz\n"
    server.files = {"/v2.0.0/packed-2.0.0.tgz": data, "/v2.0.0/SHA256SUMS": sums.encode()}
    folder = binaries.locate("packed")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"one": b"1", "two": b"2"}


def test_a_broken_archive_is_an_error_of_its_own(server: Server, binaries: Binaries) -> None:
    data = b"no archive"
    sums = f"{hashlib.sha256(data).hexdigest()}  packed-2.0.0.tgz\n"
    server.files = {"/v2.0.0/packed-2.0.0.tgz": data, "/v2.0.0/SHA256SUMS": sums.encode()}
    with pytest.raises(BadChecksum, match="is no archive with packed/one in it"):
        binaries.locate("packed")


def test_a_program_without_release_can_only_be_built(binaries: Binaries) -> None:
    with pytest.raises(GarboardError, match=r"no release download for unreleased v1\.0\.0"):
        binaries.locate("unreleased")


@pytest.mark.parametrize(
    "listing",
    [
        pytest.param("a" * 64, id="a bare digest"),
        pytest.param(f"{'b' * 64}  other\n{'a' * 64}  name\n", id="lines of digest and name"),
        pytest.param(f"{'a' * 64} *name\n", id="binary mode"),
        pytest.param(f"{'a' * 64}  ./release/name\n", id="a path before the name"),
    ],
)
def test_the_checksum_is_found_in_what_projects_publish(listing: str) -> None:
    assert published_checksum(listing, "name") == "a" * 64


def test_a_listing_without_the_file_is_no_checksum() -> None:
    with pytest.raises(BadChecksum):
        published_checksum(f"{'b' * 64}  other\nnot found\n", "name")
