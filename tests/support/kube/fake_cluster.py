"""An API server in memory behind the Protocol of `garboard.kube.aio`, for tests of controllers.

It keeps what controllers depend on: versions and conflicts, generations, the status subresource, finalizers and
deletionTimestamp, namespaces, watches with bookmarks and a history that can expire. Failures are injected. It runs no
controllers: garbage is collected when a test says so. tests/kube/aio/test_contract.py holds it to a real API server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar

from garboard.errors import GarboardError
from garboard.kube import ObjectRef, PatchFormat
from garboard.kube.aio import Bookmark, Changed, ChangeType, NamespacedName, ObjectList, ObjectSelection, WatchEvent
from garboard.kube.errors import broken, refusal
from garboard.kube.resources import KnownResources, Resource
from tests.support.kube.fake_patches import applied, json_patched, merged
from tests.support.kube.fake_selection import selects

HIVE = "hive.openshift.io/v1"
WITH_STATUS = ("Namespace", "Node", "Pod", "Job", "Deployment", "DaemonSet", "Service", "CustomResourceDefinition")
HIVE_RESOURCES = (
    Resource("ClusterDeployment", HIVE, "clusterdeployments"),
    Resource("ClusterPool", HIVE, "clusterpools"),
    Resource("ClusterClaim", HIVE, "clusterclaims"),
    Resource("ClusterDeploymentCustomization", HIVE, "clusterdeploymentcustomizations"),
    Resource("ClusterProvision", HIVE, "clusterprovisions"),
    Resource("ClusterDeprovision", HIVE, "clusterdeprovisions"),
    Resource("ClusterImageSet", HIVE, "clusterimagesets", is_namespaced=False),
)

ValueT = TypeVar("ValueT")
Content: TypeAlias = dict[str, Any]


@dataclass
class Fault:
    """A failure of the next requests that fit; with `is_done` they are carried out, and the answer is lost."""

    error: Callable[[str], GarboardError]
    verb: str = ""
    kind: str = ""
    name: str = ""
    times: int = 1
    is_done: bool = False

    def fits(self, verb: str, ref: ObjectRef) -> bool:
        return (self.verb in ("", verb)) and (self.kind in ("", ref.kind)) and (self.name in ("", ref.name))


def busy(what: str) -> GarboardError:
    return refusal(what, 503, {"kind": "Status", "message": "the server is too busy"})


def conflict(what: str) -> GarboardError:
    return _refused(what, 409, "Conflict", "the object has been modified; apply your changes to the latest version")


def lost(what: str) -> GarboardError:
    return broken(what, ConnectionResetError())


@dataclass(frozen=True)
class _Change:
    """What became of one object: `before` and `after` are None where there is none."""

    version: int
    resource: Resource
    key: NamespacedName
    before: Content | None
    after: Content | None

    def seen_by(self, selection: ObjectSelection) -> Changed | None:
        was = self.before is not None and selects(selection, self.before)
        now = self.after is not None and selects(selection, self.after)
        if now:
            assert self.after is not None
            return Changed(ChangeType.MODIFIED if was else ChangeType.ADDED, copied(self.after))
        if not was:
            return None
        left = self.before if self.after is None else self.after
        assert left is not None
        gone = copied(left)
        gone["metadata"]["resourceVersion"] = str(self.version)
        return Changed(ChangeType.DELETED, gone)


class _Watch:
    def __init__(self, resource: Resource, selection: ObjectSelection) -> None:
        self.resource, self.selection = resource, selection
        self.events: asyncio.Queue[WatchEvent | GarboardError | None] = asyncio.Queue()

    def send(self, change: _Change) -> None:
        if change.resource == self.resource and (event := change.seen_by(self.selection)):
            self.events.put_nowait(event)

    async def events_sent(self) -> AsyncIterator[WatchEvent]:
        while (event := await self.events.get()) is not None:
            if isinstance(event, GarboardError):
                raise event
            yield event


@dataclass
class FakeCluster:
    """Satisfies `KubeApi`. `before_each` is awaited before every request, so that tests choose who comes when."""

    resources: tuple[Resource, ...] = HIVE_RESOURCES
    without_status: frozenset[str] = frozenset({"ClusterImageSet"})
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    before_each: Callable[[str, ObjectRef], Awaitable[None]] | None = None
    requests: list[tuple[str, str]] = field(default_factory=list)  # each verb with the object, but for watches
    writes: list[tuple[str, str]] = field(default_factory=list)  # those that changed something
    faults: list[Fault] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._objects: dict[Resource, dict[NamespacedName, Content]] = {}
        self._applied: dict[tuple[Resource, NamespacedName, str], Content] = {}
        self._history: list[_Change] = []
        self._version, self._forgotten, self._uids = 100, 0, 0
        self._watches: list[_Watch] = []
        self._known = KnownResources()
        for name in ("default", "kube-system"):
            self.put("Namespace", {"metadata": {"name": name}}, api_version="v1")

    # What tests use.

    def put(self, kind: str, content: Content, *, api_version: str = HIVE) -> Content:
        """Create an object with its status, or replace it, as if somebody else did."""
        content = {"apiVersion": api_version, "kind": kind, **copied(content)}
        resource = self._resource(ObjectRef(kind, "", "", api_version))
        key = self._key_of(resource, content)
        held = self._of(resource).get(key)
        if held is None:
            return self._store(resource, key, None, self._born(content))
        kept = {name: held["metadata"][name] for name in ("uid", "creationTimestamp", "generation")}
        content["metadata"] = {**content["metadata"], **kept}
        return self._store(resource, key, held, content)

    def remove(self, kind: str, namespace: str, name: str, *, api_version: str = HIVE) -> None:
        """Delete an object if it is there, as if somebody else did."""
        resource, key = self._resource(ObjectRef(kind, namespace, name, api_version)), NamespacedName(namespace, name)
        if key in self._of(resource):
            self._begin_deletion(resource, key)

    def get(self, kind: str, namespace: str, name: str, *, api_version: str = HIVE) -> Content | None:
        """Look at an object; this is no request."""
        held = self._of(self._resource(ObjectRef(kind, namespace, name, api_version))).get(
            NamespacedName(namespace, name)
        )
        return copied(held) if held is not None else None

    def all(self, kind: str, *, api_version: str = HIVE) -> list[Content]:
        """Look at all objects of a kind; this is no request."""
        held = self._of(self._resource(ObjectRef(kind, "", "", api_version)))
        return [copied(held[key]) for key in sorted(held)]

    def fail(
        self,
        error: Callable[[str], GarboardError],
        verb: str = "",
        kind: str = "",
        name: str = "",
        *,
        times: int = 1,
        is_done: bool = False,
    ) -> None:
        """Let the next requests fail that fit; a verb is get, list, watch, create, replace, patch or delete."""
        self.faults.append(Fault(error, verb, kind, name, times, is_done))

    def end_watches(self, error: GarboardError | None = None, kind: str = "") -> None:
        """End the open watches, cleanly or with an error."""
        for each in [each for each in self._watches if kind in ("", each.selection.kind)]:
            each.events.put_nowait(error)

    def send_bookmarks(self) -> None:
        for each in self._watches:
            each.events.put_nowait(Bookmark(str(self._version)))

    def forget_history(self) -> None:
        """Have every version that is older than now expire, as compaction does; open watches go on."""
        self._forgotten = self._version
        self._history.clear()

    @property
    def open_watches(self) -> list[str]:
        return sorted(each.selection.kind for each in self._watches)

    def collect_garbage(self) -> int:
        """Delete what has no owner left and what is in namespaces that are being deleted, until nothing is."""
        collected = 0
        while found := dict.fromkeys((*self._orphans(), *self._in_ending_namespaces())):
            for resource, key in found:
                self._begin_deletion(resource, key)
            collected += len(found)
        return collected

    # KubeApi.

    async def find(self, ref: ObjectRef) -> Any:
        async with self._request("get", ref):
            held = self._of(self._resource(ref)).get(NamespacedName(ref.namespace, ref.name))
            return copied(held) if held is not None else None

    async def require(self, ref: ObjectRef) -> Any:
        found = await self.find(ref)
        if found is None:
            raise _missing(f"cannot get {ref}", ref)
        return found

    async def create(self, ref: ObjectRef, content: Any, *, subresource: str = "") -> Any:
        async with self._request("create", ref):
            assert not subresource, "the fake has no subresource that objects are created in"
            what, resource = f"cannot create {ref}", self._resource(ref)
            content = copied(content)
            metadata = content.setdefault("metadata", {})
            if not metadata.get("name") and metadata.get("generateName"):
                metadata["name"] = f"{metadata['generateName']}{self._uids:05d}"
            key = NamespacedName(ref.namespace if resource.is_namespaced else "", metadata.get("name") or ref.name)
            metadata["name"] = key.name
            if resource.is_namespaced:
                metadata["namespace"] = key.namespace
                self._check_namespace(what, key.namespace)
            if key in self._of(resource):
                raise _refused(what, 409, "AlreadyExists", f'{resource.plural} "{key.name}" already exists')
            if metadata.get("resourceVersion"):
                raise _refused(what, 500, "", "resourceVersion should not be set on objects to be created")
            if self._has_status(resource):
                content.pop("status", None)
            self._check(what, resource, None, content)
            content |= {"apiVersion": resource.api_version, "kind": resource.kind}
            self.writes.append(("create", str(ref)))
            return copied(self._store(resource, key, None, self._born(content)))

    async def replace(self, ref: ObjectRef, content: Any, *, subresource: str = "") -> Any:
        async with self._request("replace", ref):
            what, resource, key, held = self._held("update", ref)
            version = (content.get("metadata") or {}).get("resourceVersion")
            if not version and self._is_custom(resource):
                raise _refused(what, 422, "Invalid", "metadata.resourceVersion: must be specified for an update")
            return self._update(what, resource, key, held, copied(content), subresource)

    async def patch(
        self,
        ref: ObjectRef,
        content: Any,
        patch_format: PatchFormat = PatchFormat.MERGE,
        *,
        subresource: str = "",
        forces: bool = False,
        manager: str = "garboard",
    ) -> Any:
        async with self._request("patch", ref):
            resource, key = self._resource(ref), NamespacedName(ref.namespace, ref.name)
            if patch_format is PatchFormat.APPLY:
                return self._apply(ref, resource, key, copied(content), manager, subresource)
            what, resource, key, held = self._held("patch", ref)
            if patch_format is PatchFormat.STRATEGIC and self._is_custom(resource):
                raise _refused(what, 415, "UnsupportedMediaType", "strategic merge patches are not for custom objects")
            if patch_format is PatchFormat.JSON:
                try:
                    desired = json_patched(held, content)
                except (LookupError, ValueError) as error:
                    raise _refused(what, 422, "Invalid", f"the server rejected our request: {error}") from None
            else:
                desired = merged(held, content)
            return self._update(what, resource, key, held, desired, subresource)

    async def delete(self, ref: ObjectRef, *, resource_version: str = "", uid: str = "", propagation: str = "") -> None:
        async with self._request("delete", ref):
            resource, key = self._resource(ref), NamespacedName(ref.namespace, ref.name)
            held = self._of(resource).get(key)
            if held is None:
                return
            metadata = held["metadata"]
            if resource_version not in ("", metadata["resourceVersion"]) or uid not in ("", metadata["uid"]):
                raise conflict(f"cannot delete {ref}")
            self.writes.append(("delete", str(ref)))
            self._begin_deletion(resource, key)

    async def list_objects(self, selection: ObjectSelection) -> ObjectList:
        async with self._request("list", ObjectRef(selection.kind, selection.namespace, "", selection.api_version)):
            return self._listed(selection)

    @asynccontextmanager
    async def watch(self, selection: ObjectSelection, version: str) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        ref = ObjectRef(selection.kind, selection.namespace, "", selection.api_version)
        await self._begin("watch", ref)
        after = int(version or self._version)
        if after < self._forgotten:
            raise _refused(f"cannot watch {selection}", 410, "Expired", f"too old resource version: {version}")
        watch = _Watch(self._resource(ref), selection)
        for change in self._history:
            if change.version > after:
                watch.send(change)
        self._watches.append(watch)
        try:
            yield watch.events_sent()
        finally:
            self._watches.remove(watch)

    # What is below is the server's own.

    @asynccontextmanager
    async def _request(self, verb: str, ref: ObjectRef) -> AsyncIterator[None]:
        fault = await self._begin(verb, ref)
        self.requests.append((verb, str(ref)))
        yield
        if fault is not None:
            raise fault.error(f"cannot {verb} {ref}")

    async def _begin(self, verb: str, ref: ObjectRef) -> Fault | None:
        """Let others come first, and fail if that is wanted; return the fault of an answer that is to be lost."""
        if self.before_each is not None:
            await self.before_each(verb, ref)
        else:
            await asyncio.sleep(0)
        fault = next((each for each in self.faults if each.fits(verb, ref)), None)
        if fault is None:
            return None
        fault.times -= 1
        if fault.times <= 0:
            self.faults.remove(fault)
        if not fault.is_done:
            self.requests.append((verb, str(ref)))
            raise fault.error(f"cannot {verb} {ref}")
        return fault

    def _resource(self, ref: ObjectRef) -> Resource:
        for each in self.resources:
            if each.kind == ref.kind and ref.api_version in ("", each.api_version):
                return each
        return self._known.require(ref.kind, ref.api_version)

    def _of(self, resource: Resource) -> dict[NamespacedName, Content]:
        return self._objects.setdefault(resource, {})

    def _is_custom(self, resource: Resource) -> bool:
        return self._known.find(resource.kind, resource.api_version) is None

    def _has_status(self, resource: Resource) -> bool:
        return resource.kind not in self.without_status and (self._is_custom(resource) or resource.kind in WITH_STATUS)

    def _key_of(self, resource: Resource, content: Content) -> NamespacedName:
        metadata = content["metadata"]
        if resource.is_namespaced:
            metadata.setdefault("namespace", "default")
        return NamespacedName(metadata.get("namespace", ""), metadata["name"])

    def _held(self, verb: str, ref: ObjectRef) -> tuple[str, Resource, NamespacedName, Content]:
        resource, key, what = self._resource(ref), NamespacedName(ref.namespace, ref.name), f"cannot {verb} {ref}"
        held = self._of(resource).get(key)
        if held is None:
            raise _missing(what, ref)
        return what, resource, key, held

    def _born(self, content: Content) -> Content:
        self._uids += 1
        metadata = {key: value for key, value in content["metadata"].items() if key != "deletionTimestamp"}
        metadata |= {"uid": f"uid-{self._uids}", "creationTimestamp": self._timestamp(), "generation": 1}
        if content["kind"] == "Namespace":
            content["status"] = {"phase": "Active"}
        return {**content, "metadata": metadata}

    def _timestamp(self) -> str:
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def _check_namespace(self, what: str, namespace: str) -> None:
        found = self.get("Namespace", "", namespace, api_version="v1")
        if found is None:
            raise _refused(what, 404, "NotFound", f'namespaces "{namespace}" not found')
        if "deletionTimestamp" in found["metadata"]:
            message = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise _refused(what, 403, "Forbidden", message)

    def _check(self, what: str, resource: Resource, held: Content | None, desired: Content) -> None:
        """Refuse what a server refuses; tests that need more put their own rules here."""

    def _update(
        self, what: str, resource: Resource, key: NamespacedName, held: Content, desired: Content, subresource: str
    ) -> Content:
        metadata = desired.setdefault("metadata", {})
        was = held["metadata"]
        if metadata.get("resourceVersion") not in (None, "", was["resourceVersion"]) or metadata.get("uid") not in (
            None,
            "",
            was["uid"],
        ):
            raise conflict(what)
        desired = self._kept(resource, held, desired, subresource)
        metadata = desired["metadata"]
        new_finalizers = set(metadata.get("finalizers", ())) - set(was.get("finalizers", ()))
        if "deletionTimestamp" in was and new_finalizers:
            message = "metadata.finalizers: no new finalizers can be added if the object is being deleted"
            raise _refused(what, 422, "Invalid", message)
        self._check(what, resource, held, desired)
        if without_version(desired) == without_version(held):
            return copied(held)
        self.writes.append((subresource or "update", f"{resource.kind} {key}"))
        if "deletionTimestamp" in was and not metadata.get("finalizers"):
            self._remove(resource, key)
            return copied(desired)
        return copied(self._store(resource, key, held, desired))

    def _kept(self, resource: Resource, held: Content, desired: Content, subresource: str) -> Content:
        """Return the object with what this way of writing it may change."""
        if subresource:
            desired = {**held, subresource: desired.get(subresource)}
            return {name: value for name, value in desired.items() if value is not None}
        was = held["metadata"]
        kept = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
        metadata = {name: value for name, value in desired["metadata"].items() if name not in kept and value}
        metadata |= {name: was[name] for name in kept if name in was}
        metadata |= {"name": was["name"], **({"namespace": was["namespace"]} if "namespace" in was else {})}
        desired = {**desired, "metadata": metadata, "apiVersion": held["apiVersion"], "kind": held["kind"]}
        if self._has_status(resource):
            desired.pop("status", None)
            desired |= {"status": held["status"]} if "status" in held else {}
        if _spec_of(desired) != _spec_of(held):
            metadata["generation"] = was["generation"] + 1
        return desired

    def _apply(
        self, ref: ObjectRef, resource: Resource, key: NamespacedName, content: Content, manager: str, subresource: str
    ) -> Content:
        held, what = self._of(resource).get(key), f"cannot patch {ref}"
        place = (resource, key, f"{manager}/{subresource}")
        before = self._applied.get(place, {})
        self._applied[place] = content
        if held is None:
            if resource.is_namespaced:
                self._check_namespace(what, key.namespace)
            if self._has_status(resource):
                content.pop("status", None)
            metadata = {**content.get("metadata", {}), "name": key.name}
            if resource.is_namespaced:
                metadata["namespace"] = key.namespace
            self.writes.append(("create", str(ref)))
            made = {**content, "metadata": metadata, "apiVersion": resource.api_version, "kind": resource.kind}
            return copied(self._store(resource, key, None, self._born(made)))
        return self._update(what, resource, key, held, applied(held, before, content), subresource)

    def _store(self, resource: Resource, key: NamespacedName, before: Content | None, after: Content) -> Content:
        self._version += 1
        after = {**after, "metadata": {**after["metadata"], "resourceVersion": str(self._version)}}
        self._of(resource)[key] = after
        self._publish(_Change(self._version, resource, key, before, after))
        return after

    def _remove(self, resource: Resource, key: NamespacedName) -> None:
        self._version += 1
        before = self._of(resource).pop(key)
        for place in [place for place in self._applied if place[:2] == (resource, key)]:
            del self._applied[place]
        self._publish(_Change(self._version, resource, key, before, None))

    def _begin_deletion(self, resource: Resource, key: NamespacedName) -> None:
        held = self._of(resource)[key]
        metadata = held["metadata"]
        if not metadata.get("finalizers") and resource.kind != "Namespace":
            self._remove(resource, key)
            return
        if "deletionTimestamp" in metadata:
            return
        ending = {**metadata, "deletionTimestamp": self._timestamp(), "deletionGracePeriodSeconds": 0}
        ending["generation"] = metadata["generation"] + 1
        status = {"status": {"phase": "Terminating"}} if resource.kind == "Namespace" else {}
        self._store(resource, key, held, {**held, "metadata": ending, **status})

    def _publish(self, change: _Change) -> None:
        self._history.append(change)
        for each in self._watches:
            each.send(change)

    def _listed(self, selection: ObjectSelection) -> ObjectList:
        resource = self._resource(ObjectRef(selection.kind, "", "", selection.api_version))
        held = self._of(resource)
        items = tuple(copied(held[key]) for key in sorted(held) if selects(selection, held[key]))
        return ObjectList(str(self._version), items)

    def _everything(self) -> Iterator[tuple[Resource, NamespacedName, Content]]:
        for resource, held in list(self._objects.items()):
            for key, content in list(held.items()):
                yield resource, key, content

    def _orphans(self) -> Iterable[tuple[Resource, NamespacedName]]:
        uids = {content["metadata"]["uid"] for _, _, content in self._everything()}
        for resource, key, content in self._everything():
            owners = content["metadata"].get("ownerReferences", ())
            is_orphan = bool(owners) and not any(each["uid"] in uids for each in owners)
            if is_orphan and "deletionTimestamp" not in content["metadata"]:
                yield resource, key

    def _in_ending_namespaces(self) -> Iterable[tuple[Resource, NamespacedName]]:
        namespaces = self._of(self._resource(ObjectRef("Namespace", "", "", "v1")))
        ending = {key.name for key, each in namespaces.items() if "deletionTimestamp" in each["metadata"]}
        inside = [each for each in self._everything() if each[1].namespace in ending]
        for resource, key, content in inside:
            if "deletionTimestamp" not in content["metadata"]:
                yield resource, key
        for name in ending - {key.namespace for _, key, _ in inside}:
            self._remove(self._resource(ObjectRef("Namespace", "", "", "v1")), NamespacedName("", name))


def copied(value: ValueT) -> ValueT:
    return _copied(value)  # type: ignore[no-any-return]


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def without_version(content: Content) -> Content:
    dropped = ("resourceVersion", "managedFields")
    metadata = {key: value for key, value in content["metadata"].items() if key not in dropped}
    return {**content, "metadata": metadata}


def _spec_of(content: Content) -> Content:
    return {key: value for key, value in content.items() if key not in ("metadata", "status")}


def _refused(what: str, code: int, reason: str, message: str) -> GarboardError:
    return refusal(what, code, {"kind": "Status", "reason": reason, "message": message})


def _missing(what: str, ref: ObjectRef) -> GarboardError:
    return _refused(what, 404, "NotFound", f'"{ref.name}" not found')
