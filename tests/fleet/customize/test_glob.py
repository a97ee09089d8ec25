"""Patterns as Go's filepath.Glob reads them, also beside Go itself."""

import json
import random

import pytest

from garboard.fleet.customize.glob import BadPattern, check_pattern, matches
from garboard.fleet.customize.tree import ManifestTree
from garboard.model.go import clean_path
from tools.harness.answers import Answers
from tools.harness.oracles import glob_oracle

PATHS = (
    ".openshift_install_state.json", "metadata.json", "a", "ab", "a-b", "a]b", "a\\b", "[x]", "é.yaml", "€", "x.yaml",
    "manifests/99_a.yaml", "manifests/99_b.yaml", "manifests/.hidden.yaml", "manifests/a*b.yaml", "manifests/é",
    "openshift/99_worker-0.yaml", "openshift/99_worker-1.json", "openshift/sub/deep.yaml", "openshift/^a", "z/-",
)  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        pytest.param("*.yaml", "a.yaml", True, id="star"),
        pytest.param("*.yaml", ".a.yaml", True, id="a star matches a leading dot"),
        pytest.param("*", "a/b", False, id="a star stays in its folder"),
        pytest.param("a?c", "abc", True, id="question mark"),
        pytest.param("a?c", "a/c", False, id="a question mark is no slash"),
        pytest.param("?", "é", True, id="a question mark is a character and no byte"),
        pytest.param("[a-c]x", "bx", True, id="range"),
        pytest.param("[^a]x", "bx", True, id="negated"),
        pytest.param("[^a]x", "ax", False, id="negated, inside"),
        pytest.param("[!a]x", "!x", True, id="an exclamation mark is a character of the class"),
        pytest.param(r"\*x", "*x", True, id="escaped star"),
        pytest.param(r"[\]]", "]", True, id="escaped bracket in a class"),
        pytest.param("**", "ab", True, id="two stars are one"),
        pytest.param("{a,b}", "{a,b}", True, id="braces stand for themselves"),
        pytest.param("A", "a", False, id="upper case is not lower case"),
        pytest.param("a*b*c", "aXbYbZc", True, id="a star gives back what it took"),
        pytest.param("ab", "abc", False, id="the whole name"),
    ],
)
def test_pattern_matches_a_name_as_in_go(pattern: str, name: str, is_match: bool) -> None:
    assert matches(pattern, name) is is_match


@pytest.mark.parametrize(
    "pattern", ["[", "[]a]", "[a", "[a-", "[-x]", "[x-]", "a\\", "[^", "x/[a", "[a/b]", "*/[z-a", "a*["]
)
def test_malformed_pattern_is_refused_whether_a_name_is_there_or_not(pattern: str) -> None:
    with pytest.raises(BadPattern):
        check_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        pytest.param("manifests/*.yaml", ("manifests/.hidden.yaml", "manifests/99_a.yaml", "manifests/99_b.yaml",
                                          "manifests/a*b.yaml"), id="hidden ones too"),
        pytest.param("*/99_*", ("manifests/99_a.yaml", "manifests/99_b.yaml", "openshift/99_worker-0.yaml",
                                "openshift/99_worker-1.json"), id="folders too"),
        pytest.param("openshift/*", ("openshift/99_worker-0.yaml", "openshift/99_worker-1.json", "openshift/^a",
                                     "openshift/sub"), id="a folder is a name"),
        pytest.param("metadata.json", ("metadata.json",), id="a plain name is looked for"),
        pytest.param("nothing.yaml", (), id="a plain name that is not there"),
    ],
)  # fmt: skip
def test_names_are_found_folder_by_folder(pattern: str, found: tuple[str, ...]) -> None:
    assert ManifestTree.of(dict.fromkeys(PATHS, b"")).glob(pattern) == found


@pytest.mark.real
def test_generated_patterns_find_what_go_finds(answers: Answers, seed: int) -> None:
    """Thousands of patterns of the pieces that mean something, most of them near a name that is there."""
    patterns = [*generated(random.Random(20_776), 3_000), *generated(random.Random(seed), 2_000)]
    said = answers.run(glob_oracle().built(), stdin=json.dumps({"paths": PATHS, "patterns": patterns}))
    told = [(each["bad"], each["matches"]) for each in json.loads(said.stdout)]
    compared = zip(patterns, map(_ours, patterns), told, strict=True)
    assert [(pattern, ours, go) for pattern, ours, go in compared if ours != go] == []
    assert [pattern for pattern, (bad, _) in zip(patterns, told, strict=True) if bad and not _is_refused(pattern)] == []
    assert sum(bad for bad, _ in told) > 300
    assert sum(bool(found) for _, found in told) > 500


def _is_refused(pattern: str) -> bool:
    try:
        check_pattern(clean_path(pattern))
    except BadPattern:
        return True
    return False


def _ours(pattern: str) -> tuple[bool, list[str]]:
    cleaned = clean_path(pattern)
    tree = ManifestTree.of(dict.fromkeys(PATHS, b""))
    try:
        return False, list(tree.glob("" if cleaned == "." else cleaned))
    except BadPattern:
        return True, []


_PIECES = ("*", "?", "[", "]", "^", "-", "\\", "/", "a", "b", "9", "x", ".", "é", "€", "[a-z]", "[^a]", "[^0-9]",
           "manifests", "openshift", "99_", ".yaml", "\\*", "[\\]]", "**",
           "{a,b}", "[!a]", "_worker-", "/./", "//")  # fmt: skip


def generated(source: random.Random, count: int) -> list[str]:
    """Return patterns that stay below the folder."""
    return [each for each in (_pattern(source) for _ in range(count)) if ".." not in each and "\0" not in each]


def _pattern(source: random.Random) -> str:
    if source.random() < 0.4:
        return "".join(source.choices(_PIECES, k=source.randint(1, 6))).lstrip("/") or "*"
    name = list(source.choice(PATHS))
    for _ in range(source.randint(1, 3)):
        at = source.randrange(len(name))
        name[at : at + source.randint(0, 2)] = [source.choice(_PIECES)]
        name = name or ["*"]
    return "".join(name).lstrip("/") or "*"
