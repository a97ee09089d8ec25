"""A store and its indexes say the same, whatever is put, dropped and swapped."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from garboard.kube.aio import NamespacedName, ObjectStore, key_of

OBJECTS = st.builds(
    lambda namespace, name, owners: {"metadata": {"namespace": namespace, "name": name}, "owners": owners},
    st.sampled_from(["", "n", "m"]),
    st.sampled_from("abc"),
    st.lists(st.sampled_from("xyz"), max_size=3),
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), OBJECTS),
        st.tuples(st.just("drop"), OBJECTS),
        st.tuples(st.just("swap"), st.lists(OBJECTS, max_size=4)),
    ),
    max_size=30,
)


def owners_of(content: Any) -> list[str]:
    return list(content["owners"])


@given(OPERATIONS)
def test_index_finds_what_a_search_would(operations: list[Any]) -> None:
    store = ObjectStore({"owner": owners_of})
    model: dict[NamespacedName, Any] = {}
    for what, content in operations:
        before = dict(model)
        match what:
            case "put":
                model[key_of(content)] = content
                deltas = [store.put(content)]
            case "drop":
                model.pop(key_of(content), None)
                deltas = [store.drop(key_of(content))]
            case _:
                model = {key_of(each): each for each in content}
                deltas = list(store.swap(content))
        told = {each.key: (each.before, each.after) for each in deltas if each is not None}
        expected = {key: (before.get(key), model.get(key)) for key in before.keys() | model.keys()}
        assert told == {key: pair for key, pair in expected.items() if pair[0] != pair[1]}
    assert list(store.all()) == [model[key] for key in sorted(model)]
    assert len(store) == len(model)
    for owner in "xyz":
        assert list(store.indexed("owner", owner)) == [model[k] for k in sorted(model) if owner in model[k]["owners"]]


def test_object_that_is_not_there_is_not_found() -> None:
    store = ObjectStore()
    store.put({"metadata": {"name": "a"}})
    assert store.find("", "a")
    assert store.find("n", "a") is None
    assert store.drop(NamespacedName("n", "a")) is None
