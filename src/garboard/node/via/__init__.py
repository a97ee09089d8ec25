"""Our own command on another node, through a command of the operator's, such as `ssh {node} sudo`.

A carrier runs it, passes its output on with the node's name, and finds out what became of it when the connection is
lost. What is to be run where, and in which order, is the caller's.
"""

from garboard.node.via.carrier import Carrier, CommandEnded, CommandFound, CommandUnknown, NodeUnknown, Outcome, Via
from garboard.node.via.remote_status import RemoteRun, RemoteStatus

__all__ = [
    "Carrier",
    "CommandEnded",
    "CommandFound",
    "CommandUnknown",
    "NodeUnknown",
    "Outcome",
    "RemoteRun",
    "RemoteStatus",
    "Via",
]
