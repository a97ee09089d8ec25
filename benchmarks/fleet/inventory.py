"""A pool with an inventory, and the manifests of an installer; and the same patches as overlays of kustomize."""

import json
from pathlib import Path
from typing import Any

ENTRIES, MANIFESTS = 500, 60
_POOL = """\
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: edge, namespace: fleet}
spec:
  platform: {none: {}}
  baseDomain: edge.example.com
  imageSetRef: {name: release}
  size: 500
  installConfigSecretTemplateRef: {name: template}
  customizationRef: {name: everywhere}
  inventory:
"""
_REST = """\
---
apiVersion: hive.openshift.io/v1
kind: ClusterImageSet
metadata: {name: release}
spec: {releaseImage: "registry.example.com/release:1"}
---
apiVersion: v1
kind: Secret
metadata: {name: template, namespace: fleet}
stringData:
  install-config.yaml: |
    apiVersion: v1
    metadata: {name: template}
    baseDomain: template
    controlPlane: {name: master, replicas: 3}
    compute:
    - {name: worker, replicas: 2}
    networking:
      machineNetwork:
      - cidr: 10.0.0.0/16
    platform:
      none: {}
    additional: {vips: [], ntp: []}
---
apiVersion: hive.openshift.io/v1
kind: ClusterDeploymentCustomization
metadata: {name: everywhere, namespace: fleet}
spec:
  installerManifestPatches:
  - manifestSelector:
      glob: openshift/*machineset-*.yaml
    patches:
    - op: add
      path: /spec/template/metadata/labels/fleet
      value: edge
  - manifestSelector:
      kind: Network
    type: merge
    patch:
      spec: {mtu: 1400}
"""
_ENTRY = """\
---
apiVersion: hive.openshift.io/v1
kind: ClusterDeploymentCustomization
metadata:
  name: {name}
  namespace: fleet
spec:
  installConfigPatches:
  - op: replace
    path: /additional/vips
    valueJSON: '["10.{high}.{low}.2", "10.{high}.{low}.3"]'
  - op: replace
    path: /networking/machineNetwork/0/cidr
    value: 10.{high}.{low}.0/24
  - op: test
    path: /controlPlane/replicas
    valueJSON: '3'
  installerManifestPatches:
  - manifestSelector:
      glob: openshift/99_machineset-0?.yaml
    patches:
    - op: test
      path: /spec/template/spec/value/memoryMiB
      valueJSON: '16384'
    - op: replace
      path: /spec/template/spec/value/memoryMiB
      valueJSON: '{memory}'
  - manifestSelector:
      kind: Network
      name: cluster
    type: merge
    patch:
      spec:
        site: {name}
        vips: [10.{high}.{low}.2]
"""


def entry_name(number: int) -> str:
    return f"site-{number:03d}"


def _numbers(number: int) -> dict[str, Any]:
    return {"name": entry_name(number), "high": number // 250, "low": number % 250, "memory": 17408 + 1024 * number}


def write_inputs(folder: Path) -> int:
    """Write documents and manifests; return the size of both."""
    inventory = "".join(f"  - name: {entry_name(number)}\n" for number in range(ENTRIES))
    entries = "".join(_ENTRY.format(**_numbers(number)) for number in range(ENTRIES))
    (folder / "fleet.yaml").write_text(_POOL + inventory + _REST + entries)
    made = folder / "made"
    for name, text in manifests().items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def manifests() -> dict[str, str]:
    """Return the files of an installer: machine sets, one network, and configurations of some kilobytes."""
    network = "apiVersion: operator/v1\nkind: Network\nmetadata:\n  name: cluster\nspec:\n  mtu: 1500\n"
    found = {"manifests/network.yaml": network}
    for number in range(20):
        found[f"openshift/99_machineset-{number:02d}.yaml"] = (
            f"apiVersion: machine/v1\nkind: MachineSet\nmetadata:\n  name: worker-{number:02d}\nspec:\n  replicas: 1\n"
            "  template:\n    metadata:\n      labels:\n        role: worker\n"
            "    spec:\n      value:\n        memoryMiB: 16384\n        numCPUs: 4\n"
        )
    for number in range(MANIFESTS - len(found)):
        data = "".join(f"  key-{line:02d}: value of line {line} in configuration {number}\n" for line in range(40))
        head = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-{number:02d}\n  namespace: installer\n"
        found[f"manifests/config-{number:02d}.yaml"] = f"{head}data:\n{data}"
    return found


def write_overlay(folder: Path, number: int) -> Path:
    """Write what kustomize builds for one entry: the manifests, the patches of the pool, those of the entry."""
    base, overlay = folder / "base", folder / "overlays" / entry_name(number)
    if not base.exists():
        _write_base(base)
    overlay.mkdir(parents=True)
    values = _numbers(number)
    memory = [
        {"op": "test", "path": "/spec/template/spec/value/memoryMiB", "value": 16384},
        {"op": "replace", "path": "/spec/template/spec/value/memoryMiB", "value": values["memory"]},
    ]
    network = {"spec": {"site": values["name"], "vips": [f"10.{values['high']}.{values['low']}.2"]}}
    patches = [{"target": {"kind": "MachineSet", "name": "worker-0.*"}, "patch": json.dumps(memory)}, _merge(network)]
    _write_kustomization(overlay, ["../../base"], patches)
    return overlay


def _write_base(base: Path) -> None:
    for name, text in manifests().items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    label = [{"op": "add", "path": "/spec/template/metadata/labels/fleet", "value": "edge"}]
    patches = [{"target": {"kind": "MachineSet"}, "patch": json.dumps(label)}, _merge({"spec": {"mtu": 1400}})]
    _write_kustomization(base, sorted(manifests()), patches)


def _merge(change: dict[str, Any]) -> dict[str, Any]:
    patch = {"apiVersion": "operator/v1", "kind": "Network", "metadata": {"name": "cluster"}, **change}
    return {"target": {"kind": "Network", "name": "cluster"}, "patch": json.dumps(patch)}


def _write_kustomization(folder: Path, resources: list[str], patches: list[dict[str, Any]]) -> None:
    document = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(json.dumps({**document, "resources": resources, "patches": patches}))
