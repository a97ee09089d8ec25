"""Objects of the cluster: which kubeconfig of this machine leads to it, and the actions that change its objects."""

import base64
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from garboard.documents import Json
from garboard.engine import (
    DeleteObject,
    FilePlaceholder,
    Interpreters,
    Observation,
    PatchObject,
    PlanRefused,
    PutObject,
    SharedKey,
    StalePlan,
    StepContext,
)
from garboard.errors import ClusterUnreachable, GarboardError, NotReady
from garboard.host.node_machine import NodeMachine
from garboard.lazy import lazy_module
from garboard.manifests.uploaded import CLUSTER_ADMINS, cluster_admins_binding
from garboard.model.paths import ADMIN_CONF, BOOTSTRAP_KUBELET_CONF, KUBELET_CONF, SUPER_ADMIN_CONF
from garboard.node.interpreters.files import FileWriter
from garboard.node.observations import ObservedObjects
from garboard.retry import CLOCK, Clock, Pauses, wait_until
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard import kube
else:
    kube = lazy_module("garboard.kube")

_RIGHTS_WITHIN_S, _RIGHTS_PAUSES = 10.0, Pauses.every(0.1)
# Who connects to the shared endpoint waits for a Lease or for etcd, and tries again by itself; this is for moments.
_PATIENCE_OF_WAITS_S = 5.0
# Until the kubelet has a certificate of its own, the node uses the kubeconfig that it joined with.
_STAND_INS = {KUBELET_CONF: BOOTSTRAP_KUBELET_CONF}
_MAX_CONFLICTS = 5
_STALE = "the plan is stale: "
_OWNERS = ("metadata", "ownerReferences")
_VERSION = ("metadata", "resourceVersion")
_ANNOTATIONS = ("metadata", "annotations")
_DATA = ("data",)
# The credentials of this node have no right, have expired, or do not exist yet.
_WITHOUT_RIGHTS = ("forbidden", "unauthenticated", "bad-kubeconfig", "no-kubeconfig")


def _silent(_line: str, /) -> None:
    return


class ObjectWriter(Protocol):
    def put(self, action: PutObject) -> None:
        """Create the object, or update the existing one."""
        ...

    def patch(self, action: PatchObject) -> None:
        """Apply a strategic merge patch to an existing object."""
        ...

    def delete(self, action: DeleteObject) -> None:
        """Delete an object; it is no failure if there is none."""
        ...


class Sealer(Protocol):
    def seal(self, data: bytes, key: bytes) -> bytes:
        """Encrypt a file with the certificate key."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectInterpreter:
    """Changes objects through `objects`; files replace placeholders, encrypted by `sealer` if these have a key."""

    objects: ObjectWriter
    files: FileWriter
    sealer: Sealer | None = None

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(PutObject, self.put).add(PatchObject, self.patch).add(DeleteObject, self.delete)

    def put(self, action: PutObject, run: StepContext) -> None:
        try:
            self.objects.put(self._filled(action))
        except StalePlan as error:
            if not action.keeps_existing:
                raise
            run.report(f"warning: {error.message.removeprefix(_STALE)}; it is left as it is")

    def patch(self, action: PatchObject, _run: StepContext) -> None:
        self.objects.patch(action)

    def delete(self, action: DeleteObject, run: StepContext) -> None:
        try:
            self.objects.delete(action)
        except GarboardError as error:
            is_left = action.may_be_left and isinstance(error, ClusterUnreachable)
            if action.is_needed or not (is_left or error.error_class in _WITHOUT_RIGHTS):
                raise
            todo = f"kubectl delete {action.kind.lower()} {action.name}"
            cannot = f"cannot delete {action.kind} {action.name} ({error.message})"
            may_not = f"may not delete {action.kind} {action.name}"
            run.report(f"warning: this node {cannot if is_left else may_not}; please do: {todo}")

    def _filled(self, action: PutObject) -> PutObject:
        content = action.content
        for each in action.fillings:
            data = self._filling(each, action)
            content = _replaced(content, each.placeholder, base64.b64encode(data).decode())
        for ending in action.endings:
            moment = (datetime.now(UTC) + ending.after).strftime("%Y-%m-%dT%H:%M:%SZ")
            content = _replaced(content, ending.placeholder, base64.b64encode(moment.encode()).decode())
        return replace(action, content=content, fillings=(), endings=())

    def _filling(self, filling: FilePlaceholder, action: PutObject) -> bytes:
        data = self.files.read(filling.path)
        if data is None:
            if not filling.is_needed:
                return b""
            raise PlanRefused(f"{filling.path} has gone, and {action.kind} {action.name} needs it")
        if not filling.key:
            return data
        assert self.sealer is not None, "a plan that seals files is carried out by who can"
        return self.sealer.seal(data, filling.key)


def _replaced(content: Json, placeholder: str, text: str) -> Json:
    if isinstance(content, dict):
        return {key: _replaced(value, placeholder, text) for key, value in content.items()}
    if isinstance(content, list):
        return [_replaced(value, placeholder, text) for value in content]
    return content.replace(placeholder, text) if isinstance(content, str) else content


class NodeCluster:
    """The cluster of a kubeconfig of this machine; connected when first needed.

    With admin.conf, the default, the local API server is used; if the user of admin.conf has no rights in a new cluster
    yet, they are granted with super-admin.conf. kubeadm does both as well.
    """

    def __init__(
        self,
        machine: NodeMachine,
        kubeconfig: str,
        local_server: str,
        clock: Clock = CLOCK,
        *,
        report: Callable[[str], None] = _silent,
        is_patient: bool = True,
    ) -> None:
        self.machine = machine
        self.kubeconfig = kubeconfig
        self.local_server = local_server
        self._clock = clock
        self._report = report
        self._is_patient = is_patient
        self._by_server: dict[str, kube.KubeClient] = {}
        self._read = ObservedObjects()

    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None:
        found = self.reader.find(kind, namespace, name, api_version=api_version)
        if not api_version:
            self._read.remember(kind, namespace, name, found)
        return found

    def observed(self) -> tuple[Observation, ...]:
        """Return the objects that have been read by name, as they were first."""
        return self._read.observed()

    def labelled(self, kind: str, namespace: str, selector: str) -> tuple[dict[str, Json], ...]:
        return self.reader.labelled(kind, namespace, selector)

    def list_all(self, kind: str, *, fields: str = "") -> tuple[dict[str, Json], ...]:
        if fields:  # all that a kubelet may list
            return tuple(self.reader.list_objects(kind, fields=fields))
        return self.reader.list_all(kind)

    def get_text(self, server: str, path: str) -> tuple[int, str, str]:
        """Return what exactly that server answers for a path, such as /livez, to the user of the kubeconfig."""
        if server not in self._by_server:
            self._by_server[server] = self._open(self.kubeconfig, server)
        return self._by_server[server].get_text(path)

    def put(self, action: PutObject) -> None:
        put_object(self.writer, action)

    def patch(self, action: PatchObject) -> None:
        patch_object(self.writer, action)

    def delete(self, action: DeleteObject) -> None:
        delete_object(self.writer, action)

    def connect_shared(self) -> "kube.KubeClient":
        """Connect to the server that the kubeconfig names: the shared endpoint, not the API server of this node."""
        data = self.machine.read(self.kubeconfig)
        if data is None:
            raise NotReady(f"{self.kubeconfig} does not exist", hint="run the phase that makes it first")
        access = kube.read_access(data, self.kubeconfig, self.machine.read)
        return kube.KubeClient(access, patience_s=_PATIENCE_OF_WAITS_S)

    def without_patience(self) -> "NodeCluster":
        """Return the same cluster for gates, which repeat their questions themselves and want every answer at once."""
        return NodeCluster(self.machine, self.kubeconfig, self.local_server, self._clock, is_patient=False)

    def check(self) -> None:
        """Refuse a kubeconfig that cannot be used."""
        self._open(self.kubeconfig).close()

    @property
    def _is_default(self) -> bool:
        return self.kubeconfig == ADMIN_CONF

    @cached_property
    def reader(self) -> "kube.KubeClient":
        # The user of admin.conf may have no rights yet, and reading must not give any.
        has_super_admin = self._is_default and self.machine.read(SUPER_ADMIN_CONF) is not None
        return self._open(SUPER_ADMIN_CONF if has_super_admin else self.kubeconfig)

    @cached_property
    def writer(self) -> "kube.KubeClient":
        client = self._open(self.kubeconfig)
        if self._is_default:
            self._ensure_admin(client)
        return client

    def _ensure_admin(self, client: "kube.KubeClient") -> None:
        binding = PutObject.of(cluster_admins_binding().content)
        with suppress(kube.ObjectExists):
            try:
                client.create(ref_of(binding), binding.content)
            except kube.Forbidden as error:
                if self.machine.read(SUPER_ADMIN_CONF) is None:
                    raise NotReady(
                        f"ClusterRoleBinding {CLUSTER_ADMINS} is missing, and so is {SUPER_ADMIN_CONF} to make it",
                        hint="garboard init phase kubeconfig super-admin",
                    ) from error
                with self._open(SUPER_ADMIN_CONF) as super_admin:
                    super_admin.create(ref_of(binding), binding.content)
                self._await_rights(client)

    def _await_rights(self, client: "kube.KubeClient") -> None:
        """Wait until the binding takes effect, which is a moment after the API server has stored it."""

        def probe() -> str | None:
            try:
                client.find("ClusterRoleBinding", "", CLUSTER_ADMINS)
            except kube.Forbidden as error:
                return error.message
            return None

        wait_until(probe, timeout_s=_RIGHTS_WITHIN_S, pauses=_RIGHTS_PAUSES, clock=self._clock)

    def _open(self, path: str, server: str | None = None) -> "kube.KubeClient":
        server = server or (self.local_server if self._is_default else None)
        try:
            return self._client(self._access(path, server))
        except GarboardError:
            # A kubelet writes its kubeconfig before it has the certificate that this names.
            stand_in = _STAND_INS.get(path)
            if stand_in is None or self.machine.read(stand_in) is None:
                raise
            return self._client(self._access(stand_in, server))

    def _client(self, access: "kube.Access") -> "kube.KubeClient":
        if not self._is_patient:
            return kube.KubeClient(access, patience_s=0.0)
        return kube.KubeClient(access, report=lambda line: self._report(f"[api] {line}"), clock=self._clock)

    def _access(self, path: str, server: str | None) -> "kube.Access":
        data = self.machine.read(path)
        if data is None:
            raise GarboardError(
                f"{path} does not exist",
                hint="name the kubeconfig of an administrator with --kubeconfig",
                error_class="no-kubeconfig",
            )
        return kube.read_access(data, path, self.machine.read, server=server)


def ref_of(action: PutObject | PatchObject | DeleteObject) -> "kube.ObjectRef":
    """Return which object an action is about."""
    return kube.ObjectRef(action.kind, action.namespace, action.name, action.api_version)


def put_object(client: "kube.KubeClient", action: PutObject) -> None:
    """Create the object, or update the existing one, unless that is kept."""
    content = _with_owner_uids(client, action)
    if action.resource_version:
        _replace_version(client, action, content)
        return
    try:
        client.create(ref_of(action), content)
    except kube.ObjectExists:
        if not action.keeps_existing:
            _update(client, action, content)
    except kube.ObjectInvalid:
        # A Service's own address is refused as taken before its name is found to exist.
        if action.kind != "Service" or client.find(action.kind, action.namespace, action.name) is None:
            raise
        _update(client, action, content)


def _replace_version(client: "kube.KubeClient", action: PutObject, content: Json) -> None:
    """Replace exactly the version that was planned for; one that is as it is to be already is our own work."""
    ref = ref_of(action)
    if action.keeps_other_data:
        found = client.find(action.kind, action.namespace, action.name, api_version=action.api_version)
        content = _with_data(found, content) if found else content
    try:
        client.replace(ref, _set(content, _VERSION, action.resource_version))
    except (kube.ObjectConflict, kube.ObjectMissing) as error:
        found = client.find(action.kind, action.namespace, action.name, api_version=action.api_version)
        # The API server adds defaults elsewhere; a further key of `data` is another client's.
        if found and client.is_replaced(ref, content) and _mapping(found, _DATA) == _mapping(content, _DATA):
            return
        event = f"has changed since version {action.resource_version}" if found else "has gone"
        raise StalePlan(f"{_STALE}{ref} {event}", hint="find out who changed it, and plan again") from error


def delete_object(client: "kube.KubeClient", action: DeleteObject) -> None:
    """Delete an object, unless the one that it serves exists."""
    if not action.unless or client.find(*action.unless) is None:
        client.delete(ref_of(action))


def patch_object(client: "kube.KubeClient", action: PatchObject) -> None:
    """Apply a strategic merge patch to an existing object; lists of `united` keep their elements."""
    ref = ref_of(action)
    if action.shared_keys or action.deletes_empty:
        try:
            _with_found(client, ref, lambda found: _take_back(client, action, found))
        except kube.ObjectMissing:
            if not action.deletes_empty or client.find(action.kind, action.namespace, action.name) is not None:
                raise
    elif action.united:
        _with_found(client, ref, lambda found: client.patch(ref, united_content(action, found)))
    else:
        client.patch(ref, action.content)


def _take_back(client: "kube.KubeClient", action: PatchObject, found: dict[str, Json]) -> None:
    """Apply a patch that takes keys of `data` back, and delete the object if none is left."""
    patched = _mapping(action.content, _DATA)
    after = {**_mapping(found, _DATA), **patched}
    left: dict[str, Json] = {key: value for key, value in after.items() if value is not None}
    kept = {each.key for each in action.shared_keys if each.key not in left and is_used(client, each, left)}
    version = _at(found, _VERSION)
    if action.deletes_empty and not left and not kept:
        client.delete(ref_of(action), resource_version=str(version or ""))
        return
    data: dict[str, Json] = {key: value for key, value in patched.items() if key not in kept}
    client.patch(ref_of(action), _set(_set(action.content, _DATA, data), _VERSION, version))


def is_used(client: "kube.KubeClient", shared: SharedKey, data: dict[str, Json]) -> bool:
    """Say whether a key of `data`, or the annotation of a Node, names the shared key."""
    if shared.value in data.values():
        return True
    nodes = client.list_all("Node") if shared.annotation else ()
    return any(_mapping(node, _ANNOTATIONS).get(shared.annotation) == shared.annotated for node in nodes)


def _update(client: "kube.KubeClient", action: PutObject, content: Json) -> None:
    """Replace the object as a whole, or only set the keys of `data` that the action gives and leave all else."""
    ref = ref_of(action)
    if action.keeps_other_data:
        _with_found(client, ref, lambda found: client.replace(ref, _with_data(found, content)))
    else:
        client.replace(ref, content)


def _with_found(client: "kube.KubeClient", ref: "kube.ObjectRef", change: Callable[[dict[str, Json]], object]) -> None:
    """Change the object as it is now; retry if another client changes it in between."""
    for attempt in range(1, _MAX_CONFLICTS + 1):
        found = client.get_for_update(ref)
        try:
            change(found)
            return
        except kube.ObjectConflict:
            if attempt == _MAX_CONFLICTS:
                raise


def _with_owner_uids(client: "kube.KubeClient", action: PutObject) -> Json:
    """Return the content of the action with the uid of every owner that is named without one."""
    content = action.content
    for reference in unnamed_owners(content):
        kind, name, api_version = (str(reference.get(key) or "") for key in ("kind", "name", "apiVersion"))
        owner = client.require(kind, action.namespace, name, api_version=api_version)
        filled = {**reference, "uid": _at(owner, ("metadata", "uid"))}
        content = _set(content, _OWNERS, [filled if each == reference else each for each in _list(content, _OWNERS)])
    return content


def unnamed_owners(content: Json) -> list[dict[str, Json]]:
    """Return the owner references of an object that have no uid."""
    return [each for each in _list(content, _OWNERS) if isinstance(each, dict) and not each.get("uid")]


def united_content(action: PatchObject, found: dict[str, Json]) -> Json:
    """Return the patch with the elements of its united lists that are there; it applies only to this very version."""
    content = _set(action.content, _VERSION, _at(found, _VERSION))
    for path in action.united:
        given, held = _list(content, path), _list(found, path)
        content = _set(content, path, [*given, *(each for each in held if each not in given)])
    return content


def _with_data(found: dict[str, Json], content: Json) -> Json:
    given, held = _at(content, _DATA), found.get("data")
    assert isinstance(given, dict)
    return {**found, "data": {**(held if isinstance(held, dict) else {}), **given}}


def _mapping(value: Json, path: tuple[str, ...]) -> dict[str, Json]:
    found = _at(value, path)
    return found if isinstance(found, dict) else {}


def _list(value: Json, path: tuple[str, ...]) -> list[Json]:
    found = _at(value, path)
    return found if isinstance(found, list) else []


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _set(value: Json, path: tuple[str, ...], new: Json) -> Json:
    if not path:
        return new
    held = value if isinstance(value, dict) else {}
    return {**held, path[0]: _set(held.get(path[0]), path[1:], new)}
