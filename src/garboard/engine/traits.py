"""What the engine knows of each kind of action, one row a kind: all that is not its value or its interpreter.

A new action has its class in `action`, its row here, and its interpreter in `node.interpreters`; nothing else in the
engine asks of which kind an action is, except undo, which knows what has to be taken back in which order.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from garboard.documents import Json, write_yaml
from garboard.engine import pre_image as before
from garboard.engine.action import (
    AcquireLease,
    Action,
    AddMember,
    AwaitGate,
    ChangeOwner,
    ControlLink,
    ControlService,
    ControlTimer,
    ControlUnitFile,
    DeleteObject,
    DeletePods,
    EmptyFolder,
    EvictPods,
    Issue,
    LeaseAction,
    MakeFolder,
    MoveLeader,
    ObjectAction,
    PatchObject,
    PromoteMember,
    PullImage,
    PutObject,
    ReleaseLease,
    RemoveFile,
    RemoveFolder,
    RemoveMember,
    RemoveSandboxes,
    RestartLearner,
    SaveSnapshot,
    ShowMessage,
    StopContainer,
    StopPods,
    Unmount,
    WriteFile,
)
from garboard.engine.file_content import content_lines, file_content, is_file_there, is_written, write_title
from garboard.engine.plan import Step
from garboard.engine.trait import Document, ProbeInputs, Traits, given, mode_text


def _owner_title(action: ChangeOwner) -> str:
    mode = "" if action.mode is None else f" ({mode_text(action.mode)})"
    return f"give {action.path} to {action.uid}:{action.gid}{mode}"


def _owner_document(action: ChangeOwner) -> Document:
    mode: Document = {} if action.mode is None else {"mode": mode_text(action.mode)}
    return {"path": action.path, "uid": action.uid, "gid": action.gid, **mode}


def _issue_document(action: Issue) -> Document:
    files: list[Json] = [
        {"path": file.path, "mode": mode_text(file.mode), "placeholder": file.holds} for file in action.files
    ]
    return {"name": action.name, "files": files, "request": action.request.describe()}


def _issue_details(action: Issue) -> list[str]:
    request = write_yaml(action.request.describe()).splitlines()
    return [*request, *(f"-> {file.path} ({mode_text(file.mode)}): {file.holds}" for file in action.files)]


def _is_issued(action: Issue, inputs: ProbeInputs) -> bool:
    # Exactly the bytes that were issued, all of them: a key never stands beside another's certificate.
    found = {file.path: inputs.observers.files.read(file.path) for file in action.files}
    digests = {path: before.digest_of(data) for path, data in found.items() if data is not None}
    return bool(inputs.facts) and digests == inputs.facts


def _object_title(verb: str) -> Callable[[ObjectAction], str]:
    def title(action: ObjectAction) -> str:
        place = f"{action.namespace}/{action.name}" if action.namespace else action.name
        return f"{verb} {action.kind} {place}"

    return title


def _object_document(action: ObjectAction) -> Document:
    place: Document = {"apiVersion": action.api_version, "kind": action.kind}
    return {**place, "namespace": action.namespace, "name": action.name}


def _object_content(action: PutObject) -> Document:
    if not action.is_secret:
        return {"content": action.content}
    return {"sha256": hashlib.sha256(json.dumps(action.content, sort_keys=True).encode()).hexdigest()}


def _service_title(action: ControlService) -> str:
    condition = f", unless {action.unless} is there" if action.unless else ""
    return f"{action.verb} service {action.service}{condition}"


def _service_document(action: ControlService) -> Document:
    effects = given(fills=[*action.fills], writes=[*action.writes], registers=action.registers, unless=action.unless)
    return {"service": action.service, **effects}


def _is_started(action: ControlService, inputs: ProbeInputs) -> bool:
    services = inputs.observers.services
    return action.verb == "start" and services is not None and services.is_active(action.service)


def _link_title(action: ControlLink) -> str:
    if action.verb == "remove":
        return f"take the address {action.address} and the link {action.link} from this node"
    return f"give this node the address {action.address} on the link {action.link}"


def _has_address(action: ControlLink, inputs: ProbeInputs) -> bool:
    links = inputs.observers.links
    return links is not None and links.has_address(action.address) == (action.verb == "add")


def _selector(action: StopPods | DeletePods) -> str:
    return ",".join(f"{name}={value}" for name, value in action.selector)


def _gate_document(action: AwaitGate) -> Document:
    gate = action.gate
    return {"for": gate.name, "timeoutSeconds": gate.timeout_s, "looksAt": gate.describe()}


def _lease_document(action: AcquireLease | ReleaseLease) -> Document:
    return {"namespace": action.namespace, "name": action.name, "holder": action.holder}


_FILES, _OBJECTS, _MEMBERS = "changing files", "putting objects into the cluster", "changing the members of etcd"
_RUNTIME, _LEASES = "talking to the container runtime", "holding a Lease"
_ETCD = "looking after etcd"

TRAITS: Mapping[type, Traits[Any]] = {
    MakeFolder: Traits[MakeFolder](
        tag="make-folder",
        ability=_FILES,
        title=lambda action: f"make folder {action.path} ({mode_text(action.mode)})",
        document=lambda action: {"path": action.path, "mode": mode_text(action.mode)},
        pre_image=lambda action, observers, _: before.absent_folder(action.path, observers),
    ),
    WriteFile: Traits[WriteFile](
        tag="write-file",
        fits_units=True,
        ability=_FILES,
        title=write_title,
        document=lambda action: {"path": action.path, "mode": mode_text(action.mode), **file_content(action)},
        details=lambda action: content_lines(file_content(action)),
        writes=lambda action: (action.path,),
        needs=lambda action: tuple(each.name for each in action.outcomes),
        pre_image=lambda action, observers, keep: before.files([action.path], observers, keep),
        is_done=is_file_there,
        wrote=is_written,
    ),
    RemoveFile: Traits[RemoveFile](
        tag="remove-file",
        fits_units=True,
        ability=_FILES,
        title=lambda action: f"remove {action.path}",
        document=lambda action: {"path": action.path},
        changes=lambda action: (action.path,),
        removes=lambda action: (action.path,),
        pre_image=lambda action, observers, keep: before.files([action.path], observers, keep),
    ),
    RemoveFolder: Traits[RemoveFolder](
        tag="remove-folder",
        ability=_FILES,
        title=lambda action: f"remove {action.path}",
        document=lambda action: {"path": action.path},
        pre_image=lambda action, observers, _: before.owners([action.path], observers),
    ),
    EmptyFolder: Traits[EmptyFolder](
        tag="empty-folder",
        ability=_FILES,
        title=lambda action: f"empty {action.path}" + (f" but for {', '.join(action.keeps)}" if action.keeps else ""),
        document=lambda action: {"path": action.path, **given(keeps=[*action.keeps], only=[*action.only])},
        changes=lambda action: (action.path,),
        loses="what is in the folder",
    ),
    Unmount: Traits[Unmount](
        tag="unmount",
        ability=_FILES,
        title=lambda action: (
            f"unmount what is below {action.path}" + (f" but for {', '.join(action.keeps)}" if action.keeps else "")
        ),
        document=lambda action: {"path": action.path, **given(flags=[*action.flags], keeps=[*action.keeps])},
        loses="the mounts",
    ),
    ChangeOwner: Traits[ChangeOwner](
        tag="change-owner",
        ability=_FILES,
        title=_owner_title,
        document=_owner_document,
        pre_image=lambda action, observers, _: before.owners(
            [action.path, *(observers.files.paths_below(action.path) if action.mode is None else ())], observers
        ),
    ),
    Issue: Traits[Issue](
        tag="issue",
        ability="issuing certificates",
        title=lambda action: f"issue {action.name}",
        document=_issue_document,
        details=_issue_details,
        writes=lambda action: tuple(file.path for file in action.files),
        pre_image=lambda action, observers, keep: before.files([file.path for file in action.files], observers, keep),
        is_done=_is_issued,
        wrote=lambda _action, path, data, facts: before.digest_of(data) in [each.get(path) for each in facts],
    ),
    PutObject: Traits[PutObject](
        tag="put-object",
        ability=_OBJECTS,
        title=_object_title("put"),
        document=lambda action: {
            **_object_document(action),
            **given(resourceVersion=action.resource_version, keepsExisting=action.keeps_existing),
            **_object_content(action),
        },
        details=lambda action: content_lines(_object_content(action)),
        is_repeatable=True,
        pre_image=before.api_object,
    ),
    PatchObject: Traits[PatchObject](
        tag="patch-object",
        ability=_OBJECTS,
        title=_object_title("patch"),
        document=lambda action: {
            **_object_document(action),
            "patch": action.content,
            **given(
                united=["/".join(path) for path in action.united],
                keepsIfUsed=[each.key for each in action.shared_keys],
                deletesEmpty=action.deletes_empty,
            ),
        },
        details=lambda action: write_yaml(action.content).splitlines(),
        is_repeatable=True,
        pre_image=before.api_object,
    ),
    DeleteObject: Traits[DeleteObject](
        tag="delete-object",
        ability=_OBJECTS,
        title=_object_title("delete"),
        document=lambda action: {
            **_object_document(action),
            **given(unless="/".join(action.unless), mayBeLeft=action.may_be_left),
        },
        is_repeatable=True,
        pre_image=before.api_object,
    ),
    EvictPods: Traits[EvictPods](
        tag="evict-pods",
        ability=_OBJECTS,
        title=lambda action: f"evict the pods of Node {action.node_name} (at most {action.timeout_s:.0f} s)",
        document=lambda action: {
            "node": action.node_name,
            "timeoutSeconds": action.timeout_s,
            **given(
                graceSeconds=action.grace_s,
                deletesUnmanaged=action.deletes_unmanaged,
                deletesEmptyDirs=action.deletes_empty_dirs,
            ),
        },
        waits_for="pods to end",
    ),
    DeletePods: Traits[DeletePods](
        tag="delete-pods",
        ability=_OBJECTS,
        title=lambda action: f"delete the pods {_selector(action)} of {action.namespace} on {action.node_name}",
        document=lambda action: {
            "node": action.node_name,
            "namespace": action.namespace,
            "selector": {**dict(action.selector)},
            "timeoutSeconds": action.timeout_s,
        },
        waits_for="pods to end",
    ),
    ControlService: Traits[ControlService](
        tag="control-service",
        fits_units=True,
        ability="controlling services",
        title=_service_title,
        document=_service_document,
        type=lambda action: f"{action.verb}-service",
        changes=lambda action: (*action.fills, *action.writes),
        pre_image=before.service,
        is_done=_is_started,
    ),
    ControlTimer: Traits[ControlTimer](
        tag="control-timer",
        ability="controlling timers",
        title=lambda action: f"{action.verb} timer {action.timer}",
        document=lambda action: {"timer": action.timer},
        type=lambda action: f"{action.verb}-timer",
        pre_image=lambda action, observers, _: before.timer(action.timer, observers),
    ),
    ControlUnitFile: Traits[ControlUnitFile](
        tag="control-unit-file",
        ability="controlling services",
        title=lambda action: f"{action.verb} service {action.service}",
        document=lambda action: {"service": action.service},
        type=lambda action: f"{action.verb}-service",
        pre_image=lambda action, observers, _: before.unit_file(action.service, observers),
    ),
    ControlLink: Traits[ControlLink](
        tag="control-link",
        ability="giving this node an address",
        title=_link_title,
        document=lambda action: {"address": action.address, "link": action.link},
        type=lambda action: f"{action.verb}-link",
        pre_image=lambda action, observers, _: before.address(action.address, observers),
        is_done=_has_address,
        # A link does not outlive the machine's restart.
        lapses_until=lambda _action, _later: False,
    ),
    PullImage: Traits[PullImage](
        tag="pull-image",
        ability=_RUNTIME,
        title=lambda action: f"pull {', '.join((action.image, *action.beside))}",
        document=lambda action: {"image": action.image, **given(beside=[*action.beside]), "always": action.is_always},
        waits_for="a registry",
    ),
    RemoveSandboxes: Traits[RemoveSandboxes](
        tag="remove-sandboxes",
        ability=_RUNTIME,
        title=lambda action: "remove pod sandboxes" + " but for those that were there before" * bool(action.keeps),
        document=lambda action: given(keeps=[*action.keeps]),
        loses="the pods of this node",
    ),
    StopContainer: Traits[StopContainer](
        tag="stop-container",
        fits_units=True,
        ability=_RUNTIME,
        title=lambda action: f"stop the container {action.container}, whose manifest is away",
        document=lambda action: {
            "container": action.container,
            "manifest": action.manifest,
            **given(afterSeconds=action.after_s),
        },
    ),
    StopPods: Traits[StopPods](
        tag="stop-pods",
        fits_units=True,
        ability=_RUNTIME,
        title=lambda action: f"restart the pods {_selector(action)} of {action.namespace} on this node",
        document=lambda action: {
            "namespace": action.namespace,
            "selector": {**dict(action.selector)},
            "graceSeconds": action.grace_s,
        },
    ),
    AddMember: Traits[AddMember](
        tag="add-member",
        ability=_MEMBERS,
        title=lambda action: f"add etcd member {action.name} as a learner ({action.peer_url})",
        document=lambda action: {"name": action.name, "peerURL": action.peer_url, "placeholder": action.outcome},
        waits_for="another member that is joining",
        pre_image=lambda action, observers, _: before.member(action.peer_url, observers),
        # Until it votes, a learner may be removed by the next node that joins.
        lapses_until=lambda action, later: isinstance(later, PromoteMember) and later.peer_url == action.peer_url,
    ),
    RestartLearner: Traits[RestartLearner](
        tag="restart-learner",
        ability=_RUNTIME,
        title=lambda action: f"restart the learner if it has its data and is silent (within {action.timeout_s:.0f} s)",
        document=lambda action: {
            "clientURL": action.client_url,
            **given(peerURL=action.peer_url),
            "dataDir": action.data_dir,
            "timeoutSeconds": action.timeout_s,
        },
        waits_for="the data of etcd",
    ),
    PromoteMember: Traits[PromoteMember](
        tag="promote-member",
        ability=_MEMBERS,
        title=lambda action: f"promote etcd member {action.peer_url}",
        document=lambda action: {"peerURL": action.peer_url},
        waits_for="the data of etcd",
    ),
    RemoveMember: Traits[RemoveMember](
        tag="remove-member",
        ability=_MEMBERS,
        title=lambda action: f"remove etcd member {action.peer_url}",
        document=lambda action: {"peerURL": action.peer_url, **given(memberID=action.member_id)},
        loses="the member of etcd",
    ),
    SaveSnapshot: Traits[SaveSnapshot](
        tag="save-snapshot",
        ability=_ETCD,
        title=lambda action: (
            f"save a snapshot of etcd in {action.path}"
            + (f", and keep the {action.keeps} newest there" if action.keeps else "")
        ),
        document=lambda action: {"path": action.path, "clientURL": action.client_url, **given(keeps=action.keeps)},
        changes=lambda action: (action.path,),
        waits_for="the data of etcd",
        is_repeatable=True,
        pre_image=lambda action, observers, _: before.new_file(action.path, observers),
        # Its digest is recorded when all of it is there: what has the name then is that file.
        is_done=lambda action, inputs: bool(inputs.facts) and inputs.observers.files.owner(action.path) is not None,
    ),
    MoveLeader: Traits[MoveLeader](
        tag="move-leader",
        ability=_ETCD,
        title=lambda action: f"have another member lead etcd than {action.peer_url}",
        document=lambda action: {"peerURL": action.peer_url, "timeoutSeconds": action.timeout_s},
    ),
    AcquireLease: Traits[AcquireLease](
        tag="acquire-lease",
        ability=_LEASES,
        title=lambda action: (
            f"acquire Lease {action.namespace}/{action.name}"
            + (f", to last {action.duration_s:.0f} s without renewal" if action.duration_s else "")
            + ("" if action.is_needed else ", if the API server answers")
        ),
        document=lambda action: {**_lease_document(action), **given(durationSeconds=round(action.duration_s))},
        waits_for="the holder of the Lease",
        # The process that held it has gone. The duration that it had last is the one that counts.
        lapses_until=lambda action, later: isinstance(later, LeaseAction) and later.name == action.name,
    ),
    ReleaseLease: Traits[ReleaseLease](
        tag="release-lease",
        ability=_LEASES,
        title=lambda action: f"release Lease {action.namespace}/{action.name}",
        document=_lease_document,
        is_repeatable=True,
    ),
    AwaitGate: Traits[AwaitGate](
        tag="wait",
        fits_units=True,
        ability="waiting for a gate",
        title=lambda action: f"wait for {action.gate.name} (at most {action.gate.timeout_s:.0f} s)",
        document=_gate_document,
        details=lambda action: write_yaml(action.gate.describe()).splitlines(),
        waits_for="a gate",
        # What was well when the run stopped may have died since: steps that need it shall not find that out.
        lapses_until=lambda action, _later: action.gate.is_for_beginning,
    ),
    ShowMessage: Traits[ShowMessage](
        tag="show-message",
        ability="showing what to do next",
        title=lambda action: f"show {action.about}",
        document=lambda action: {"about": action.about},
    ),
}

# The types of actions that cannot be taken back, as a plan in a journal names them.
LOSSES = frozenset(traits.tag for traits in TRAITS.values() if traits.loses)


def traits_of(action: Action) -> Traits[Any]:
    """Return the row of an action's kind."""
    return TRAITS[type(action)]


def paths_written(steps: Iterable[Step]) -> frozenset[str]:
    """Return every file that the steps write."""
    return frozenset(path for step in steps for path in traits_of(step.action).writes(step.action))


def point_of_no_return(steps: Iterable[Step]) -> int | None:
    """Return the index of the first step that removes what cannot be restored; None if there is none."""
    return next((index for index, step in enumerate(steps) if traits_of(step.action).loses), None)
