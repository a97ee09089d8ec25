"""Rendered, on disk and running: a component compared field by field, and what each difference is; pure.

What is compared comes from the caller, who has rendered and looked. What a difference means for an upgrade or a change
is left to `phases` and `change`; a difference that shall stay becomes a patch here.
"""

from garboard.drift.capture import CapturedFile, can_keep, capture, marker_file, needs_marker, with_fields
from garboard.drift.compare import compare, compare_all
from garboard.drift.difference import Difference, DriftKind, Seen
from garboard.drift.leaves import (
    KUBELET_ARGS,
    KUBELET_FLAGS,
    FlagStep,
    Leaf,
    LeafPath,
    leaves_of,
    same_meaning,
    show_leaf,
)
from garboard.drift.observed import flags_document, kubelet_command, own_part, with_command
from garboard.drift.placing import has_folders_for_kubeadm, placed_files
from garboard.drift.report import differences_as_json, differences_as_text
from garboard.drift.subject import DeclaredDocument, DriftSubject, FoundDocument, patched_from, rendered_from

__all__ = [
    "KUBELET_ARGS",
    "KUBELET_FLAGS",
    "CapturedFile",
    "DeclaredDocument",
    "Difference",
    "DriftKind",
    "DriftSubject",
    "FlagStep",
    "FoundDocument",
    "Leaf",
    "LeafPath",
    "Seen",
    "can_keep",
    "capture",
    "compare",
    "compare_all",
    "differences_as_json",
    "differences_as_text",
    "flags_document",
    "has_folders_for_kubeadm",
    "kubelet_command",
    "leaves_of",
    "marker_file",
    "needs_marker",
    "own_part",
    "patched_from",
    "placed_files",
    "rendered_from",
    "same_meaning",
    "show_leaf",
    "with_command",
    "with_fields",
]
