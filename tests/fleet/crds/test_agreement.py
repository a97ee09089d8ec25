"""Random objects: what the API server refuses by its rules is what `fleet render` refuses, and nothing else."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from garboard.errors import GarboardError
from garboard.fleet.crds import custom_resource_definitions
from garboard.fleet.customize import compile_customization
from garboard.fleet.documents import load_documents
from garboard.kube import KubeClient, ObjectInvalid, ObjectMissing, ObjectRef
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from garboard.retry import Pauses, wait_until
from tests.support.kube.real_server import real_api_server

pytestmark = pytest.mark.real
HIVE, COUNT = "hive.openshift.io/v1", 400


@pytest.fixture(scope="module")
def client(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeClient]:
    version = str(SUPPORTED_VERSIONS[-1])
    with real_api_server(binaries, version, tmp_path_factory.mktemp("server")) as access, KubeClient(access) as opened:
        definitions: Any = custom_resource_definitions()
        for each in definitions:
            name = each["metadata"]["name"]
            opened.create(ObjectRef("CustomResourceDefinition", "", name, "apiextensions.k8s.io/v1"), each)
        kinds = [each["spec"]["names"]["kind"] for each in definitions]
        assert wait_until(lambda: unserved(opened, kinds), timeout_s=60, pauses=Pauses.every(0.2)) is None
        yield opened


def unserved(client: KubeClient, kinds: list[str]) -> str | None:
    try:
        for kind in kinds:
            client.list_objects(kind, api_version=HIVE)
    except ObjectMissing as error:
        return error.message
    return None


def maybe(choice: random.Random, content: dict[str, Any], name: str, values: list[Any], chance: float = 0.5) -> None:
    if choice.random() < chance:
        content[name] = choice.choice(values)


def operation(choice: random.Random) -> dict[str, Any]:
    """Return an operation whose value is JSON and whose `from` has no bare tilde, which the rules cannot tell."""
    found: dict[str, Any] = {}
    maybe(choice, found, "op", ["add", "remove", "replace", "move", "copy", "test", "set", ""], 0.97)
    maybe(choice, found, "path", ["/a", "/a/b~1c", "/a~0", "", "/spec/-", "/x", "a", "/a~", "/a~2"], 0.97)
    maybe(choice, found, "from", ["/a", "a", "", "/b~1"], 0.3)
    maybe(choice, found, "value", ["", "x"], 0.4)
    maybe(choice, found, "valueJSON", ["1", '{"a": []}', '"x"'], 0.3)
    return found


def operations(choice: random.Random) -> list[Any]:
    return [operation(choice) for _ in range(choice.choice([0, 1, 1, 2]))]


def selector(choice: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    globs = ["manifests/*", "", "/etc/x", "../x", "a/../b", "a..b/*", "..", "a/..", "./x", "a//b"]
    maybe(choice, found, "glob", globs)
    maybe(choice, found, "group", ["", "apps"], 0.2)
    maybe(choice, found, "kind", ["", "Secret"], 0.2)
    maybe(choice, found, "name", ["", "n"], 0.2)
    maybe(choice, found, "labelSelector", ["", "a=b"], 0.2)
    return found


def entry(choice: random.Random) -> dict[str, Any]:
    """Return an entry; an inline patch is one that its type can take, which CEL cannot see."""
    found: dict[str, Any] = {"manifestSelector": selector(choice)}
    type_ = choice.choice([None, "json", "merge", "strategic", "yaml"])
    if type_ is not None:
        found["type"] = type_
    if choice.random() < 0.6:
        found["patches"] = operations(choice)
    if choice.random() < 0.5:
        found["patch"] = [] if type_ in (None, "json", "yaml") else {"spec": {"x": 1}}
    maybe(choice, found, "onNoMatch", ["fail", "warn", "ignore"], 0.2)
    return found


def customization(choice: random.Random) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if choice.random() < 0.4:
        spec["installConfigPatches"] = operations(choice)
    if choice.random() < 0.9:
        spec["installerManifestPatches"] = [entry(choice) for _ in range(choice.choice([1, 1, 2]))]
    maybe(choice, spec, "compat", [True, False], 0.2)
    return spec


def refusal_by_render(content: dict[str, Any]) -> str:
    try:
        documents = load_documents([("x.yaml", json.dumps(content).encode())])
        for each in documents.customizations.values():
            compile_customization(each)
    except GarboardError as error:
        return str(error)
    return ""


def refusal_by_server(client: KubeClient, content: dict[str, Any]) -> str:
    metadata = content["metadata"]
    try:
        client.create(ObjectRef(content["kind"], metadata["namespace"], metadata["name"], HIVE), content)
    except ObjectInvalid as error:
        return error.message
    return ""


def test_customizations_are_refused_by_both_or_by_none(client: KubeClient, seed: int) -> None:
    choice = random.Random(seed)
    accepted = 0
    for number in range(COUNT):
        content = {
            "apiVersion": HIVE,
            "kind": "ClusterDeploymentCustomization",
            "metadata": {"name": f"c{number}", "namespace": "default"},
            "spec": customization(choice),
        }
        ours, theirs = refusal_by_render(content), refusal_by_server(client, content)
        assert bool(ours) == bool(theirs), (content["spec"], ours, theirs)
        accepted += not ours
    assert COUNT / 20 < accepted < COUNT, "there are some of both"
