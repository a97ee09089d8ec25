"""Typed flag patches: a mapping of flag to value instead of a whole `command` list.

`kube-apiserver+args.yaml` sets, repeats (list) and removes (null) flags of a static Pod's main container. It compiles
to an ordinary JSON patch in which every change of an existing flag is guarded by a test: if kubeadm ever generates
another command, the compiled patch fails loudly instead of changing the wrong element.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from garboard.documents import DocumentPath, Json
from garboard.errors import PatchFailed
from garboard.rules.command_line import flag_name


@dataclass(frozen=True, slots=True)
class GuardedOperation:
    """One JSON patch operation, and the flag in the args file that it comes from."""

    operation: Json
    at: DocumentPath


def compile_args(args: Json, document: Json) -> list[GuardedOperation]:
    """Return the JSON patch operations that bring the command of `document` to what `args` asks for."""
    container, command = command_of(document)
    pointer = f"/spec/containers/{container}/command"
    changes: dict[int, GuardedOperation] = {}
    additions: list[GuardedOperation] = []
    for name, wanted in flags_of(args).items():
        present = [index for index, word in enumerate(command) if index and flag_name(word) == name.lstrip("-")]
        texts = [_flag_text(name, value, (name,)) for value in wanted]
        for index, text in zip(present, texts, strict=False):
            if text == command[index]:
                continue
            changes[index] = GuardedOperation({"op": "replace", "path": f"{pointer}/{index}", "value": text}, (name,))
        for index in present[len(texts) :]:
            changes[index] = GuardedOperation({"op": "remove", "path": f"{pointer}/{index}"}, (name,))
        additions += [
            GuardedOperation({"op": "add", "path": f"{pointer}/-", "value": text}, (name,))
            for text in texts[len(present) :]
        ]
    # From the back, so that a removal leaves the places of those still to come as they are.
    guarded: list[GuardedOperation] = []
    for index in sorted(changes, reverse=True):
        test: Json = {"op": "test", "path": f"{pointer}/{index}", "value": command[index]}
        guarded += [GuardedOperation(test, changes[index].at), changes[index]]
    return guarded + additions


def flags_of(args: Json) -> Mapping[str, Sequence[Json]]:
    """Return each flag with its values: none to remove it, several to repeat it."""
    if not isinstance(args, dict):
        raise PatchFailed(
            "an args patch must be a mapping of flag to value",
            error_class="bad-document",
            hint="write it as `profiling: false`",
        )
    return {name: _values(value) for name, value in args.items()}


def _values(value: Json) -> Sequence[Json]:
    if value is None:
        return ()
    return value if isinstance(value, list) else (value,)


def _flag_text(name: str, value: Json, at: DocumentPath) -> str:
    if isinstance(value, dict | list) or value is None:
        raise PatchFailed(
            f"the value of flag {name!r} must be text, a number or a boolean", error_class="wrong-type", at=at
        )
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"--{name.lstrip('-')}={text}"


def command_of(document: Json) -> tuple[int, list[str]]:
    """Return the main container's index and command: the container called as the Pod, else the first."""
    spec = document.get("spec") if isinstance(document, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if isinstance(document, dict) and isinstance(containers, list):
        metadata = document.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        numbered = [(index, each) for index, each in enumerate(containers) if isinstance(each, dict)]
        numbered.sort(key=lambda pair: pair[1].get("name") != name)
        for index, container in numbered[:1]:
            command = container.get("command")
            if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
                return index, [str(word) for word in command]
    raise PatchFailed(
        "an args patch needs a Pod whose main container has a command",
        error_class="path-missing",
        hint="args patches work on kube-apiserver, kube-controller-manager, kube-scheduler and etcd",
    )
