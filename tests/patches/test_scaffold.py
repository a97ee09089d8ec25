"""A new patch: uncommented line by line it says what is there, and with fields it sets exactly these."""

import re
from pathlib import Path

import pytest

from garboard.documents import Json, equal, read_yaml
from garboard.errors import BadUsage, PatchFailed
from garboard.model import DEFAULT_VERSION
from garboard.patches import (
    Patch,
    PatchSubject,
    PatchType,
    SourceText,
    apply_patches,
    check_patch,
    copy_of,
    find_target,
    scaffold,
)
from garboard.schema import load_schema

SCHEMA = load_schema(DEFAULT_VERSION)
MANIFESTS = Path(__file__).parents[2] / "examples" / "patches" / "manifests"
TARGETS = sorted(path.stem for path in MANIFESTS.glob("kube-*.yaml"))


def manifest(name: str) -> Json:
    return read_yaml((MANIFESTS / f"{name}.yaml").read_bytes(), source=name)


def made(name: str, type_: PatchType, *fields: str) -> str:
    return scaffold(manifest(name), find_target(name, SCHEMA.version), type_, fields, SCHEMA)


def patched(name: str, type_: PatchType, text: str) -> Json:
    patch = Patch.from_yaml(SourceText("p.yaml", text), type_)
    shape = find_target(name, SCHEMA.version).shape(SCHEMA)
    assert not check_patch(patch, shape, SCHEMA, name)
    return apply_patches(copy_of(manifest(name)), [patch], PatchSubject(shape)).document


@pytest.mark.parametrize("name", TARGETS)
def test_patch_with_every_line_uncommented_says_what_is_there(name: str) -> None:
    head, body = made(name, PatchType.STRATEGIC).split("args\n", 1)
    assert head.startswith(f"# A strategic patch for {name} of Kubernetes 1.37.")
    uncommented = re.sub(r"^( *)# ", r"\1", body, flags=re.MULTILINE)
    assert uncommented.count("\n") > 30
    assert equal(patched(name, PatchType.STRATEGIC, uncommented), manifest(name))


@pytest.mark.parametrize("name", TARGETS)
def test_patch_as_it_is_made_changes_nothing(name: str) -> None:
    for type_ in (PatchType.STRATEGIC, PatchType.ARGS):
        text = made(name, type_)
        value = read_yaml(text, source="p.yaml")
        if value is not None:
            assert equal(patched(name, type_, text), manifest(name))


def test_fields_are_set_with_the_merge_keys_on_the_way() -> None:
    text = made(
        "kube-apiserver",
        PatchType.STRATEGIC,
        "spec.containers[0].resources",
        "spec.containers[0].livenessProbe.timeoutSeconds",
        "metadata.labels",
    )
    value = read_yaml(text, source="p.yaml")
    assert value == {
        "metadata": {"labels": {"component": "kube-apiserver", "tier": "control-plane"}},
        "spec": {
            "containers": [
                {
                    "name": "kube-apiserver",
                    "resources": {"requests": {"cpu": "250m"}},
                    "livenessProbe": {"timeoutSeconds": 15},
                }
            ]
        },
    }
    assert equal(patched("kube-apiserver", PatchType.STRATEGIC, text), manifest("kube-apiserver"))


def test_json_patch_guards_what_it_replaces() -> None:
    text = made("kube-scheduler", PatchType.JSON, "spec.priorityClassName")
    assert [each["op"] for each in read_yaml(text, source="p")] == ["test", "replace"]  # type: ignore[index, call-overload, union-attr]
    changed = text.replace("value: system-node-critical\n", "value: mine\n").replace("mine", "system-node-critical", 1)
    result = patched("kube-scheduler", PatchType.JSON, changed)
    assert isinstance(result, dict)
    assert isinstance(result["spec"], dict)
    assert result["spec"]["priorityClassName"] == "mine"


def test_flags_are_named_with_their_values() -> None:
    assert made("kube-scheduler", PatchType.ARGS, "leader-elect", "--profiling").endswith(
        'removed.\nleader-elect: "true"\nprofiling: ""\n'
    )


def test_field_that_is_not_set_is_begun_with_an_empty_value() -> None:
    fields = ("spec.nodeName", "spec.dnsConfig.searches", "spec.containers[0].securityContext.privileged")
    value = read_yaml(made("kube-scheduler", PatchType.STRATEGIC, *fields), source="p.yaml")
    container = {"name": "kube-scheduler", "securityContext": {"privileged": False}}
    assert value == {"spec": {"nodeName": "", "dnsConfig": {"searches": []}, "containers": [container]}}
    operations = read_yaml(made("kube-scheduler", PatchType.JSON, "spec.priority", "spec.nodeName"), source="p.yaml")
    assert [each["op"] for each in operations] == ["test", "replace", "add"]  # type: ignore[index, call-overload, union-attr]


def test_element_or_parent_that_is_not_there_is_refused() -> None:
    with pytest.raises(PatchFailed, match="there is no"):
        made("kube-scheduler", PatchType.STRATEGIC, "spec.initContainers[0].image")
    with pytest.raises(PatchFailed, match="nothing at /spec/dnsConfig to add to"):
        made("kube-scheduler", PatchType.JSON, "spec.dnsConfig.searches")
    with pytest.raises(BadUsage, match="needs the fields"):
        made("kube-scheduler", PatchType.JSON)
