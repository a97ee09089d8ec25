"""Asking the Go libraries themselves, and reading their errors by the classes that the vectors use."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from garboard.documents import Json
from garboard.model import KubernetesVersion
from tools.harness.answers import Answers
from tools.harness.oracles import patches_oracle

_CLASSES = (
    ("crash: ", "crash"),
    ("does not contain declared merge key", "no-merge-key"),
    ("cannot find merge key", "no-merge-key"),
    ("cannot merge lists without merge key", "no-merge-key"),
    ("unable to find api field", "unknown-field"),
    ("data type is not struct", "not-a-struct"),
    ("expected slice or array type", "not-a-list"),
    ("unexpected slice of slice", "element-types"),
    ("lists of lists are not supported", "element-types"),
    ("list element types are not identical", "element-types"),
    ("no elements in any of the given slices", "element-types"),
    ("invalid element type in merging list", "element-types"),
    ("is not a map", "element-types"),
    ("unknown patch type", "bad-directive"),
    ("merging lists cannot yet be specified", "bad-directive"),
    ("invalid value for special key", "bad-directive"),
    ("invalid patch format of", "bad-directive-format"),
    ("are not deep equal", "bad-directive-format"),
    ("The order in patch list", "order-mismatch"),
    ("precondition failed", "precondition"),
    ("conflicts with changes", "conflict"),
    ("invalid JSON document", "bad-document"),
    ("Invalid JSON", "bad-document"),
    ("failed to decode", "bad-operation"),
    ("json: cannot unmarshal", "bad-document"),
    ("must be object or array", "bad-root"),
    ("test failed", "test-failed"),
    ("invalid index referenced", "bad-index"),
    ("not a proper array index", "bad-index"),
    ("strconv.Atoi", "bad-index"),
    ("Unexpected kind", "bad-operation"),
    ("doc is missing key", "bad-index"),  # replace adds an absent key of an object, so this was a list
    ("missing value", "path-missing"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the library said: an outcome, or the class of its error."""

    outcome: Json = None
    error_class: str = ""
    message: str = ""


def class_of(message: str) -> str:
    """Return the class of an error message of the libraries; what they say of a wrong type depends on the place."""
    for text, name in _CLASSES:
        if text in message:
            return name
    return "wrong-type" if "expected a" in message and "but received a" in message else f"unclassified: {message}"


def ask(answers: Answers, version: KubernetesVersion, questions: Sequence[dict[str, Any]]) -> list[Answer | None]:
    """Return an answer for each question; None where the library gives now this, now that."""
    text = "\n".join(json.dumps(question) for question in questions)
    done = answers.run(patches_oracle(version).built(), stdin=text)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(questions), done.stderr
    return [_one(json.loads(line)) for line in lines]


def _one(replies: list[dict[str, Any]]) -> Answer | None:
    answers = [_answer(reply) for reply in replies]
    first = answers[0]
    is_steady = all((each.outcome, each.error_class) == (first.outcome, first.error_class) for each in answers)
    return first if is_steady else None


def _answer(reply: dict[str, Any]) -> Answer:
    if "error" in reply:
        return Answer(error_class=class_of(reply["error"]), message=reply["error"])
    return Answer(outcome=reply.get("outcome"))
