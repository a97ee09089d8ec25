"""The Go programs of tools/schema, which are built only for a question that they have not answered yet."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from garboard.documents import Json
from garboard.model import KubernetesVersion
from tools.harness.answers import Answers, sources_digest
from tools.harness.oracles import schema_program
from tools.schema.generate import HERE
from tools.schema.gomodule import GoModule
from tools.schema.reference import Reference


@dataclass(frozen=True)
class KeptModule(GoModule):
    """The programs around one release of Kubernetes; its folder is not needed."""

    version: KubernetesVersion
    answers: Answers

    def run(self, program: str) -> str:
        def ask() -> bytes:
            return subprocess.run([_program(self.version, program)], check=True, stdout=subprocess.PIPE).stdout

        return self.answers.get((*_question(self.version), program), ask).decode()


def round_trips(answers: Answers, version: KubernetesVersion, documents: Sequence[Json]) -> list[dict[str, Any]]:
    """Return what the Go types of a release make of each document: `{"output": …}` or `{"error": …}`."""

    def ask() -> bytes:
        return json.dumps(list(Reference(_program(version, "roundtrip")).round_trips(documents))).encode()

    found: list[dict[str, Any]] = json.loads(answers.get((*_question(version), json.dumps(documents)), ask))
    return found


def _program(version: KubernetesVersion, package: str) -> Path:
    return schema_program(version, package).built()


def _question(version: KubernetesVersion) -> tuple[str, str, str]:
    return "schema", sources_digest(HERE, "*.go", "*.txt"), str(version)
