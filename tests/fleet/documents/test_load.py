"""Documents of Hive read from files: which fields there are, and how everything that is wrong is told."""

import pytest

from garboard.errors import BadDocument
from garboard.fleet import InvalidFleetDocuments, load_documents
from garboard.fleet.documents import ObjectKey
from tests.support.fleet.pool import IMAGE_SET, POOL, PULL_SECRET, TEMPLATE, customization, documents_of

EDGE = ObjectKey("default", "edge")
DEPLOYMENT = """\
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata:
  name: prod
  namespace: clusters
  labels: {team: a}
  resourceVersion: "12"
  managedFields: []
spec:
  clusterName: prod
  baseDomain: example.com
  platform:
    aws:
      region: us-east-1
      credentialsSecretRef: {name: aws}
      userTags: {anything: [1, 2]}
  pullSecretRef: {name: pull}
  manageDNS: false
  powerState: Running
  hibernateAfter: 8h30m
  installAttemptsLimit: 3
  preserveOnDelete: true
  controlPlaneConfig: {servingCertificates: {default: x}}
  certificateBundles: [{name: x, generate: false, certificateSecretRef: {name: y}}]
  clusterPoolRef:
    namespace: pools
    poolName: edge
    claimName: ""
    clusterDeploymentCustomization: {name: site-a}
  provisioning:
    installConfigSecretRef: {name: config}
    customizationRef: {name: everywhere}
    imageSetRef: {name: v1}
    sshPrivateKeySecretRef: {name: ssh}
    sshKnownHosts: ["a b c"]
    manifestsConfigMapRef: {name: more}
    installerEnv: [{name: A, value: b}, {name: B, valueFrom: {secretKeyRef: {name: x, key: y}}}]
status:
  conditions: [{type: Provisioned}]
"""


OTHER = "{group: a, version: b, kind: c, name: d}"


def problems(*documents: str) -> str:
    with pytest.raises(InvalidFleetDocuments) as raised:
        documents_of(*documents)
    return raised.value.message


def test_every_field_of_hive_is_read_and_platforms_are_kept_as_written() -> None:
    deployment = documents_of(DEPLOYMENT).deployments[ObjectKey("clusters", "prod")].value.spec
    assert deployment.platform["aws"]["userTags"] == {"anything": [1, 2]}
    assert deployment.cluster_pool_ref is not None
    assert deployment.cluster_pool_ref.customization_ref is not None
    assert deployment.cluster_pool_ref.customization_ref.name == "site-a"
    assert deployment.provisioning is not None
    assert [each.name for each in deployment.provisioning.installer_env] == ["A", "B"]


def test_pool_has_all_fields_of_hive() -> None:
    more = (
        "  runningCount: 1\n  maxSize: 4\n  maxConcurrent: 1\n  labels: {a: b}\n  annotations: {c: d}\n"
        "  hibernateAfter: 1h\n  installAttemptsLimit: 1\n  skipMachinePools: true\n  installerEnv: []\n"
        "  claimLifetime: {default: 1h, maximum: 2h}\n  hibernationConfig: {resumeTimeout: 20m}\n"
    )
    pool = documents_of(POOL + more, IMAGE_SET).pools[EDGE].value
    assert (pool.spec.max_size, pool.spec.claim_lifetime.maximum if pool.spec.claim_lifetime else "") == (4, "2h")


def test_null_is_no_value_but_in_patches_and_platforms() -> None:
    pool = POOL.replace("  inventory:", "  maxSize: null\n  labels: null\n  installerEnv: null\n  inventory:")
    assert documents_of(pool.replace("{name: edge}", "{name: edge, labels: null}")).pools[EDGE].value.spec.labels == {}
    spec = "installerManifestPatches: [{manifestSelector: {kind: X}, type: merge, patch: {a: null}, onNoMatch: null}]"
    entry = documents_of(customization("x", spec)).customizations[ObjectKey("default", "x")].value
    assert entry.spec.installer_manifest_patches[0].patch == {"a": None}
    assert "spec.inventory[0]: expected object, got null" in problems(POOL.replace("- name: site-a", "- null"))
    assert "spec: the field 'size' is missing" in problems(POOL.replace("size: 2", "size: null"))


def test_claims_lists_and_json_are_read() -> None:
    claim = '{"apiVersion": "hive.openshift.io/v1", "kind": "ClusterClaim", "metadata": {"name": "mine"}, '
    claim += '"spec": {"clusterPoolName": "edge", "lifetime": "8h", "subjects": [{"kind": "Group", "name": "x"}]}}'
    assert len(load_documents([("claim.json", claim.encode())]).claims) == 1
    listed = f'{{"apiVersion": "v1", "kind": "List", "items": [{claim}]}}'
    assert len(load_documents([("list.json", listed.encode())]).claims) == 1


def test_kinds_that_say_nothing_about_installing_are_named_and_left_out() -> None:
    found = documents_of(POOL, "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n",
                         "apiVersion: hive.openshift.io/v1\nkind: SyncSet\nmetadata: {name: y}\n")  # fmt: skip
    assert [each.partition(": ")[2] for each in found.ignored] == ["v1 Namespace", "hive.openshift.io/v1 SyncSet"]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        pytest.param(POOL.replace("inventory:", "inventry:"), ":12:3: spec.inventry: there is no", id="field"),
        pytest.param(POOL.replace("size: 2", "size: -1"), ":8:3: spec.size: expected int >= 0", id="negative"),
        pytest.param(POOL.replace("size: 2", "size: '2'"), ":8:3: spec.size: expected int, got str", id="text"),
        pytest.param(POOL.replace("  size: 2\n", ""), ":4:1: spec: the field 'size' is missing", id="missing"),
        pytest.param(POOL.replace("{none: {}}", "{none: {}, aws: {}}"), ":5:3: spec.platform: one platform", id="two"),
        pytest.param(POOL.replace("name: edge", "name: Edge"), ":3:12: metadata.name: 'Edge'", id="name"),
        pytest.param(POOL.replace("name: edge", f"name: {'e' * 64}"), "Hive takes at most 63", id="long"),
        pytest.param(POOL.replace("- name: site-a", "- {kind: Other, name: a}"), "invalid enum value", id="kind"),
        pytest.param(DEPLOYMENT.replace("8h30m", "8 hours"), "spec.hibernateAfter: expected", id="duration"),
        pytest.param(DEPLOYMENT.replace("Running", "Off"), ":19:3: spec.powerState: expected str, got bool", id="enum"),
        pytest.param(DEPLOYMENT.replace("installConfigSecretRef: {name: config}", "installConfigSecretRef: {}"),
                     "spec.provisioning: installConfigSecretRef.name is missing", id="no install config"),
        pytest.param(DEPLOYMENT.replace("    installerEnv", "    manifestsSecretRef: {name: x}\n    installerEnv"),
                     "manifestsConfigMapRef and manifestsSecretRef exclude each other", id="two kinds of manifests"),
        pytest.param(DEPLOYMENT.replace("  provisioning:", f"  clusterInstallRef: {OTHER}\n  provisioning:"),
                     "spec: one of provisioning and clusterInstallRef", id="two installers"),
        pytest.param(DEPLOYMENT.replace('claimName: ""', "claimName: mine"), "cannot be claimed yet", id="claimed"),
        pytest.param(DEPLOYMENT.replace("manageDNS: false", "installed: true"), "clusterMetadata", id="installed"),
        pytest.param(customization("x", "installConfigPatches: [{op: merge, path: /a}]"), "invalid enum", id="op"),
        pytest.param(customization("x", "installConfigPatches: [{op: add, path: /a, value: 3}]"),
                     "expected str, got int", id="value that is no text"),
        pytest.param(customization("x", "installerManifestPatches: [{patches: []}]"), "'manifestSelector' is missing",
                     id="no selector"),
        pytest.param("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: '%%'}\n", "data.k: not base64",
                     id="base64"),
        pytest.param("kind: ClusterPool\n", "apiVersion is missing", id="no apiVersion"),
        pytest.param("apiVersion: v1\nkind: ClusterPool\n", "ClusterPool is of hive.openshift.io/v1", id="api version"),
        pytest.param("apiVersion: hive.openshift.io/v1\nkind: ClusterPol\n", "has no ClusterPol", id="misspelt kind"),
        pytest.param("- a\n", "not an object", id="a list"),
        pytest.param("a: b: c\n", "mapping values are not allowed", id="no YAML"),
        pytest.param(POOL.replace("  size: 2", "  size: 2\n  size: 3"), "'size' stands here a second time", id="twice"),
    ],
)  # fmt: skip
def test_wrong_document_is_refused_at_its_line(document: str, told: str) -> None:
    assert told in problems(document)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    told = problems(POOL.replace("size: 2", "size: x"), IMAGE_SET.replace("releaseImage", "image"), POOL)
    assert len(told.splitlines()) == 2
    assert "fleet.yaml:19:8: spec.image" in told


def test_object_that_stands_twice_is_refused() -> None:
    assert "stands in these files twice; first at fleet.yaml:1:1" in problems(POOL, POOL)


def test_secret_is_in_no_message_and_no_repr() -> None:
    documents = documents_of(POOL, PULL_SECRET, TEMPLATE)
    assert "pull-secret-of-the-pool" not in repr(documents)
    assert "hunter2" not in repr(documents)
    wrong = PULL_SECRET.replace("stringData", "strngData")
    assert "pull-secret-of-the-pool" not in problems(wrong)


@pytest.mark.parametrize("text", ["", "# nothing\n", "apiVersion: v1\nkind: Namespace\n"])
def test_files_without_documents_of_a_fleet_are_refused(text: str) -> None:
    with pytest.raises(BadDocument, match="hold no document of a fleet"):
        load_documents([("x.yaml", text.encode())])
