"""Numbers beyond 64 bits with a sign, which Kubernetes keeps or rounds by patch type, and scalars as Go prints them.

The facts come from running kubeadm and a Go program.
"""

import pytest

from garboard.documents import Json
from garboard.model import DEFAULT_VERSION
from garboard.patches import Patch, PatchSubject, PatchType, SourceText, apply_patches, as_decoded, find_target
from garboard.patches.json_values import go_text
from garboard.schema import load_schema

SCHEMA = load_schema(DEFAULT_VERSION)
LARGEST = 2**64 - 1


@pytest.mark.parametrize(
    ("value", "decoded"),
    [
        (1.0, 1),
        (0.5, 0.5),
        (1.2345678901234567e18, 1234567890123456800),  # the shortest digits, not the exact binary value
        (1e20, 1e20),
        (2**63 - 1, 2**63 - 1),
        (2**63, 9.223372036854775808e18),
        (True, True),
        ([LARGEST, {"a": 2.0}], [1.8446744073709552e19, {"a": 2}]),
    ],
)
def test_decoded_number(value: Json, decoded: Json) -> None:
    got = as_decoded(value)
    assert (got, type(got)) == (decoded, type(decoded))


def patched(*patches: tuple[str, PatchType]) -> Json:
    scheduler: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "kube-scheduler"}, "spec": {}}
    subject = PatchSubject.of_target(find_target("kube-scheduler", DEFAULT_VERSION), SCHEMA)
    read = [Patch.from_yaml(SourceText("patch.yaml", text), type_) for text, type_ in patches]
    document = apply_patches(scheduler, read, subject).document
    assert isinstance(document, dict)
    spec = document["spec"]
    assert isinstance(spec, dict)
    return spec["overhead"]


def test_strategic_patch_rounds_and_others_keep() -> None:
    text = f"spec: {{overhead: {{memory: {LARGEST}}}}}"
    assert patched((text, PatchType.MERGE)) == {"memory": "18446744073709551615"}
    assert patched((text, PatchType.STRATEGIC)) == {"memory": "18446744073709552k"}
    assert patched((text, PatchType.MERGE), ("{}", PatchType.STRATEGIC)) == {"memory": "18446744073709552k"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        (True, "true"),
        (False, "false"),
        ("a b", "a b"),
        (0, "0"),
        (-7, "-7"),
        (2**63 - 1, "9223372036854775807"),
        (0.5, "0.5"),
        (1.0, "1"),
        (-0.0, "-0"),
        (1e20, "1e+20"),
        (1e21, "1e+21"),
        (123456789.0, "1.23456789e+08"),
        (1234567.0, "1.234567e+06"),
        (2000000.5, "2.0000005e+06"),
        (100000.0, "100000"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (1.5e-7, "1.5e-07"),
        (1e100, "1e+100"),
        (123456.5, "123456.5"),
    ],
)
def test_text_is_go_s(value: Json, text: str) -> None:
    assert go_text(value) == text
