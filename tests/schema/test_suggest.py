import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.schema import suggest

WORDS = st.text("abcXY-", max_size=8)


@pytest.mark.parametrize(
    ("word", "candidates", "meant"),
    [
        pytest.param("contianers", ["containers", "initContainers"], "containers", id="neighbours swapped"),
        pytest.param("imagePullPolcy", ["image", "imagePullPolicy"], "imagePullPolicy", id="letter dropped"),
        pytest.param("hostnetwork", ["hostNetwork", "hostPID"], "hostNetwork", id="case"),
        pytest.param("enableAdmissionPlugins", ["enable-admission-plugins"], "enable-admission-plugins", id="dashes"),
        pytest.param("aab", ["aac", "aad"], "aac", id="a tie goes to byte order"),
        pytest.param("flarb", ["containers", "volumes"], None, id="nothing near"),
        pytest.param("name", ["name"], None, id="never the word itself"),
        pytest.param("x", [], None, id="no candidates"),
    ],
)
def test_nearest_name_is_suggested(word: str, candidates: list[str], meant: str | None) -> None:
    assert suggest(word, candidates) == meant


@given(WORDS, st.lists(WORDS, max_size=6))
def test_suggestion_is_a_candidate_and_does_not_depend_on_order(word: str, candidates: list[str]) -> None:
    found = suggest(word, candidates)
    assert found is None or found in candidates
    assert suggest(word, reversed(candidates)) == found


@given(st.text("abcdefgh", min_size=6, max_size=12), st.data())
def test_one_letter_wrong_is_always_forgiven(word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(word) - 1))
    assert suggest(word[:at] + "z" + word[at + 1 :], [word]) == word
