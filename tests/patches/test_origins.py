"""Origins are causal: taking a patch away changes a field exactly when the field's history names that patch.

Everything that the engine can do is generated. A patch that cannot be applied without another one is left out together
with it, as lint does. Fields are looked up by code of the tests' own.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from random import Random
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, find, given, reject, settings
from hypothesis import strategies as st

from garboard.documents import Json, write_yaml
from garboard.errors import BadDocument, GarboardError, PatchFailed
from garboard.model import DEFAULT_VERSION
from garboard.patches import (
    Applied,
    FieldPath,
    History,
    Origins,
    Patch,
    PatchSubject,
    PatchType,
    SourceText,
    TextBase,
    apply_patches,
    find_target,
)
from garboard.patches.fieldpath import Nameless, Pick, Segment
from garboard.patches.json_values import ABSENT, JsonOrAbsent, copy_of, same, value_at
from garboard.schema import StructType, load_schema
from tests.support.patches.pod_patches import Drawn, dictionaries, lists_by_key, patches, pods, texts
from tests.support.patches.random_patches import RandomPatches

SCHEMA = load_schema(DEFAULT_VERSION)
POD = SCHEMA.find_kind("Pod").type
TARGET = PatchSubject.of_target(find_target("kube-scheduler", SCHEMA.version), SCHEMA)
KEYS = ("mountPath", "devicePath", "containerPort", "topologyKey", "port", "uid", "ip", "name", "type", "key")
# To find a shape takes as many tries as it takes; to make it small is of no use here.
FINDING = settings(max_examples=20_000, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
Run: TypeAlias = "Callable[[Json, Sequence[Patch]], Json]"


def make_patch(number: int, value: Json, type_: PatchType) -> Patch:
    return Patch(SourceText(f"p{number}.yaml", write_yaml(value)), type_, value)


# Fields, by names that do not depend on where list elements stand


def fields(value: Json, path: tuple[Segment, ...] = ()) -> Iterator[tuple[Segment, ...]]:
    """Yield the name of every scalar and of every empty container."""
    if isinstance(value, dict) and value:
        for key, member in value.items():
            yield from fields(member, (*path, key))
    elif isinstance(value, list) and value:
        for index, element in enumerate(value):
            yield from fields(element, (*path, element_name(value, index)))
    else:
        yield path


def element_name(elements: list[Json], index: int) -> Segment:
    own = own_name(elements[index])
    if own is None:
        return Nameless(sum(own_name(element) is None for element in elements[:index]))
    key, text = own
    return Pick(text, key, sum(is_named(element, key, text) for element in elements[:index]))


def own_name(element: Json) -> tuple[str, str] | None:
    if isinstance(element, dict):
        named = [(key, as_text(element[key])) for key in KEYS if isinstance(element.get(key), str | int)]
        return named[0] if named else None
    if isinstance(element, list):
        return None
    text = as_text(element)
    return "", text.split("=")[0] if text.startswith("-") else text


def is_named(element: Json, key: str, text: str) -> bool:
    if isinstance(element, dict):
        return any(as_text(element[each]) == text for each in KEYS if each in element and key in ("", each))
    found = as_text(element)
    return found == text or (text.startswith("-") and found.split("=")[0] == text)


def as_text(value: Json) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def look_up(value: JsonOrAbsent, path: Iterable[Segment]) -> JsonOrAbsent:
    for segment in path:
        if isinstance(value, dict):
            value = value.get(str(segment), ABSENT)  # a word in brackets finds a member of a map as well
        elif isinstance(value, list) and isinstance(segment, str):
            value = next((element for element in value if is_named(element, "", segment)), ABSENT)
        elif isinstance(value, list) and isinstance(segment, Pick):
            found = [element for element in value if is_named(element, segment.key, segment.value)]
            value = found[segment.nth] if segment.nth < len(found) else ABSENT
        elif isinstance(value, list) and isinstance(segment, Nameless):
            found = [element for element in value if own_name(element) is None]
            value = found[segment.nth] if segment.nth < len(found) else ABSENT
        else:
            return ABSENT
    return value


# Runs


def apply_what_can_be(document: Json, run: Sequence[Patch], shape: StructType) -> tuple[Json, list[Patch]]:
    """Return the patched document, and the patches that could be applied."""
    good = []
    for patch in run:
        try:
            document = apply_patches(copy_of(document), [patch], PatchSubject(shape)).document
            good.append(patch)
        except PatchFailed:
            continue
    return document, good


def assert_causal(base: Json, applied: Applied, outcome: Run) -> None:
    origins = Origins(applied, TextBase(SourceText("base.yaml", write_yaml(base))))
    run = applied.patches
    for number, patch in enumerate(run):
        without = outcome(copy_of(base), run[:number] + run[number + 1 :])
        for field in {*fields(applied.document), *fields(without)}:
            now, then = look_up(applied.document, field), look_up(without, field)
            history = origins.history(FieldPath(field))
            assert same(history.value, now)
            assert history.names(patch) == (not same(now, then)), (field, now, then, history)


def plain(shape: StructType) -> Run:
    return lambda document, run: apply_what_can_be(document, run, shape)[0]


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(pods(nulls=False, directives=False), st.lists(patches, min_size=1, max_size=4))
def test_taking_a_patch_away_changes_exactly_the_fields_that_name_it(base: Any, drafts: list[Any]) -> None:
    base = {"apiVersion": "v1", "kind": "Pod", **base}
    drawn = [make_patch(number, value, type_) for number, (value, type_) in enumerate(drafts)]
    _, run = apply_what_can_be(base, drawn, POD)
    assert_causal(base, apply_patches(copy_of(base), run, PatchSubject(POD), is_traced=True), plain(POD))


REPLACED_MAPS = [("metadata",), ("metadata", "labels"), ("spec", "containers", 0, "resources")]
NULLS_OF_ELEMENTS = [("containers", "image"), ("initContainers", "resources")]


@pytest.mark.parametrize("at", REPLACED_MAPS, ids=str)
def test_maps_that_replace_are_among_the_patches(at: tuple[str | int, ...]) -> None:
    wanted = (*at, "$patch")
    find(
        patches,
        lambda drawn: drawn[1] is PatchType.STRATEGIC and value_at(drawn[0], wanted) == "replace",
        settings=FINDING,
    )


@pytest.mark.parametrize(("name", "member"), NULLS_OF_ELEMENTS)
def test_nulls_in_list_elements_are_among_the_patches(name: str, member: str) -> None:
    wanted = ("spec", name, 0, member)
    find(
        patches, lambda drawn: drawn[1] is PatchType.STRATEGIC and value_at(drawn[0], wanted) is None, settings=FINDING
    )


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(pods(nulls=False, directives=False), st.lists(patches, min_size=1, max_size=3))
def test_the_same_holds_for_a_target_whose_outcome_is_decoded(base: Any, drafts: list[Any]) -> None:
    base = {"apiVersion": "v1", "kind": "Pod", **base}

    def outcome(document: Json, run: Sequence[Patch]) -> Json:
        patched, _ = apply_what_can_be(document, run, POD)
        try:
            return TARGET.decoded(copy_of(patched), base)
        except BadDocument:
            return patched

    drawn = [make_patch(number, value, type_) for number, (value, type_) in enumerate(drafts)]
    _, run = apply_what_can_be(base, drawn, POD)
    try:
        applied = apply_patches(copy_of(base), run, TARGET, is_traced=True)
    except GarboardError:
        reject()
    assert_causal(base, applied, outcome)


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "Service", "KubeletConfiguration", "Node"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_the_same_holds_for_large_documents_of_any_kind(kind: str, seed: int) -> None:
    shape = SCHEMA.find_kind(kind).type
    random = Random(seed)
    made = RandomPatches(random, shape)
    base, drafts = made.document(), []
    for number in range(3):
        type_ = random.choice((PatchType.STRATEGIC, PatchType.MERGE, PatchType.JSON))
        make = {PatchType.STRATEGIC: made.strategic, PatchType.MERGE: made.merge, PatchType.JSON: made.operations}
        drafts.append(make_patch(number, make[type_](base), type_))
    _, run = apply_what_can_be(base, drafts, shape)
    assert_causal(base, apply_patches(copy_of(base), run, PatchSubject(shape), is_traced=True), plain(shape))


def places(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of everything in a document, maps and lists included."""
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in members:
        yield from places(member, (*path, step))


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(pods(nulls=False, directives=False), st.lists(patches, min_size=1, max_size=3))
def test_whatever_is_there_has_an_origin(base: Any, drafts: list[Any]) -> None:
    base = {"apiVersion": "v1", "kind": "Pod", **base}
    drawn = [make_patch(number, value, type_) for number, (value, type_) in enumerate(drafts)]
    _, run = apply_what_can_be(base, drawn, POD)
    applied = apply_patches(copy_of(base), run, PatchSubject(POD), is_traced=True)
    origins = Origins(applied, TextBase(SourceText("base.yaml", write_yaml(base))))
    for path in places(applied.document):
        assert origins.history_at(path).origin is not None, path


# The trace by itself: where no patch enables another, the only one who wrote a value is the one who decides it


def simple_pods(*, nulls: bool, directives: bool) -> Drawn:
    members = {"image": texts, "command": st.lists(texts, max_size=2)}
    members["env"] = lists_by_key("name", st.sampled_from("mn"), {"value": texts}, directives=False)
    containers = lists_by_key("name", st.sampled_from("xyz"), members, directives=False)
    if directives:
        containers |= st.sampled_from("xyz").map(lambda name: [{"name": name, "$patch": "delete"}])
    scalar = st.none() | texts if nulls else texts
    metadata = {"labels": dictionaries("abc", nulls=nulls), "namespace": scalar}
    spec = {"nodeName": scalar, "containers": containers}
    optional = {
        name: st.fixed_dictionaries({}, optional=part) for name, part in (("metadata", metadata), ("spec", spec))
    }
    return st.fixed_dictionaries({}, optional=optional)


simple_patches = st.one_of(
    st.tuples(simple_pods(nulls=True, directives=True), st.just(PatchType.STRATEGIC)),
    st.tuples(simple_pods(nulls=True, directives=False), st.just(PatchType.MERGE)),
)


def only_writer(history: History) -> Patch | None:
    """Return the patch that alone wrote the present value, with what it did in several steps as one."""
    steps = [list(group) for _, group in groupby(history.events, key=lambda event: id(event.origin.patch))]
    last = [group[-1] for group in steps]
    since: list[Any] = []
    while last and same(last[-1].after, history.value):
        since.append(last.pop().origin.patch)
    return since[0] if len(since) == 1 else None


@settings(max_examples=300)
@given(simple_pods(nulls=False, directives=False), st.lists(simple_patches, min_size=1, max_size=3))
def test_only_writer_of_a_value_is_its_only_cause(base: Any, drafts: list[Any]) -> None:
    base = {"apiVersion": "v1", "kind": "Pod", **base}
    run = [make_patch(number, value, type_) for number, (value, type_) in enumerate(drafts)]
    origins = Origins(
        apply_patches(copy_of(base), run, PatchSubject(POD), is_traced=True),
        TextBase(SourceText("base.yaml", write_yaml(base))),
    )
    for path in origins.leaves():
        history = origins.history_at(path)
        if isinstance(history.value, str) and "command" not in path:
            writer = only_writer(history)
            assert [cause.patch for cause in history.causes] == ([writer] if writer else []), history
