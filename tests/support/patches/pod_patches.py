"""Small Pods and every kind of patch for them, as hypothesis strategies: few names and values, so that patches meet."""

from typing import Any, TypeAlias

from hypothesis import strategies as st

from garboard.patches import PatchType

Drawn: TypeAlias = "st.SearchStrategy[Any]"

NAMES = "xyz"
FLAGS = ("--a", "--b", "--a=1", "--a=2", "--b=1", "p")
texts = st.sampled_from(["1", "2", "3"])
numbers = st.sampled_from([1, 2, 1.0, 0.5])
words = st.sampled_from(["1", "2", *FLAGS])


def maybe(strategy: Drawn, *, nulls: bool) -> Drawn:
    return st.none() | strategy if nulls else strategy


def dictionaries(keys: str, *, nulls: bool, directives: bool = False) -> Drawn:
    plain = st.dictionaries(st.sampled_from(keys), maybe(texts, nulls=nulls), max_size=2)
    return plain | map_directives(plain) if directives else plain


def map_directives(plain: Drawn) -> Drawn:
    """Return a map with `$patch` or `$retainKeys` beside what it says."""
    retained = st.lists(st.sampled_from("abc"), max_size=1)
    return st.one_of(
        replaced(plain),
        st.just({"$patch": "delete"}),
        st.builds(
            lambda members, more: {"$retainKeys": [*members, *more], **members},
            plain,
            retained,
        ),
    )


def replaced(plain: Drawn) -> Drawn:
    """Return a map that replaces the one it meets; where it meets none, it adds nothing."""
    return st.builds(lambda members: {"$patch": "replace", **members}, plain)


def lists_by_key(name: str, keys: Drawn, members: dict[str, Drawn], *, directives: bool) -> Drawn:
    element: Drawn = st.fixed_dictionaries({name: keys}, optional=members)
    if directives:
        element |= keys.map(lambda key: {name: key, "$patch": "delete"})
    plain = st.lists(element, max_size=2, unique_by=lambda each: repr(each[name]))
    if not directives:
        return plain
    return plain | plain.map(lambda elements: [*elements, {"$patch": "replace"}])


@st.composite
def with_list_directives(draw: Any, members: Any, fields: dict[str, str]) -> Any:
    """Return a map's patch with `$setElementOrder/…` or `$deleteFromPrimitiveList/…` for some of its lists."""
    drawn = draw(members)
    if "$patch" in drawn or "$retainKeys" in drawn:
        return drawn
    for name, key in fields.items():
        present = drawn.get(name) if isinstance(drawn.get(name), list) else []
        if not key and draw(st.booleans()):
            drawn = {**drawn, f"$deleteFromPrimitiveList/{name}": draw(st.lists(texts, max_size=2))}
        elif draw(st.integers(0, 3)) == 0:
            named = [each for each in present if not isinstance(each, dict) or "$patch" not in each]
            order = [{key: each[key]} for each in named] if key else named
            more = draw(st.lists(st.sampled_from(NAMES), max_size=2))
            order += [{key: each} for each in more] if key == "name" else []
            drawn = {**drawn, f"$setElementOrder/{name}": order}
    return drawn


def pods(*, nulls: bool, directives: bool) -> Drawn:
    def some(strategy: Drawn) -> Drawn:
        return maybe(strategy, nulls=nulls)

    def directed(strategy: Drawn, fields: dict[str, str]) -> Drawn:
        return with_list_directives(strategy, fields) if directives else strategy

    environment = lists_by_key("name", st.sampled_from("mn"), {"value": some(texts)}, directives=directives)
    ports = lists_by_key("containerPort", st.sampled_from([1, 2]), {"name": some(texts)}, directives=directives)
    mounts = lists_by_key("mountPath", st.sampled_from(["/1", "/2"]), {"name": some(texts)}, directives=directives)
    limits = st.fixed_dictionaries(
        {}, optional={"limits": some(dictionaries("ab", nulls=nulls, directives=directives))}
    )
    container = {
        "image": some(texts),
        "command": some(st.lists(words, max_size=3)),
        "env": some(environment),
        "ports": ports,
        "volumeMounts": mounts,
        "resources": some(limits | replaced(limits) if directives else limits),
        "securityContext": dictionaries("ab", nulls=nulls, directives=directives),
    }
    containers = lists_by_key("name", st.sampled_from(NAMES), container, directives=directives)
    metadata = st.fixed_dictionaries(
        {},
        optional={
            "labels": some(dictionaries("abc", nulls=nulls, directives=directives)),
            "annotations": some(dictionaries("abc", nulls=nulls, directives=directives)),
            "namespace": some(texts),
            "finalizers": some(st.lists(texts, max_size=2)),
        },
    )
    spec = st.fixed_dictionaries(
        {},
        optional={
            "nodeName": some(texts),
            "priority": some(numbers),
            "containers": containers,
            "initContainers": some(containers),
            "tolerations": some(st.lists(st.fixed_dictionaries({}, optional={"key": texts, "value": texts}))),
        },
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "metadata": directed(metadata | replaced(metadata) if directives else metadata, {"finalizers": ""}),
            "spec": some(directed(spec, {"containers": "name", "initContainers": "name"})),
        },
    )


_SEGMENTS = (
    "/metadata",
    "/metadata/labels",
    "/metadata/labels/a",
    "/metadata/labels/b",
    "/metadata/annotations",
    "/metadata/annotations/a",
    "/metadata/finalizers",
    "/metadata/finalizers/0",
    "/metadata/finalizers/-",
    "/spec/nodeName",
    "/spec/priority",
    "/spec/containers",
    "/spec/containers/-",
    "/spec/containers/0",
    "/spec/containers/1",
    "/spec/containers/-1",
    "/spec/containers/0/name",
    "/spec/containers/0/image",
    "/spec/containers/1/image",
    "/spec/containers/0/command",
    "/spec/containers/0/command/0",
    "/spec/containers/0/command/1",
    "/spec/containers/0/command/-",
    "/spec/containers/0/env",
    "/spec/containers/0/env/0",
    "/spec/containers/0/env/0/value",
    "/spec/initContainers",
    "/spec/initContainers/0",
    "/spec/tolerations/0",
    "/spec/tolerations/0/key",
)
pointers = st.sampled_from(_SEGMENTS)
values = st.one_of(
    texts,
    st.none(),
    st.dictionaries(st.sampled_from("abc"), texts, max_size=2),
    st.lists(words, max_size=2),
    lists_by_key("name", st.sampled_from(NAMES), {"image": texts}, directives=False),
    st.fixed_dictionaries({"name": st.sampled_from(NAMES)}, optional={"image": texts, "command": st.lists(words)}),
)
operations = st.one_of(
    st.builds(
        lambda op, path, value: {"op": op, "path": path, "value": value},
        st.sampled_from(["add", "add", "replace", "test"]),
        pointers,
        values,
    ),
    st.builds(lambda path: {"op": "remove", "path": path}, pointers),
    st.builds(
        lambda op, path, source: {"op": op, "path": path, "from": source},
        st.sampled_from(["move", "copy"]),
        pointers,
        pointers,
    ),
)
flags = st.dictionaries(
    st.sampled_from(["a", "b", "c"]), st.none() | texts | st.booleans() | st.lists(texts, max_size=2), max_size=2
)
patches = st.one_of(
    st.tuples(st.lists(operations, min_size=1, max_size=3), st.just(PatchType.JSON)),
    st.tuples(pods(nulls=True, directives=True), st.just(PatchType.STRATEGIC)),
    st.tuples(pods(nulls=True, directives=False), st.just(PatchType.MERGE)),
    st.tuples(flags, st.just(PatchType.ARGS)),
)
