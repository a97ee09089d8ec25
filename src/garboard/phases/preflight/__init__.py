"""Whether a machine can become a node: kubeadm's checks by their names.

A check is a function from the inspected machine to findings; nothing is changed. Which checks there are depends on the
kind of node, and whether a finding is an error or a warning also on `--ignore-preflight-errors`.
"""

from garboard.phases.preflight.checks import Check
from garboard.phases.preflight.inspector import MachineInspector, ObservedRuntime
from garboard.phases.preflight.plan import (
    PreflightFinding,
    PreflightResult,
    classify,
    control_plane_checks,
    join_checks,
    plan_checks,
    plan_images,
    run_checks,
)

__all__ = [
    "Check",
    "MachineInspector",
    "ObservedRuntime",
    "PreflightFinding",
    "PreflightResult",
    "classify",
    "control_plane_checks",
    "join_checks",
    "plan_checks",
    "plan_images",
    "run_checks",
]
