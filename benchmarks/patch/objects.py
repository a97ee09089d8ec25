"""The objects and patches of the benchmark: always the same bytes, in the forms of garboard and of kustomize."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DEPLOYMENTS, CONFIG_MAPS, SERVICES = 1400, 1500, 1100
OBJECTS = DEPLOYMENTS + CONFIG_MAPS + SERVICES
PER_FILE = 100
TIERS = ("front", "back", "batch", "data")


@dataclass(frozen=True, slots=True)
class PatchEntry:
    """A patch and the objects it is for; the name is a prefix, which each tool writes in its own pattern language."""

    file: str
    type: str
    text: str
    group: str
    kind: str
    name_prefix: str = ""
    labels: str = ""

    @property
    def garboard(self) -> str:
        name = f", name: {self.name_prefix}*" if self.name_prefix else ""
        labels = f", labelSelector: {self.labels}" if self.labels else ""
        target = f'group: "{self.group}", kind: {self.kind}{name}{labels}'
        return f"- target: {{{target}}}\n  type: {self.type}\n  file: {self.file}\n"

    @property
    def kustomize(self) -> str:
        name = f", name: {self.name_prefix}.*" if self.name_prefix else ""
        labels = f", labelSelector: {self.labels}" if self.labels else ""
        group = f"group: {self.group}, " if self.group else ""
        return f"- path: kustomize-{self.file}\n  target: {{{group}kind: {self.kind}{name}{labels}}}\n"

    @property
    def kustomize_text(self) -> str:
        """The patch with the identity that kustomize wants of every patch that is no JSON patch, and then ignores."""
        if self.type == "json":
            return self.text
        api_version = f"{self.group}/v1" if self.group else "v1"
        text = self.text if "metadata:\n" in self.text else f"metadata:\n{self.text}"
        text = text.replace("metadata:\n", "metadata:\n  name: any\n")
        return f"apiVersion: {api_version}\nkind: {self.kind}\n{text}"


PATCHES = (
    PatchEntry(
        "deployment-front.yaml", "strategic",
        "spec:\n  replicas: 5\n  template:\n    spec:\n"
        "      containers:\n      - name: main\n        image: registry.example/main:2.0\n        env:\n"
        "        - name: LEVEL\n          value: debug\n",
        "apps", "Deployment", labels="tier=front",
    ),
    PatchEntry(
        "deployment-back.yaml", "json",
        "- op: test\n  path: /spec/template/spec/containers/0/name\n  value: main\n"
        "- op: replace\n  path: /spec/replicas\n  value: 4\n"
        "- op: add\n  path: /spec/template/spec/containers/0/env/-\n  value: {name: EXTRA, value: added}\n",
        "apps", "Deployment", labels="tier=back",
    ),
    PatchEntry(
        "config-all.yaml", "merge",
        "metadata:\n  annotations:\n    team: platform\n"
        "data:\n  level: debug\n  unused: null\n",
        "", "ConfigMap", name_prefix="config-",
    ),
    PatchEntry(
        "service-front.yaml", "json",
        "- op: replace\n  path: /spec/type\n  value: NodePort\n"
        "- op: add\n  path: /spec/ports/-\n  value: {name: metrics, port: 9090, targetPort: 9090}\n",
        "", "Service", labels="tier=front",
    ),
    PatchEntry(
        "service-data.yaml", "strategic",
        "spec:\n  sessionAffinity: ClientIP\n"
        "  ports:\n  - port: 80\n    targetPort: 8443\n",
        "", "Service", labels="tier=data",
    ),
)  # fmt: skip


def write_inputs(folder: Path) -> int:
    """Write objects, patches, the patch set and the kustomization below `folder`; return the bytes of the objects."""
    objects = folder / "objects"
    objects.mkdir(parents=True)
    texts = list(object_texts())
    names = []
    for number, start in enumerate(range(0, len(texts), PER_FILE)):
        name = f"{number:03}.yaml"
        names.append(name)
        (objects / name).write_text("---\n".join(texts[start : start + PER_FILE]))
    for patch in PATCHES:
        (folder / patch.file).write_text(patch.text)
        (folder / f"kustomize-{patch.file}").write_text(patch.kustomize_text)
    (folder / "patches.yaml").write_text(
        "apiVersion: garboard.dev/v1alpha1\nkind: PatchSet\npatches:\n" + "".join(each.garboard for each in PATCHES)
    )
    (folder / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
        + "".join(f"- objects/{name}\n" for name in names)
        + "patches:\n"
        + "".join(each.kustomize for each in PATCHES)
    )
    return sum(map(len, texts))


def object_texts() -> Iterator[str]:
    """Yield the objects, kinds mixed as they are in a real folder."""
    kinds = [(_deployment, DEPLOYMENTS), (_config_map, CONFIG_MAPS), (_service, SERVICES)]
    for number in range(max(count for _, count in kinds)):
        for make, count in kinds:
            if number < count:
                yield make(number, TIERS[number % len(TIERS)])


def _deployment(number: int, tier: str) -> str:
    return f"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-{number}
  labels: {{app: web-{number}, tier: {tier}}}
spec:
  replicas: 1
  selector:
    matchLabels: {{app: web-{number}}}
  template:
    metadata:
      labels: {{app: web-{number}}}
    spec:
      containers:
      - name: main
        image: registry.example/main:1.{number % 10}
        env:
        - name: LEVEL
          value: info
"""


def _config_map(number: int, tier: str) -> str:
    return f"""apiVersion: v1
kind: ConfigMap
metadata:
  name: config-{number}
  labels: {{tier: {tier}}}
data:
  level: info
  unused: "yes"
  limits.conf: |
    connections = {number}
    timeout = 30
"""


def _service(number: int, tier: str) -> str:
    return f"""apiVersion: v1
kind: Service
metadata:
  name: web-{number}
  labels: {{tier: {tier}}}
spec:
  type: ClusterIP
  selector: {{app: web-{number}}}
  ports:
  - name: http
    port: 80
    targetPort: 8080
"""


def selected(patch: PatchEntry, document: dict[str, object]) -> bool:
    """Return whether a patch is for an object; said here once more, so that the sample needs neither tool."""
    metadata = json.loads(json.dumps(document["metadata"]))
    key, _, value = patch.labels.partition("=")
    return (
        document["kind"] == patch.kind
        and str(metadata["name"]).startswith(patch.name_prefix)
        and (not key or metadata["labels"].get(key) == value)
    )
