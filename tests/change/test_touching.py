"""What the table declares for a field is what is rendered in another way when it changes: every field, both minors."""

import random

import pytest

from garboard.change.attribute import CLUSTER
from garboard.change.table import attribute_table
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.schema import FieldType
from tests.support.change.touching import fresh, generated, leaf_fields, nested, touched, types_of

# Where rendering cannot show what the table declares, and why.
NOT_RENDERED = {
    ("featureGates", "RootlessControlPlane"): "the users are made on the node, and stand in the manifests only then",
    ("featureGates", "NodeLocalCRISocket"): "where it is off, the socket is a flag; the configuration is the same",
}
FIELDS = [
    pytest.param(version, kind, path, field, id=f"{version.as_minor} {kind}:{'.'.join(path)}")
    for version in SUPPORTED_VERSIONS
    for kind, type_ in types_of(version).items()
    for path, field in leaf_fields(type_)
    if path[0] != "featureGates" or kind != CLUSTER
]


@pytest.mark.parametrize(("version", "kind", "path", "field"), FIELDS)
def test_what_is_declared_is_what_is_rendered(
    version: KubernetesVersion, kind: str, path: tuple[str, ...], field: FieldType, pytestconfig: pytest.Config
) -> None:
    draw = random.Random(f"{pytestconfig.getoption('--seed')} {kind} {path}")
    is_external = path[:2] == ("etcd", "external")
    before = fresh(version, kind, {}, is_external=is_external)
    after = fresh(version, kind, nested(path, generated(path, field, version, draw)), is_external=is_external)
    row = attribute_table(kind).row(path)
    assert row is not None
    assert touched(before, after, version) == set(row.components)


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_gates_of_kubeadm_touch_what_can_be_rendered_and_no_more(version: KubernetesVersion) -> None:
    facts = fresh(version, CLUSTER, {}).cluster.facts
    for name, default in facts.gate_defaults.items():
        after = fresh(version, CLUSTER, {"featureGates": {name: not default}})
        row = attribute_table(CLUSTER).row(("featureGates", name))
        assert row is not None
        found = touched(fresh(version, CLUSTER, {}), after, version)
        assert found <= set(row.components)
        assert found == set(row.components) or ("featureGates", name) in NOT_RENDERED
