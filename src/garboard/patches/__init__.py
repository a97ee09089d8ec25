"""Patches (KEP-1739): strategic, merge and JSON patches as kubectl and kubeadm apply them, with each field's origin.

Reading the type data is left to `schema`, reading files and printing to `cli`; lint, capture and layers build on the
engine here and never around it.
"""

from garboard.patches.apply import Applied, apply_patches, apply_watched
from garboard.patches.capture import capture_patch
from garboard.patches.compile import CompiledFile, compile_patches
from garboard.patches.create import create_three_way, create_two_way
from garboard.patches.directory import IgnoredFile, PatchFile, PatchSet, TargetedPatch, read_directory
from garboard.patches.explain import explain_text, history_as_json
from garboard.patches.fieldpath import FieldPath, show_path
from garboard.patches.findings import Finding, PatchRefused, Severity, refuse_errors
from garboard.patches.numbers import as_decoded
from garboard.patches.objects import Entry, ObjectPatches, read_patch_set, unmatched
from garboard.patches.origin import Event, History, Origin, Origins
from garboard.patches.patch import Patch, PatchType, Source
from garboard.patches.run import patch_object, patch_target
from garboard.patches.targets import Target, find_target, finish, instance_patch, target_of, targets_of
from garboard.patches.tree import NodeFacts, read_patch_tree

__all__ = [
    "Applied",
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
    "Origins",
    "Patch",
    "PatchFile",
    "PatchRefused",
    "PatchSet",
    "PatchType",
    "Severity",
    "Source",
    "Target",
    "TargetedPatch",
    "apply_patches",
    "apply_watched",
    "as_decoded",
    "capture_patch",
    "compile_patches",
    "create_three_way",
    "create_two_way",
    "explain_text",
    "find_target",
    "finish",
    "history_as_json",
    "instance_patch",
    "patch_object",
    "patch_target",
    "read_directory",
    "read_patch_set",
    "read_patch_tree",
    "refuse_errors",
    "show_path",
    "target_of",
    "targets_of",
    "unmatched",
]
