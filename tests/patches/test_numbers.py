"""Numbers beyond 64 bits with a sign, which Kubernetes keeps or rounds by patch type (facts from running kubeadm)."""

import pytest

from garboard.documents import Json
from garboard.model import DEFAULT_VERSION
from garboard.patches import Patch, PatchType, Source, as_decoded, find_target, patch_target
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
    target = find_target("kube-scheduler", DEFAULT_VERSION)
    read = [Patch.from_yaml(Source("patch.yaml", text), type_) for text, type_ in patches]
    document = patch_target(scheduler, read, target, SCHEMA, is_watched=False).document
    assert isinstance(document, dict)
    spec = document["spec"]
    assert isinstance(spec, dict)
    return spec["overhead"]


def test_strategic_patch_rounds_and_others_keep() -> None:
    text = f"spec: {{overhead: {{memory: {LARGEST}}}}}"
    assert patched((text, PatchType.MERGE)) == {"memory": "18446744073709551615"}
    assert patched((text, PatchType.STRATEGIC)) == {"memory": "18446744073709552k"}
    assert patched((text, PatchType.MERGE), ("{}", PatchType.STRATEGIC)) == {"memory": "18446744073709552k"}
