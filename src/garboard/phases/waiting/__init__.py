"""What init and join wait for: gates as values, how each is looked at, and the evidence when one stays closed.

Polling and deadlines are the engine's. The machine, the API server and the container runtime come in through `World`.
"""

from garboard.phases.waiting.evidence import gather, gather_component
from garboard.phases.waiting.gates import (
    API_SERVER,
    ApiServerReady,
    ComponentHealthy,
    EtcdHealthy,
    KubeletBootstrapped,
    KubeletHealthy,
    NodeGate,
    NodeRegistered,
    control_plane_gates,
)
from garboard.phases.waiting.looking import look_at
from garboard.phases.waiting.world import Answer, ContainerSeen, World

__all__ = [
    "API_SERVER",
    "Answer",
    "ApiServerReady",
    "ComponentHealthy",
    "ContainerSeen",
    "EtcdHealthy",
    "KubeletBootstrapped",
    "KubeletHealthy",
    "NodeGate",
    "NodeRegistered",
    "World",
    "control_plane_gates",
    "gather",
    "gather_component",
    "look_at",
]
