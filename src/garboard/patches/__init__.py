"""Patches (KEP-1739): strategic, merge and JSON patches as kubectl and kubeadm apply them, with each field's origin.

Reading the type data is left to `schema`, reading files and printing to `cli`; lint, capture and layers build on the
engine here and never around it.
"""

from garboard.patches.apply import Applied, apply_patches, is_already_patched
from garboard.patches.asking import asked_history
from garboard.patches.capture import capture_args, capture_patch, refuse_other_object
from garboard.patches.check import PatchChecks, check_patch
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
from garboard.patches.exceptions import ACCEPT, IGNORE, check_codes, with_exceptions
from garboard.patches.explain import explain_text, history_as_json
from garboard.patches.fieldpath import FieldPath, show_path
from garboard.patches.findings import Finding, PatchRefused, Severity, in_reading_order, refuse_errors
from garboard.patches.history import Base, Cause, Event, History, Origin, OriginKind, TextBase
from garboard.patches.json_values import as_decoded, copy_of
from garboard.patches.lint import AssumedDocuments, lint_objects, lint_patches, unused_entry
from garboard.patches.lint_tree import lint_tree, unreadable
from garboard.patches.objects import (
    LabelSelector,
    ObjectPatches,
    PatchSetEntry,
    Selection,
    read_patch_set,
    unmatched,
)
from garboard.patches.origins import Origins
from garboard.patches.patch import Patch, PatchType, SourceText, TextPart
from garboard.patches.report import count_errors, findings_as_json, findings_as_sarif, findings_as_text, summary
from garboard.patches.scaffold import scaffold
from garboard.patches.targets import (
    PatchSubject,
    Target,
    find_target,
    instance_patch,
    refuse_other_target,
    target_of,
    targets_of,
)
from garboard.patches.tree import MARKER, CompiledFile, NodeFacts, compile_patches, read_patch_tree

__all__ = [
    "ACCEPT",
    "IGNORE",
    "MARKER",
    "Applied",
    "AssumedDocuments",
    "Base",
    "Cause",
    "CompiledFile",
    "Event",
    "FieldPath",
    "Finding",
    "History",
    "IgnoredFile",
    "LabelSelector",
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
    "PatchSetEntry",
    "PatchSubject",
    "PatchType",
    "Selection",
    "Severity",
    "SourceText",
    "Target",
    "TargetedPatch",
    "TextBase",
    "TextPart",
    "apply_patches",
    "as_decoded",
    "asked_history",
    "capture_args",
    "capture_patch",
    "check_codes",
    "check_patch",
    "compile_patches",
    "copy_of",
    "count_errors",
    "create_three_way",
    "create_two_way",
    "explain_text",
    "find_target",
    "findings_as_json",
    "findings_as_sarif",
    "findings_as_text",
    "history_as_json",
    "in_reading_order",
    "instance_patch",
    "is_already_patched",
    "lint_objects",
    "lint_patches",
    "lint_tree",
    "parse_file_name",
    "read_directory",
    "read_patch_file",
    "read_patch_set",
    "read_patch_tree",
    "refuse_errors",
    "refuse_other_object",
    "refuse_other_target",
    "scaffold",
    "show_path",
    "summary",
    "target_of",
    "targets_of",
    "unmatched",
    "unreadable",
    "unused_entry",
    "with_exceptions",
]
