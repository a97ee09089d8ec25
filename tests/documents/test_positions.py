import pytest

from garboard.documents import DocumentPath, Position, locate, read_yaml

TEXT = """\
# a comment
base: &base
  name: web
  ports: [80, 443]
on:
- x
-   w: {z: "text"}
copy: *base
merged:
  <<: *base
  name: other
"""


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        pytest.param((), None, (2, 1), id="the document"),
        pytest.param(("base",), (2, 1), (2, 7), id="anchored mapping"),
        pytest.param(("base", "ports", 1), None, (4, 15), id="list element"),
        pytest.param(("true",), (5, 1), (6, 1), id="key by the name it is read as"),
        pytest.param(("true", 1, "w", "z"), (7, 9), (7, 12), id="deep inside"),
        pytest.param(("copy",), (8, 1), (8, 7), id="alias itself"),
        pytest.param(("copy", "name"), (3, 3), (3, 9), id="inside an alias: where it was written"),
        pytest.param(("merged", "ports"), (4, 3), (4, 10), id="merged: where it was written"),
        pytest.param(("merged", "name"), (11, 3), (11, 9), id="overridden after the merge"),
        pytest.param(("copy", "absent"), None, None, id="absent"),
        pytest.param(("base", "name", "x"), None, None, id="below a scalar"),
    ],
)
def test_part_is_located(path: DocumentPath, key: tuple[int, int] | None, value: tuple[int, int] | None) -> None:
    positions = locate(TEXT)
    assert positions.key(path) == (Position(*key) if key else None)
    assert positions.value(path) == (Position(*value) if value else None)


def test_lines_count_from_the_start_of_the_file() -> None:
    assert locate("a:\n  b: 1\n", line=40).value(("a", "b")) == Position(41, 6)


def test_last_of_two_equal_keys_is_located() -> None:
    assert locate("a: {x: 1}\nb: 1\na: {x: 2}\n").value(("a", "x")) == Position(3, 8)


def test_json_with_its_own_escapes_is_located() -> None:
    assert locate('{"a": "\\/\\ud83d\\ude00", "b": 1}').value(("b",)) == Position(1, 30)


def test_unreadable_text_has_no_places() -> None:
    assert locate("a: [").value(()) is None


def test_every_scalar_stands_where_it_is_located() -> None:
    document = read_yaml(TEXT, source="x")
    assert isinstance(document, dict)
    lines = TEXT.splitlines()
    for name in ("base", "copy", "merged"):
        part = document[name]
        assert isinstance(part, dict)
        position = locate(TEXT).value((name, "name"))
        assert position is not None
        assert lines[position.line - 1][position.column - 1 :] == part["name"]


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        pytest.param("a: 1\nb: {a: 1}\nc: [{a: 1}, {a: 2}]", [], id="one key in several mappings"),
        pytest.param("a: 1\nb: 2\na: 3", [("a", Position(12, 1))], id="a key again"),
        pytest.param("b: {c: 1, c: 2, c: 3}", [("c", Position(10, 11)), ("c", Position(10, 17))], id="twice more"),
        pytest.param("a: &x {c: 1}\nb: {<<: *x, c: 2}", [], id="a merged key is overridden, not repeated"),
        pytest.param("a: [", [], id="text that cannot be read"),
    ],
)
def test_repeated_keys_are_told_with_the_place_of_each_repetition(
    text: str, repeated: list[tuple[str, Position]]
) -> None:
    assert list(locate(text, line=10).repeated_keys()) == repeated


@pytest.mark.parametrize(
    ("text", "set_again"),
    [
        pytest.param("a: 1\na:\n  - 2", [("a", Position(12, 3))], id="the place of the value"),
        pytest.param("a: {b: 1, b: 2}\na: 3", [("b", Position(10, 14)), ("a", Position(11, 4))], id="inner ones first"),
        pytest.param("a: &x {c: 1}\nb: {<<: *x, c: 2}", [("c", Position(11, 16))], id="a merged key"),
        pytest.param("a: &x {c: 1}\nb: {c: 2, <<: *x}", [("c", Position(10, 11))], id="a key before a merge"),
        pytest.param("a: {<<: {c: 1}, <<: {c: 2}}", [("c", Position(10, 25))], id="two merges"),
        pytest.param("a: &x {c: 1, c: 2}\nb: [*x]", [("c", Position(10, 17))] * 2, id="an alias is read again"),
        pytest.param("a: &x {c: 1}\nb: &x {d: 1}\ne: *x", [], id="an anchor may be used again"),
    ],
)
def test_keys_are_set_again_where_go_yaml_says_so(text: str, set_again: list[tuple[str, Position]]) -> None:
    assert list(locate(text, line=10).keys_set_again()) == set_again
