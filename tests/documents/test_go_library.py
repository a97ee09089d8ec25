"""The readers and writers beside the Go libraries they follow, on texts nobody wrote by hand."""

import json
import re
from collections.abc import Callable
from random import Random

import pytest

from garboard.documents import Json, read_json, read_stream, read_yaml, split_documents, write_json, write_yaml
from garboard.errors import BadDocument
from tests.support.documents.go_library import Answer, ask
from tests.support.documents.random_texts import damaged_text, document, json_text, scalar_text, stream_text, token_text
from tests.support.equality import same_value
from tools.harness.answers import Answers

pytestmark = pytest.mark.real
COUNT = 3000
# Go's parser takes an empty `{}` or `[]` that stands before other text for a whole document; we do not copy that.
FORGOTTEN_KEY = re.compile(r"(\{\s*\}|\[\s*\])[^,\]}\s]")


def _agrees(text: str, answer: Answer) -> bool:
    try:
        value = read_yaml(text, source="x")
    except BadDocument:
        return answer.error is not None
    if answer.error is not None:
        return "crash" in answer.error  # there is no right answer then
    return same_value(value, json.loads(answer.texts[0]))


@pytest.mark.parametrize("make", [scalar_text, token_text, damaged_text])
def test_yaml_is_read_alike(make: Callable[[Random], str], answers: Answers) -> None:
    random = Random(make.__name__)
    texts = [make(random) for _ in range(COUNT)]
    told = ask(answers, "read", [text.encode() for text in texts])
    different = [text for text, answer in zip(texts, told, strict=True) if not _agrees(text, answer)]
    assert [text for text in different if not FORGOTTEN_KEY.search(text)] == []


def test_yaml_is_written_alike(answers: Answers) -> None:
    random = Random("written")
    documents = [document(random) for _ in range(COUNT)]
    told = ask(answers, "write", [_plain_json(each).encode() for each in documents])
    different = [each for each, answer in zip(documents, told, strict=True) if write_yaml(each) != answer.texts[0]]
    assert different == []


def _plain_json(value: Json) -> str:
    # Escaped, because the library reads its JSON as YAML, where these characters are breaks or refused.
    text = re.sub(r"\n *", "", write_json(value))
    for character in "\x7f\x85":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def test_json_is_read_and_written_alike(answers: Answers) -> None:
    random = Random("json")
    texts = [json_text(random) for _ in range(COUNT)]
    for text, answer in zip(texts, ask(answers, "json", [text.encode() for text in texts]), strict=True):
        try:
            ours = write_json(read_json(text, source="x"))
        except BadDocument:
            assert answer.error is not None, text
        else:
            assert (ours, None) == (answer.texts[0] + "\n", answer.error), text


def test_patch_files_are_cut_alike(answers: Answers) -> None:
    random = Random("split")
    texts = [stream_text(random) for _ in range(COUNT)]
    for text, answer in zip(texts, ask(answers, "split", [text.encode() for text in texts]), strict=True):
        try:
            pieces = tuple(each.text for each in split_documents(text, source="x"))
        except BadDocument:
            assert answer.error is not None, text
        else:
            assert (pieces, None) == (answer.texts, answer.error), text


def test_streams_are_read_alike(answers: Answers) -> None:
    random = Random("stream")
    texts = [stream_text(random) for _ in range(COUNT)]
    for text, answer in zip(texts, ask(answers, "stream", [text.encode() for text in texts]), strict=True):
        values: list[str] = []
        has_failed = False
        try:
            values.extend(write_json(each.value).removesuffix("\n") for each in read_stream(text, source="x"))
        except BadDocument:
            has_failed = True
        if not FORGOTTEN_KEY.search(text):
            assert (tuple(values), has_failed) == (answer.texts, answer.error is not None), text
