"""Documents of a small fleet for tests: a pool with an inventory, and what customizations are applied with."""

from collections.abc import Iterable, Mapping

from garboard.fleet import FleetDocuments, ManifestTree, Rules, Scrubber, load_documents
from garboard.model import DEFAULT_VERSION
from garboard.schema import load_schema

FILE = "fleet.yaml"
POOL = """\
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: edge}
spec:
  platform: {none: {}}
  baseDomain: edge.example.com
  imageSetRef: {name: v1}
  size: 2
  pullSecretRef: {name: pull}
  installConfigSecretTemplateRef: {name: template}
  customizationRef: {name: everywhere}
  inventory:
  - name: site-a
  - name: site-b
"""
IMAGE_SET = """\
apiVersion: hive.openshift.io/v1
kind: ClusterImageSet
metadata: {name: v1}
spec: {releaseImage: "registry.example/release:1"}
"""
PULL_SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: pull}
stringData:
  .dockerconfigjson: '{"auths": {"registry.example": {"auth": "pull-secret-of-the-pool"}}}'
"""
TEMPLATE = """\
apiVersion: v1
kind: Secret
metadata: {name: template}
stringData:
  install-config.yaml: |
    apiVersion: v1
    metadata:
      name: template
    baseDomain: template.example
    controlPlane:
      name: master
      replicas: 3
    platform:
      none: {}
    password: hunter2-in-the-template
"""
MANIFESTS = {
    "manifests/cluster-network.yaml": (
        b"apiVersion: config/v1\nkind: Network\nmetadata:\n  name: cluster\nspec:\n  mtu: 1500\n"
    ),
    "openshift/99_worker.yaml": (
        b"# made by the installer\napiVersion: machine/v1\nkind: MachineSet\n"
        b"metadata:\n  name: worker\n  labels:\n    role: worker\nspec:\n  replicas: 2\n"
    ),
    "openshift/99_master.yaml": (
        b"apiVersion: machine/v1\nkind: MachineSet\nmetadata: {name: master}\nspec: {replicas: 3}\n"
    ),
    "auth/kubeconfig": b"users: []\n",
    ".openshift_install_state.json": b"{}\n",
}


def customization(name: str, spec: str) -> str:
    """Return a ClusterDeploymentCustomization; the lines of its spec are indented here."""
    lines = "".join(f"  {line}\n" for line in spec.strip("\n").splitlines())
    head = "apiVersion: hive.openshift.io/v1\nkind: ClusterDeploymentCustomization\n"
    return f"{head}metadata: {{name: {name}}}\nspec:\n{lines}" if lines else f"{head}metadata: {{name: {name}}}\n"


def fleet_text(*documents: str) -> bytes:
    return "---\n".join(documents).encode()


def documents_of(*documents: str) -> FleetDocuments:
    return load_documents([(FILE, fleet_text(*documents))])


def pool_of(customizations: Mapping[str, str], pool: str = POOL) -> FleetDocuments:
    """Return the documents of the pool with customizations, given by name; those not given say nothing."""
    specs = {"everywhere": "", "site-a": "", "site-b": "", **customizations}
    made = [customization(name, spec) for name, spec in specs.items()]
    return documents_of(pool, IMAGE_SET, PULL_SECRET, TEMPLATE, *made)


def rules(secrets: Iterable[str] = ()) -> Rules:
    return Rules(lambda: load_schema(DEFAULT_VERSION), Scrubber(secrets))


def tree(**files: bytes) -> ManifestTree:
    return ManifestTree.of({**MANIFESTS, **files})
