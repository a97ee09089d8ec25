"""Patches (KEP-1739): strategic, merge and JSON patches as kubectl and kubeadm apply them, with each field's origin.

Reading the type data is left to `schema`, reading files and printing to `cli`; lint, capture and layers build on the
engine here and never around it.
"""

from garboard.patches.apply import Applied, apply_patches, apply_watched
from garboard.patches.capture import capture_patch
from garboard.patches.check import PatchChecks, check_patch
from garboard.patches.compile import CompiledFile, compile_patches
from garboard.patches.create import create_three_way, create_two_way
from garboard.patches.directory import (
    IgnoredFile,
    PatchFile,
    PatchSet,
    TargetedPatch,
    parse_file_name,
    read_directory,
    read_patch_file,
)
from garboard.patches.explain import explain_text, history_as_json
from garboard.patches.fieldpath import FieldPath, show_path
from garboard.patches.findings import Finding, PatchRefused, Severity, in_reading_order, refuse_errors
from garboard.patches.lint import Subject, lint_patches
from garboard.patches.lint_objects import lint_objects, unused_entry
from garboard.patches.lint_report import count_errors, findings_as_json, findings_as_text, summary
from garboard.patches.lint_tree import lint_tree, unreadable
from garboard.patches.numbers import as_decoded
from garboard.patches.objects import Entry, ObjectPatches, read_patch_set, unmatched
from garboard.patches.origin import Base, Cause, Event, History, Origin, OriginKind, TextBase
from garboard.patches.origins import Origins
from garboard.patches.patch import Patch, PatchType, Source
from garboard.patches.patcher import TargetPatcher
from garboard.patches.run import patch_object, patch_target
from garboard.patches.sarif import findings_as_sarif
from garboard.patches.targets import (
    Target,
    find_target,
    finish,
    instance_patch,
    refuse_other_target,
    target_of,
    targets_of,
)
from garboard.patches.tree import MARKER, NodeFacts, read_patch_tree

__all__ = [
    "MARKER",
    "Applied",
    "Base",
    "Cause",
    "CompiledFile",
    "Entry",
    "Event",
    "FieldPath",
    "Finding",
    "History",
    "IgnoredFile",
    "NodeFacts",
    "ObjectPatches",
    "Origin",
    "OriginKind",
    "Origins",
    "Patch",
    "PatchChecks",
    "PatchFile",
    "PatchRefused",
    "PatchSet",
    "PatchType",
    "Severity",
    "Source",
    "Subject",
    "Target",
    "TargetPatcher",
    "TargetedPatch",
    "TextBase",
    "apply_patches",
    "apply_watched",
    "as_decoded",
    "capture_patch",
    "check_patch",
    "compile_patches",
    "count_errors",
    "create_three_way",
    "create_two_way",
    "explain_text",
    "find_target",
    "findings_as_json",
    "findings_as_sarif",
    "findings_as_text",
    "finish",
    "history_as_json",
    "in_reading_order",
    "instance_patch",
    "lint_objects",
    "lint_patches",
    "lint_tree",
    "parse_file_name",
    "patch_object",
    "patch_target",
    "read_directory",
    "read_patch_file",
    "read_patch_set",
    "read_patch_tree",
    "refuse_errors",
    "refuse_other_target",
    "show_path",
    "summary",
    "target_of",
    "targets_of",
    "unmatched",
    "unreadable",
    "unused_entry",
]
