"""Provisioning a cluster with an installer: its stages, what is next after a kill, and the scrubbing of output. Pure.

The record of a work folder is a value (`record`); `stages` decides from it what is next. Carrying out is left to
`garboard.node.fleet`.
"""

from garboard.fleet.provision.record import (
    AttemptEnd,
    AttemptRecord,
    ProvisionRecord,
    StageName,
    read_record,
    record_bytes,
)
from garboard.fleet.provision.scrubbing import REDACTED_LINE, OutputScrubber, ScrubbedLines
from garboard.fleet.provision.stages import (
    BeginAttempt,
    DestroyAttempt,
    DiscardAttempt,
    NextAction,
    Provisioned,
    RunStage,
    attempts_to_destroy,
    next_action,
)

__all__ = [
    "REDACTED_LINE",
    "AttemptEnd",
    "AttemptRecord",
    "BeginAttempt",
    "DestroyAttempt",
    "DiscardAttempt",
    "NextAction",
    "OutputScrubber",
    "ProvisionRecord",
    "Provisioned",
    "RunStage",
    "ScrubbedLines",
    "StageName",
    "attempts_to_destroy",
    "next_action",
    "read_record",
    "record_bytes",
]
