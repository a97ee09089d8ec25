"""What Kubernetes' own validation says: the program of tools/validation, built only for a new question."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from garboard.model import KubernetesVersion
from tools.harness.answers import Answers, sources_digest
from tools.harness.oracles import judge

_PROGRAMS = Path(__file__).parents[3] / "tools/validation"


def refused_by_kubernetes(
    answers: Answers, version: KubernetesVersion, questions: Sequence[dict[str, Any]]
) -> list[list[str]]:
    """Return, for each Pod, kubelet configuration or list of flags, what a release refuses in it."""

    def ask() -> bytes:
        lines = "".join(json.dumps(question) + "\n" for question in questions)
        done = subprocess.run([judge(version).built()], input=lines, check=True, capture_output=True, text=True)
        return done.stdout.encode()

    question = ("validation", sources_digest(_PROGRAMS, "*.go"), str(version), json.dumps(questions))
    return [json.loads(line) for line in answers.get(question, ask).decode().splitlines()]
