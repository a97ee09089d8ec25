"""The Go libraries themselves, asked through the program in `tests/documents/oracle`."""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass

from tools.harness.answers import Answers
from tools.harness.oracles import documents_oracle


@dataclass(frozen=True, slots=True)
class Answer:
    """What the libraries made of a text, and their complaint if they did not take all of it."""

    texts: tuple[str, ...]
    error: str | None


def ask(answers: Answers, operation: str, texts: Iterable[bytes]) -> list[Answer]:
    """Return one answer for each text; the operation is `read`, `write`, `json`, `split` or `stream`."""
    questions = [{"Op": operation, "Data": base64.b64encode(text).decode()} for text in texts]
    done = answers.run(documents_oracle().built(), stdin="\n".join(map(json.dumps, questions)))
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(questions)
    return [Answer(tuple(each["texts"] or ()), each.get("error")) for each in found]
