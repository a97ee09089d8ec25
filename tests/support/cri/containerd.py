"""A private containerd on a scratch root and socket, and what a test needs to fill it: an image in a registry."""

import contextlib
import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from garboard.cri import CriClient, RuntimeUnavailable
from garboard.errors import GarboardError

# Does nothing until it is told to stop, and says so in its exit code; the argument names another code to end with.
PROGRAM = """package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	if len(os.Args) > 1 {
		code, _ := strconv.Atoi(os.Args[1])
		fmt.Println("ending with", code)
		os.Exit(code)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
}
"""

CONFIG = """version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
  address = "{folder}/c.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
"""


@dataclass(frozen=True)
class Runtime:
    """A running containerd."""

    socket: str
    image: str
    log: Path


def build_program(folder: Path) -> bytes:
    source = folder / "main.go"
    source.write_text(PROGRAM)
    binary = folder / "pause"
    subprocess.run(["go", "build", "-o", binary, source], check=True, env=_go_environment(), cwd=folder)
    return binary.read_bytes()


def _go_environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off"}


class Registry:
    """The blobs of one image, by the paths under which a registry serves them."""

    def __init__(self, program: bytes) -> None:
        layer = _tar_of("pause", program)
        packed = gzip.compress(layer, mtime=0)
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": ["/pause"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
        config_bytes = json.dumps(config).encode()
        kind = "application/vnd.docker.distribution.manifest.v2+json"
        manifest = {
            "schemaVersion": 2,
            "mediaType": kind,
            "config": _descriptor("application/vnd.docker.container.image.v1+json", config_bytes),
            "layers": [_descriptor("application/vnd.docker.image.rootfs.diff.tar.gzip", packed)],
        }
        manifest_bytes = json.dumps(manifest).encode()
        self.config_digest = _digest(config_bytes)
        self.answers: dict[str, tuple[str, bytes]] = {"/v2/": ("application/json", b"{}")}
        for name in ("1", _digest(manifest_bytes)):
            self.answers[f"/v2/pause/manifests/{name}"] = (kind, manifest_bytes)
        for blob in (config_bytes, packed):
            self.answers[f"/v2/pause/blobs/{_digest(blob)}"] = ("application/octet-stream", blob)

    @contextmanager
    def serve(self) -> Iterator[str]:
        """The host and port of the registry, on loopback and without TLS."""
        answers = self.answers

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kind, body = answers.get(self.path.split("?")[0], ("", b""))
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "text/plain")
                self.send_header("Content-Length", str(len(body)))
                if "/manifests/" in self.path and kind:
                    self.send_header("Docker-Content-Digest", _digest(body))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_HEAD = do_GET  # noqa: N815  # the library's name

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


@contextmanager
def containerd(folder: Path, image: str) -> Iterator[Runtime]:
    """A containerd that keeps everything in `folder`; ended with all it started."""
    config = folder / "config.toml"
    config.write_text(CONFIG.format(folder=folder, image=image))
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(["containerd", "--config", config], stdout=output, stderr=output)
    runtime = Runtime(f"unix://{folder}/c.sock", image, log)
    try:
        _wait_until_it_answers(runtime, process)
        yield runtime
    finally:
        # Sandboxes that a failed test left have processes of their own, which outlive containerd.
        with contextlib.suppress(GarboardError), CriClient(runtime.socket) as client:
            for sandbox in client.list_sandboxes():
                client.stop_sandbox(sandbox.id)
                client.remove_sandbox(sandbox.id)
        process.terminate()
        process.wait(20)


def _wait_until_it_answers(runtime: Runtime, process: "subprocess.Popen[bytes]") -> None:
    give_up_at = time.monotonic() + 60
    while True:
        try:
            with CriClient(runtime.socket) as client:
                client.version()
                return
        except RuntimeUnavailable:
            if process.poll() is not None or time.monotonic() > give_up_at:
                raise AssertionError(runtime.log.read_text()) from None
            time.sleep(0.1)


def _tar_of(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(content), 0o755
        archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _descriptor(kind: str, data: bytes) -> dict[str, str | int]:
    return {"mediaType": kind, "digest": _digest(data), "size": len(data)}
