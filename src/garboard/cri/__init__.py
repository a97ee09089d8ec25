"""The container runtime (containerd, CRI-O) through the CRI: a dozen calls, typed answers, errors in words.

It satisfies the Protocols of the code that stops sandboxes, pulls images and reads container states; what to do with
them is decided there.
"""

from garboard.cri.client import CriClient, RuntimeCallFailed, RuntimeUnavailable
from garboard.cri.values import (
    CONTAINER_LABEL,
    NAMESPACE_LABEL,
    POD_LABEL,
    CgroupDriver,
    Container,
    ContainerMetadata,
    ContainerState,
    ContainerStatus,
    Image,
    ImageSpec,
    RegistryAuth,
    RuntimeCondition,
    RuntimeStatus,
    RuntimeVersion,
    Sandbox,
    SandboxMetadata,
    SandboxState,
)

__all__ = [
    "CONTAINER_LABEL",
    "NAMESPACE_LABEL",
    "POD_LABEL",
    "CgroupDriver",
    "Container",
    "ContainerMetadata",
    "ContainerState",
    "ContainerStatus",
    "CriClient",
    "Image",
    "ImageSpec",
    "RegistryAuth",
    "RuntimeCallFailed",
    "RuntimeCondition",
    "RuntimeStatus",
    "RuntimeUnavailable",
    "RuntimeVersion",
    "Sandbox",
    "SandboxMetadata",
    "SandboxState",
]
