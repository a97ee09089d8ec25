"""The CRI as Kubernetes publishes it: api.proto of the Go module, compiled by protoc."""

import json
import subprocess
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

VERSION = "v0.37.1"


def descriptors(folder: Path) -> descriptor_pb2.FileDescriptorProto:
    """The compiled definition."""
    found = subprocess.run(
        ["go", "mod", "download", "-json", f"k8s.io/cri-api@{VERSION}"],
        check=True,
        stdout=subprocess.PIPE,
        cwd=folder,
    )
    source = Path(json.loads(found.stdout)["Dir"]) / "pkg/apis/runtime/v1"
    compiled = folder / "api.pb"
    assert protoc.main(["protoc", f"-I{source}", f"--descriptor_set_out={compiled}", "api.proto"]) == 0
    files = descriptor_pb2.FileDescriptorSet()
    files.ParseFromString(compiled.read_bytes())
    [file] = files.file
    return file


class UpstreamClient:
    """Calls of the CRI that our client does not have, through grpcio and the protobuf runtime."""

    def __init__(self, socket: str, file: descriptor_pb2.FileDescriptorProto) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        self._pool.Add(file)
        self._channel = grpc.insecure_channel(f"unix:{socket.removeprefix('unix://')}")

    def message(self, name: str, **fields: Any) -> Any:
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(f"runtime.v1.{name}"))(**fields)

    def call(self, method: str, **fields: Any) -> Any:
        """Call a method of the RuntimeService with these fields in its request."""
        answer = message_factory.GetMessageClass(self._pool.FindMessageTypeByName(f"runtime.v1.{method}Response"))
        request = self.message(f"{method}Request", **fields)
        invoke = self._channel.unary_unary(
            f"/runtime.v1.RuntimeService/{method}",
            request_serializer=lambda each: each.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        return invoke(request, timeout=60)

    def close(self) -> None:
        self._channel.close()
