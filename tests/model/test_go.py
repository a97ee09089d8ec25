import contextlib
import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import BadUsage
from garboard.model.go import join_path, parent_of, split_list


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        (("/etc/kubernetes/pki", "ca.crt"), "/etc/kubernetes/pki/ca.crt"),
        (("//srv/../srv/pki//", "etcd/ca.crt"), "/srv/pki/etcd/ca.crt"),
        (("", "a"), "a"),
        (("a", "", "../b"), "b"),
    ],
)
def test_joined_paths_are_clean(parts: tuple[str, ...], joined: str) -> None:
    assert join_path(*parts) == joined


@pytest.mark.parametrize(("path", "parent"), [("/a/b", "/a"), ("/a", "/"), ("a", "."), ("", "."), ("/a/../b/c", "/b")])
def test_the_folder_of_a_file(path: str, parent: str) -> None:
    assert parent_of(path) == parent


@pytest.mark.parametrize(("text", "items"), [
    pytest.param("", (), id="nothing"),
    pytest.param("a", ("a",), id="one"),
    pytest.param(" a , b ", (" a ", " b "), id="blanks belong to the items"),
    pytest.param("a,,b,", ("a", "", "b", ""), id="empty items are items"),
    pytest.param('a,"b,c"', ("a", "b,c"), id="a comma in quotes"),
    pytest.param('"say ""hi""",x', ('say "hi"', "x"), id="quotes in quotes"),
    pytest.param('""', ("",), id="quotes around nothing"),
])  # fmt: skip
def test_lists_are_split_at_commas(text: str, items: tuple[str, ...]) -> None:
    assert split_list(text) == items


@pytest.mark.parametrize("text", ['a"b', '"a', '"a"b', 'a,"', "a\nb"])
def test_quotes_stand_around_whole_items(text: str) -> None:
    with pytest.raises(BadUsage, match="not a list"):
        split_list(text)


@given(st.text('a," ', max_size=12))
def test_what_is_split_is_what_a_reader_of_csv_finds(text: str) -> None:
    with contextlib.suppress(BadUsage):
        assert split_list(text) == tuple(next(csv.reader([text]), ()))
