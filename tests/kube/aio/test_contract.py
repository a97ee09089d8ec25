"""What controllers depend on, held to the fake API server and to real ones alike."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from garboard.kube import (
    ObjectConflict,
    ObjectExists,
    ObjectInvalid,
    ObjectMissing,
    ObjectRef,
    PatchFormat,
    RequestRefused,
    VersionExpired,
)
from garboard.kube.aio import Bookmark, Changed, ObjectList, ObjectSelection, WatchEvent
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tests.support.kube.real_server import real_api_server
from tests.support.kube.sides import GADGETS, Connected, Server, install_gadgets, run


@pytest.fixture(
    scope="module",
    params=["fake", *(pytest.param(str(each), marks=pytest.mark.real) for each in SUPPORTED_VERSIONS)],
)
def server(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    if request.param == "fake":
        yield Server(None)
        return
    with real_api_server(binaries, request.param, tmp_path_factory.mktemp("server")) as access:
        install_gadgets(access)
        yield Server(access)


def meta(content: Any) -> Any:
    return content["metadata"]


async def listed(on: Connected, **narrowed: str) -> ObjectList:
    return await on.api.list_objects(gadgets(on, **narrowed))


def gadgets(on: Connected, **narrowed: str) -> ObjectSelection:
    return ObjectSelection(kind="Gadget", api_version=GADGETS, namespace=on.namespace, **narrowed)


async def next_change(events: AsyncIterator[WatchEvent]) -> Changed:
    while True:
        event = await anext(events)
        if not isinstance(event, Bookmark):
            return event


def shown(change: Changed) -> tuple[str, str]:
    return change.type.value, str(meta(change.content)["name"])


def test_created_object_has_an_identity_and_no_status(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        made: Any = await on.api.create(on.ref("a"), {**on.gadget("a"), "status": {"ready": True}})
        assert meta(made)["generation"] == 1
        assert {"uid", "resourceVersion", "creationTimestamp"} <= meta(made).keys()
        assert "status" not in made
        assert await on.api.require(on.ref("a")) == made
        with pytest.raises(ObjectExists):
            await on.create("a")
        assert await on.api.find(on.ref("b")) is None
        with pytest.raises(ObjectMissing):
            await on.api.require(on.ref("b"))

    run(server, scenario)


def test_name_is_generated(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        content = on.gadget("")
        content["metadata"] = {"generateName": "pool-", "namespace": on.namespace}
        made = [await on.api.create(on.ref(""), content) for _ in range(2)]
        names = {meta(each)["name"] for each in made}
        assert len(names) == 2
        assert all(name.startswith("pool-") and len(name) == 10 for name in names)

    run(server, scenario)


def test_object_goes_into_a_namespace_that_exists(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        ref = ObjectRef("Gadget", f"{on.namespace}-no", "a", GADGETS)
        with pytest.raises(ObjectMissing, match="not found"):
            await on.api.create(ref, {**on.gadget("a"), "metadata": {"name": "a", "namespace": ref.namespace}})

    run(server, scenario)


def test_replacing_needs_the_version_that_is_there(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        made = await on.create("a")
        changed: Any = await on.api.replace(on.ref("a"), {**made, "spec": {"size": 2}})
        assert meta(changed)["generation"] == 2
        with pytest.raises(ObjectConflict):
            await on.api.replace(on.ref("a"), {**made, "spec": {"size": 3}})
        with pytest.raises(ObjectInvalid):
            await on.api.replace(on.ref("a"), on.gadget("a"))
        with pytest.raises(ObjectConflict):
            await on.api.patch(
                on.ref("a"), {"metadata": {"resourceVersion": meta(made)["resourceVersion"]}, "spec": {}}
            )
        with pytest.raises(ObjectMissing):
            await on.api.replace(on.ref("b"), {**on.gadget("b"), "metadata": {**meta(made), "name": "b"}})
        assert (await on.api.require(on.ref("a")))["spec"] == {"size": 2}

    run(server, scenario)


def test_another_object_of_the_same_name_is_a_conflict(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        made = await on.create("a")
        await on.api.delete(on.ref("a"))
        await on.create("a")
        with pytest.raises(ObjectConflict):
            await on.api.replace(on.ref("a"), made)
        with pytest.raises(ObjectConflict):
            await on.api.delete(on.ref("a"), uid=meta(made)["uid"])
        with pytest.raises(ObjectConflict):
            await on.api.delete(on.ref("a"), resource_version=meta(made)["resourceVersion"])
        assert await on.api.find(on.ref("a"))

    run(server, scenario)


def test_spec_and_status_are_written_apart(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        made = await on.create("a")
        status: Any = await on.api.replace(
            on.ref("a"),
            {**made, "spec": {"size": 9}, "status": {"ready": True}, "metadata": {**meta(made), "labels": {"x": "y"}}},
            subresource="status",
        )
        assert (status["spec"], status["status"]) == ({"size": 1}, {"ready": True})
        assert "labels" not in meta(status)
        assert meta(status)["generation"] == 1
        spec: Any = await on.api.patch(on.ref("a"), {"spec": {"size": 2}, "status": {"ready": False}})
        assert (spec["spec"], spec["status"]) == ({"size": 2}, {"ready": True})
        assert meta(spec)["generation"] == 2
        labelled: Any = await on.api.patch(on.ref("a"), {"metadata": {"labels": {"x": "y"}}})
        assert meta(labelled)["generation"] == 2
        patched: Any = await on.api.patch(on.ref("a"), {"status": {"ready": None, "n": 1}}, subresource="status")
        assert patched["status"] == {"n": 1}
        with pytest.raises(ObjectConflict):
            await on.api.replace(on.ref("a"), made, subresource="status")

    run(server, scenario)


def test_write_that_changes_nothing_is_no_change(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        made = await on.create("a")
        assert meta(await on.api.replace(on.ref("a"), made)) == meta(made)
        patched = await on.api.patch(on.ref("a"), {"spec": {"size": 1}})
        assert meta(patched)["resourceVersion"] == meta(made)["resourceVersion"]

    run(server, scenario)


def test_patches_are_merged_or_carried_out(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        await on.create("a", spec={"size": 1, "list": [1, 2], "deep": {"x": 1, "y": 2}})
        patched = await on.api.patch(on.ref("a"), {"spec": {"deep": {"x": None}, "list": [3]}})
        assert patched["spec"] == {"size": 1, "list": [3], "deep": {"y": 2}}
        operations: Any = [
            {"op": "test", "path": "/spec/size", "value": 1},
            {"op": "replace", "path": "/spec/size", "value": 2},
            {"op": "add", "path": "/spec/list/-", "value": 4},
            {"op": "remove", "path": "/spec/deep/y"},
        ]
        patched = await on.api.patch(on.ref("a"), operations, PatchFormat.JSON)
        assert patched["spec"] == {"size": 2, "list": [3, 4], "deep": {}}
        with pytest.raises(ObjectInvalid):
            await on.api.patch(on.ref("a"), operations, PatchFormat.JSON)
        with pytest.raises(RequestRefused) as refused:
            await on.api.patch(on.ref("a"), {"spec": {"size": 3}}, PatchFormat.STRATEGIC)
        assert refused.value.http_status == 415
        with pytest.raises(ObjectMissing):
            await on.api.patch(on.ref("b"), {"spec": {}})

    run(server, scenario)


def test_apply_creates_changes_and_takes_back(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        made: Any = await on.api.patch(on.ref("a"), on.gadget("a", spec={"x": 1, "y": 1}), PatchFormat.APPLY)
        assert made["spec"] == {"x": 1, "y": 1}
        again: Any = await on.api.patch(on.ref("a"), on.gadget("a", spec={"x": 1, "y": 1}), PatchFormat.APPLY)
        assert meta(again)["resourceVersion"] == meta(made)["resourceVersion"]
        applied = await on.api.patch(on.ref("a"), on.gadget("a", spec={"x": 2}), PatchFormat.APPLY)
        assert applied["spec"] == {"x": 2}

    run(server, scenario)


def test_finalizer_keeps_what_is_deleted_until_it_is_removed(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        await on.create("a", finalizers=["contract.example/one"])
        version = (await listed(on)).version
        await on.api.delete(on.ref("a"))
        ending: Any = await on.api.require(on.ref("a"))
        assert meta(ending)["deletionTimestamp"]
        assert meta(ending)["generation"] == 2
        await on.api.delete(on.ref("a"))
        assert meta(await on.api.require(on.ref("a"))) == meta(ending), "deleting it again changes nothing"
        with pytest.raises(ObjectInvalid):
            await on.api.patch(
                on.ref("a"), {"metadata": {"finalizers": ["contract.example/one", "contract.example/two"]}}
            )
        await on.api.patch(on.ref("a"), {"spec": {"size": 5}})
        await on.api.patch(on.ref("a"), {"metadata": {"finalizers": None}})
        assert await on.api.find(on.ref("a")) is None
        await on.api.delete(on.ref("a"))
        async with on.api.watch(gadgets(on), version) as events:
            seen = [await next_change(events) for _ in range(3)]
        assert list(map(shown, seen)) == [("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
        versions = [int(meta(each.content)["resourceVersion"]) for each in seen]
        assert versions == sorted(set(versions))

    run(server, scenario)


def test_watch_tells_every_change_after_its_version_in_order(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        await on.create("before")
        version = (await listed(on)).version
        await on.create("a")
        async with on.api.watch(gadgets(on), version) as events:
            await on.api.patch(on.ref("a"), {"spec": {"size": 2}})
            await on.api.delete(on.ref("before"))
            await on.create("b")
            seen = [shown(await next_change(events)) for _ in range(4)]
        assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "before"), ("ADDED", "b")]

    run(server, scenario)


def test_watch_goes_on_from_the_version_of_an_event(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        version = (await listed(on)).version
        for name in ("a", "b", "c"):
            await on.create(name)
        async with on.api.watch(gadgets(on), version) as events:
            first = await next_change(events)
        async with on.api.watch(gadgets(on), str(meta(first.content)["resourceVersion"])) as events:
            assert [shown(await next_change(events)) for _ in range(2)] == [("ADDED", "b"), ("ADDED", "c")]

    run(server, scenario)


def test_selected_objects_enter_and_leave_a_watch(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        await on.create("a", labels={"team": "one"})
        await on.create("b")
        found = await listed(on, labels="team=one")
        assert [meta(each)["name"] for each in found.items] == ["a"]
        by_name = await listed(on, fields="metadata.name=b")
        assert [meta(each)["name"] for each in by_name.items] == ["b"]
        async with on.api.watch(gadgets(on, labels="team=one"), found.version) as events:
            await on.api.patch(on.ref("b"), {"metadata": {"labels": {"team": "one"}}})
            await on.api.patch(on.ref("b"), {"spec": {"size": 2}})
            await on.api.patch(on.ref("a"), {"metadata": {"labels": {"team": "two"}}})
            seen = [shown(await next_change(events)) for _ in range(3)]
        assert seen == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]

    run(server, scenario)


def test_version_that_is_too_old_has_expired(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        await on.create("a")
        on.forget()
        with pytest.raises(VersionExpired):
            async with on.api.watch(gadgets(on), "1") as events:
                await next_change(events)

    run(server, scenario)


def test_list_is_whole_and_says_its_version(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        assert (await listed(on)).items == ()
        for number in range(5):  # the real client has pages of two
            await on.create(f"a{number}")
        found = await listed(on)
        assert [meta(each)["name"] for each in found.items] == [f"a{number}" for number in range(5)]
        assert all(each["kind"] == "Gadget" for each in found.items)
        newest = max(int(meta(each)["resourceVersion"]) for each in found.items)
        assert int(found.version) >= newest

    run(server, scenario)


def test_listed_object_of_a_built_in_kind_says_its_kind(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        await on.api.create(ObjectRef("ConfigMap", on.namespace, "a", "v1"), {"metadata": {"name": "a"}, "data": {}})
        found = await on.api.list_objects(ObjectSelection(kind="ConfigMap", api_version="v1", namespace=on.namespace))
        assert {(each["kind"], each["apiVersion"]) for each in found.items} == {("ConfigMap", "v1")}

    run(server, scenario)


def test_watch_that_is_cancelled_leaves_the_others_alone(server: Server) -> None:
    async def scenario(on: Connected) -> None:
        version = (await listed(on)).version

        async def follow() -> str:
            async with on.api.watch(gadgets(on), version) as events:
                return shown(await next_change(events))[1]

        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(follow()) for _ in range(20)]
            for each in watches[::2]:
                each.cancel()
            await on.create("a")
        assert [each.cancelled() for each in watches] == [True, False] * 10
        assert {each.result() for each in watches[1::2]} == {"a"}

    run(server, scenario)
