"""Flag patches: what they do to a command, and that compiling them changes nothing about it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import Json, equal
from garboard.errors import PatchFailed
from garboard.patches.args import compile_args
from garboard.patches.json6902 import apply_args, apply_json
from garboard.patches.json_values import copy_of

FLAGS = st.sampled_from(["profiling", "v", "audit-log-path", "feature-gates"])
VALUES = st.booleans() | st.integers(0, 9) | st.sampled_from(["a", "b=c", ""])
ARGS = st.dictionaries(FLAGS, VALUES | st.none() | st.lists(VALUES, max_size=3), max_size=4)
COMMANDS = st.lists(st.builds("--{}={}".format, FLAGS, VALUES), max_size=5)


def pod(*words: str) -> Json:
    return {"metadata": {"name": "etcd"}, "spec": {"containers": [{"name": "etcd", "command": ["etcd", *words]}]}}


def command(document: Json) -> Json:
    return document["spec"]["containers"][0]["command"]  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("before", "args", "after"),
    [
        (["--a=1"], {"a": 2}, ["--a=2"]),
        (["--a=1"], {"b": True}, ["--a=1", "--b=true"]),
        (["--a=1", "--b=2"], {"a": None}, ["--b=2"]),
        (["--a=1"], {"a": [1, 2]}, ["--a=1", "--a=2"]),
        (["--a=1", "--a=2", "--b=3"], {"a": 9}, ["--a=9", "--b=3"]),
        (["--a=1", "--a=2"], {"a": []}, []),
        (["-a=1"], {"--a": 2}, ["--a=2"]),
        (["--a=1"], {}, ["--a=1"]),
    ],
)
def test_flags_are_set_repeated_and_removed(before: list[str], args: Json, after: list[str]) -> None:
    assert command(apply_args(pod(*before), args)) == ["etcd", *after]


@settings(max_examples=80, deadline=None)
@given(COMMANDS, ARGS)
def test_compiled_patch_does_what_the_args_do(words: list[str], args: dict[str, Json]) -> None:
    document = pod(*words)
    operations = [each.operation for each in compile_args(args, document)]
    direct = apply_args(copy_of(document), args)
    assert equal(apply_json(copy_of(document), operations), direct)
    assert compile_args(args, direct) == [], "nothing is left to do"


def test_compiled_patch_fails_on_another_command() -> None:
    operations: Json = [each.operation for each in compile_args({"a": 2}, pod("--a=1"))]
    with pytest.raises(PatchFailed) as failure:
        apply_json(pod("--b=1"), operations)
    assert failure.value.error_class == "test-failed"


@pytest.mark.parametrize(
    ("document", "args", "error_class"),
    [
        (pod(), [], "bad-document"),
        (pod(), {"a": {"b": 1}}, "wrong-type"),
        (pod(), {"a": [None]}, "wrong-type"),
        ({}, {"a": 1}, "path-missing"),
        ({"spec": {"containers": [None]}}, {"a": 1}, "path-missing"),
        ({"spec": {"containers": [{"command": [1]}]}}, {"a": 1}, "path-missing"),
    ],
)
def test_wrong_args_or_document_is_refused(document: Json, args: Json, error_class: str) -> None:
    with pytest.raises(PatchFailed) as failure:
        apply_args(document, args)
    assert failure.value.error_class == error_class
