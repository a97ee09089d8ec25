"""Our field numbers beside those of api.proto."""

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Kind

from garboard.cri import schema
from garboard.rpc import wire
from garboard.rpc.message import Field, Message
from tests.support.cri.upstream import descriptors

TABLES: dict[str, Message[Any]] = {
    "VersionRequest": schema.VERSION_REQUEST,
    "VersionResponse": schema.VERSION_RESPONSE,
    "StatusRequest": schema.STATUS_REQUEST,
    "StatusResponse": schema.STATUS_RESPONSE,
    "RuntimeStatus": schema.RUNTIME_STATUS,
    "RuntimeCondition": schema.RUNTIME_CONDITION,
    "RuntimeConfigRequest": schema.EMPTY,
    "RuntimeConfigResponse": schema.RUNTIME_CONFIG_RESPONSE,
    "LinuxRuntimeConfiguration": schema.LINUX_RUNTIME_CONFIGURATION,
    "PodSandboxStateValue": schema.STATE_VALUE,
    "ContainerStateValue": schema.STATE_VALUE,
    "PodSandboxFilter": schema.SANDBOX_FILTER,
    "ListPodSandboxRequest": schema.LIST_POD_SANDBOX_REQUEST,
    "ListPodSandboxResponse": schema.LIST_POD_SANDBOX_RESPONSE,
    "PodSandbox": schema.SANDBOX,
    "PodSandboxMetadata": schema.SANDBOX_METADATA,
    "StopPodSandboxRequest": schema.SANDBOX_REQUEST,
    "StopPodSandboxResponse": schema.EMPTY,
    "RemovePodSandboxRequest": schema.SANDBOX_REQUEST,
    "RemovePodSandboxResponse": schema.EMPTY,
    "ContainerFilter": schema.CONTAINER_FILTER,
    "ListContainersRequest": schema.LIST_CONTAINERS_REQUEST,
    "ListContainersResponse": schema.LIST_CONTAINERS_RESPONSE,
    "Container": schema.CONTAINER,
    "ContainerMetadata": schema.CONTAINER_METADATA,
    "ContainerStatusRequest": schema.CONTAINER_STATUS_REQUEST,
    "ContainerStatusResponse": schema.CONTAINER_STATUS_RESPONSE,
    "ContainerStatus": schema.CONTAINER_STATUS,
    "StopContainerRequest": schema.STOP_CONTAINER_REQUEST,
    "StopContainerResponse": schema.EMPTY,
    "ImageSpec": schema.IMAGE_SPEC,
    "Image": schema.IMAGE,
    "ImageStatusRequest": schema.IMAGE_STATUS_REQUEST,
    "ImageStatusResponse": schema.IMAGE_STATUS_RESPONSE,
    "ImageFilter": schema.IMAGE_FILTER,
    "ListImagesRequest": schema.LIST_IMAGES_REQUEST,
    "ListImagesResponse": schema.LIST_IMAGES_RESPONSE,
    "AuthConfig": schema.REGISTRY_AUTH,
    "PullImageRequest": schema.PULL_IMAGE_REQUEST,
    "PullImageResponse": schema.PULL_IMAGE_RESPONSE,
}

# Where our word differs from the wire's.
OUR_WORDS = {
    "created_at": "created_at_ns",
    "started_at": "started_at_ns",
    "finished_at": "finished_at_ns",
    "pinned": "is_pinned",
    "pod_sandbox_id": "sandbox_id",
}
LENGTH_KINDS = {Kind.TYPE_STRING, Kind.TYPE_BYTES, Kind.TYPE_MESSAGE}


@pytest.mark.real
def test_every_field_is_where_the_published_definition_has_it(tmp_path: Path) -> None:
    file = descriptors(tmp_path)
    published = {each.name: each for each in file.message_type}
    for name, table in TABLES.items():
        fields = {field.number: field for field in published[name].field}
        maps = {f".runtime.v1.{name}.{pair.name}" for pair in published[name].nested_type if pair.options.map_entry}
        for attribute, ours in table.table.items():
            theirs = fields[ours.number]
            assert attribute in (theirs.name, OUR_WORDS.get(theirs.name)), f"{name}.{attribute} is {theirs.name}"
            assert shape_of(ours) == shape_of_published(theirs, maps), f"{name}.{attribute}"


def shape_of(field: Field) -> tuple[bool, bool, bool, bool]:
    """Length-delimited, repeated, a map, a message."""
    return field.wire_type == wire.LENGTH, field.is_repeated, field.is_map, field.schema is not None


def shape_of_published(field: Kind, maps: set[str]) -> tuple[bool, bool, bool, bool]:
    is_map = field.type_name in maps
    is_repeated = field.label == Kind.LABEL_REPEATED and not is_map
    return field.type in LENGTH_KINDS, is_repeated, is_map, field.type == Kind.TYPE_MESSAGE and not is_map
