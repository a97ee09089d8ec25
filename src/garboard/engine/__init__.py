"""How anything is changed: actions, the steps that put them into a plan, and the executor that carries a plan out.

Nothing here knows kubeadm. What to do is planned by `phases`; how a file is written or a service started is left to
the edges, which satisfy the Protocols of `execute`.
"""

from garboard.engine.action import (
    Action,
    ChangeOwner,
    ControlService,
    Filling,
    Issue,
    IssuedFile,
    IssueRequest,
    MakeFolder,
    PutObject,
    Unsupported,
    WriteFile,
)
from garboard.engine.execute import Executor, FileWriter, Hands, Issuer, PlanRefused, Recorder, ServiceControl
from garboard.engine.plan import Note, Plan, Step, paths_written
from garboard.engine.show import plan_as_json, plan_as_text, step_title

__all__ = [
    "Action",
    "ChangeOwner",
    "ControlService",
    "Executor",
    "FileWriter",
    "Filling",
    "Hands",
    "Issue",
    "IssueRequest",
    "IssuedFile",
    "Issuer",
    "MakeFolder",
    "Note",
    "Plan",
    "PlanRefused",
    "PutObject",
    "Recorder",
    "ServiceControl",
    "Step",
    "Unsupported",
    "WriteFile",
    "paths_written",
    "plan_as_json",
    "plan_as_text",
    "step_title",
]
