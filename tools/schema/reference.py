"""Ask the Go types of a release what becomes of a document, and record the answers as test vectors.

python -m tools.schema.reference        rewrites tests/vectors/schema/ from v1.36.4
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from garboard.documents import Json
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.schema import KnownKind, load_schema
from tools.schema.gomodule import kubernetes_module
from tools.schema.random_documents import Documents, Scalars

HERE = Path(__file__).parent
VECTORS = HERE.parents[1] / "tests/vectors/schema"


@dataclass(frozen=True, slots=True)
class Reference:
    """The program that decodes and encodes with the real types."""

    binary: Path

    def round_trips(self, documents: Iterable[Json]) -> Iterator[dict[str, Json]]:
        """Yield `{"output": …}` or `{"error": …}` for each document."""
        lines = "".join(json.dumps(document) + "\n" for document in documents)
        done = subprocess.run([self.binary], input=lines, check=True, stdout=subprocess.PIPE, text=True)
        yield from map(json.loads, done.stdout.splitlines())


def build_reference(version: KubernetesVersion, work: Path) -> Reference:
    return Reference(kubernetes_module(str(version), HERE, work).build("roundtrip"))


def comparable_kinds(version: KubernetesVersion) -> list[KnownKind]:
    """Return the kinds that the reference program can decode."""
    unknown = ("kubeadm.", "apiextensions.", "audit.", "kubescheduler.")
    return [
        kind
        for kind in load_schema(version).kinds()
        if not kind.api_version.startswith(unknown) and not kind.type.name.startswith("meta/")
        if not kind.name.endswith("Options") and kind.name != "EncryptionConfig"
    ]


def random_documents(version: KubernetesVersion, seed: int, count: int) -> list[tuple[KnownKind, dict[str, Json]]]:
    """Return documents of all kinds, every other one a workload, from flawless to hopeless."""
    kinds = comparable_kinds(version)
    workloads = [kind for kind in kinds if str(kind) in ("v1 Pod", "apps/v1 Deployment", "apps/v1 DaemonSet")]
    found = []
    for number in range(seed * count, (seed + 1) * count):
        kind = workloads[number // 2 % 3] if number % 2 else kinds[number * 7 % len(kinds)]
        source = Documents(number, slips=(0, 0.02, 0.2, 0.6)[number // 6 % 4])
        found.append((kind, source.document(kind.api_version, kind.name, kind.type)))
    return found


def scalar_documents(seed: int, count: int) -> list[tuple[str, Json, Json]]:
    """Return scalars: which one, the value, and a document that holds it and nothing else."""
    source = Scalars(seed)
    pod = {"apiVersion": "v1", "kind": "Pod"}
    event = {"apiVersion": "v1", "kind": "Event"}
    kubelet = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    found: list[tuple[str, Json, Json]] = []
    for _ in range(count):
        quantity, duration, moment, micro = source.quantity(), source.duration(), source.time(), source.time()
        found += [
            ("quantity", quantity, {**pod, "spec": {"overhead": {"x": quantity}}}),
            ("duration", duration, {**kubelet, "syncFrequency": duration}),
            ("time", moment, {**pod, "metadata": {"deletionTimestamp": moment}}),
            ("microTime", micro, {**event, "eventTime": micro}),
        ]
    return found


def scalar_in(output: Json, scalar: str) -> Json:
    """Find the one scalar of such a document again."""
    path = {
        "quantity": ("spec", "overhead", "x"),
        "duration": ("syncFrequency",),
        "time": ("metadata", "deletionTimestamp"),
        "microTime": ("eventTime",),
    }
    for step in path[scalar]:
        output = output[step] if isinstance(output, dict) else None
    return output


def main() -> int:
    version = SUPPORTED_VERSIONS[0]
    documents = [document for _, document in random_documents(version, seed=1, count=240)]
    scalars = scalar_documents(seed=1, count=250)
    with tempfile.TemporaryDirectory(prefix="garboard-reference-") as work:
        reference = build_reference(version, Path(work))
        outputs = list(reference.round_trips(documents))
        scalar_outputs = list(reference.round_trips(document for _, _, document in scalars))
    # The last member is a list of one, or null where Go refuses.
    pairs: list[list[Json]] = [
        [document, None if "error" in answer else [answer["output"]]]
        for document, answer in zip(documents, outputs, strict=True)
    ]
    rows: list[list[Json]] = [
        [scalar, value, None if "error" in answer else [scalar_in(answer["output"], scalar)]]
        for (scalar, value, _), answer in zip(scalars, scalar_outputs, strict=True)
    ]
    VECTORS.mkdir(parents=True, exist_ok=True)
    source = f"Go types of Kubernetes {version}, decoded from YAML and encoded again"
    _write(VECTORS / "round-trip.json", source, pairs)
    _write(VECTORS / "scalars.json", source, rows)
    return 0


def _write(path: Path, source: str, vectors: list[list[Json]]) -> None:
    lines = ",\n".join(json.dumps(vector, ensure_ascii=False, sort_keys=True) for vector in vectors)
    path.write_text(f'{{"source": {json.dumps(source)}, "vectors": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    sys.exit(main())
