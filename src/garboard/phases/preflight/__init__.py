"""Whether a machine can become a node: kubeadm's checks by their names, over what is seen of the machine.

A check is a function from what it sees to findings; nothing is changed. Which checks there are depends on what the
machine shall become, and what a finding means on `--ignore-preflight-errors`.
"""

from garboard.phases.preflight.exam import Exam, RuntimeSeen
from garboard.phases.preflight.images import plan_images
from garboard.phases.preflight.lists import control_plane_checks, join_checks
from garboard.phases.preflight.outcome import Check, Finding, PreflightFailed, Verdict, examine, judge

__all__ = [
    "Check",
    "Exam",
    "Finding",
    "PreflightFailed",
    "RuntimeSeen",
    "Verdict",
    "control_plane_checks",
    "examine",
    "join_checks",
    "judge",
    "plan_images",
]
