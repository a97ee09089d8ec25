"""Command lines: which words are flags, and their values."""

import pytest

from garboard.model import DEFAULT_VERSION
from garboard.rules import check_flags
from garboard.rules.command_line import StrayWord, flag_name, flags_among, read_words
from garboard.schema import load_schema


@pytest.mark.parametrize(("word", "name"), [("--a=1", "a"), ("--a", "a"), ("-v=2", "v"), ("etcd", ""), ("a=b", "")])
def test_flag_is_known_by_its_dashes(word: str, name: str) -> None:
    assert flag_name(word) == name


@pytest.mark.parametrize(
    ("words", "found"),
    [
        pytest.param(["--profiling=false"], [("profiling", "false", 0)], id="with its value"),
        pytest.param(["--secure-port", "1"], [("secure-port", "1", 0)], id="the value in the next word"),
        pytest.param(["--profiling", "true"], [("profiling", None, 0)], id="a boolean takes no next word"),
        pytest.param(["--profiling", "--", "--v=1"], [("profiling", None, 0)], id="the end of flags"),
        pytest.param(["word", 5, "--v=1"], [("v", "1", 2)], id="words between"),
    ],
)
def test_flags_are_found_among_words(words: list[str | int], found: list[tuple[str, str | None, int]]) -> None:
    options = load_schema(DEFAULT_VERSION).component("kube-apiserver")
    assert options is not None
    flags = flags_among([*words], options, "kube-apiserver", (), 0)
    assert [(word.name, word.value, word.at[0]) for word in flags] == found


@pytest.mark.parametrize(
    ("program", "words", "stray"),
    [
        pytest.param("kube-apiserver", ["hello"], [0], id="a word"),
        pytest.param("kube-apiserver", ["profiling=false"], [0], id="no dash"),
        pytest.param("kube-apiserver", ["-profiling=false"], [0], id="one dash"),
        pytest.param("kube-apiserver", ["\u2014profiling=false"], [0], id="a long dash"),
        pytest.param("kube-apiserver", [" --profiling=false"], [0], id="a blank"),
        pytest.param("kube-apiserver", ["--profiling", "false"], [1], id="a boolean in two words"),
        pytest.param("kube-apiserver", ["--audit-log-maxage"], [0], id="no value"),
        pytest.param("kube-apiserver", ["-v"], [0], id="no value of a short flag"),
        pytest.param("kube-apiserver", ["--", "a", ""], [1], id="after the end of flags"),
        pytest.param("etcd", ["hello"], [0], id="a word of etcd"),
        pytest.param("etcd", [""], [0], id="an empty word of etcd"),
        pytest.param("etcd", ["-data-dir=/a"], [], id="etcd takes one dash"),
        pytest.param("kube-apiserver", ["-v=2", "-v2", "-v", "2", "-h", ""], [], id="short flags"),
        pytest.param("kube-apiserver", ["--audit-log-maxage", "--profiling"], [], id="a value that looks like a flag"),
        pytest.param("kube-apiserver", ["$(MORE)"], [], id="a word from the environment"),
    ],
)
def test_word_that_is_no_flag_is_found(program: str, words: list[str], stray: list[int]) -> None:
    options = load_schema(DEFAULT_VERSION).component(program)
    assert options is not None
    read = read_words([(word, (number,)) for number, word in enumerate(words)], options, program)
    assert [each.at[0] for each in read if isinstance(each, StrayWord)] == stray


def test_stray_word_is_not_repeated() -> None:
    [found] = check_flags("kube-scheduler", ["s3cret"], DEFAULT_VERSION)
    assert "s3cret" not in f"{found.message} {found.hint}"
