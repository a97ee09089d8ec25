"""Who may write revisions: a policy of the API server's own, without which no agent acts. Pure.

Whoever writes a revision decides what runs as root on every node that has an agent. By roles, everybody who may write
ConfigMaps of kube-system could. The policy refuses that to all but administrators of the cluster, and each agent looks
at it before it acts: that it is there, as it was written, and older than the revision.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from garboard.documents import Json
from garboard.manifests.objects import KUBE_SYSTEM, NODES_GROUP, RBAC_API, RBAC_GROUP, ClusterObject, new_object
from garboard.phases.revision import REVISION_PREFIX, TARGET

POLICY, POLICY_KIND, BINDING_KIND = (
    "garboard-revisions",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
API = "admissionregistration.k8s.io/v1"
READER = "garboard:revision-policy"
# Nobody may make it: who tries, and is refused, knows that the API server has read the policy.
PROBE = f"{REVISION_PREFIX}probe"
PATCH_SETS = "garboard-patches"
WRITERS = ("kubeadm:cluster-admins", "system:masters")
# API servers hear of a policy a moment after it was stored.
TAKES_EFFECT_WITHIN_S = 5.0

_NAME = "(object == null ? oldObject : object).metadata.name"
_IS_RECORD = f"{_NAME}.startsWith('{REVISION_PREFIX}') || {_NAME} in ['{TARGET}', '{PATCH_SETS}']"
_IS_WRITER = " || ".join(f"'{each}' in request.userInfo.groups" for each in WRITERS)
_REFUSED = f"only {' and '.join(WRITERS)} write revisions: nodes carry them out as root"

# With all that the API server fills in, so that what is stored can be compared with it.
_POLICY_SPEC: dict[str, Json] = {
    "failurePolicy": "Fail",
    "matchConstraints": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": KUBE_SYSTEM}},
        "objectSelector": {},
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE", "DELETE"],
                "resources": ["configmaps"],
                "scope": "*",
            }
        ],
    },
    "matchConditions": [{"name": "is-a-record-of-changes", "expression": _IS_RECORD}],
    "validations": [
        {"expression": _IS_WRITER, "message": _REFUSED, "reason": "Forbidden"},
        {
            "expression": f"request.operation != 'CREATE' || object.metadata.name != '{PROBE}'",
            "message": "nobody makes this one: it shows that the policy is in force",
            "reason": "Forbidden",
        },
    ],
}
_BINDING_SPEC: dict[str, Json] = {"policyName": POLICY, "validationActions": ["Deny"]}


def policy_objects() -> tuple[ClusterObject, ...]:
    """Return the policy, its binding, and what lets nodes look at both."""
    return (
        new_object(_object(API, POLICY_KIND, POLICY, spec=_POLICY_SPEC)),
        new_object(_object(API, BINDING_KIND, POLICY, spec=_BINDING_SPEC)),
        new_object(_object(RBAC_API, "ClusterRole", READER, rules=[_RULE])),
        new_object(
            _object(
                RBAC_API,
                "ClusterRoleBinding",
                READER,
                roleRef={"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": READER},
                subjects=[{"apiGroup": RBAC_GROUP, "kind": "Group", "name": NODES_GROUP}],
            )
        ),
    )


_RULE: dict[str, Json] = {
    "apiGroups": ["admissionregistration.k8s.io"],
    "resources": ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
    "resourceNames": [POLICY],
    "verbs": ["get"],
}


def _object(api_version: str, kind: str, name: str, **fields: Json) -> dict[str, Json]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def policy_problem(policy: Mapping[str, Json] | None, binding: Mapping[str, Json] | None) -> str | None:
    """Say why the policy does not keep others from writing revisions; None if it does."""
    for kind, found, spec in ((POLICY_KIND, policy, _POLICY_SPEC), (BINDING_KIND, binding, _BINDING_SPEC)):
        if found is None:
            return f"there is no {kind} {POLICY}"
        if _metadata(found).get("deletionTimestamp"):
            return f"{kind} {POLICY} is being deleted"
        if found.get("spec") != spec:
            return f"{kind} {POLICY} is not as garboard writes it"
    return None


def revision_problem(
    policy: Mapping[str, Json] | None, binding: Mapping[str, Json] | None, revision: Mapping[str, Json]
) -> str | None:
    """Say why an agent must not act on a revision; None if the policy was in force when it was written."""
    if problem := policy_problem(policy, binding):
        return problem
    assert policy is not None, "or that is the problem"
    assert binding is not None, "or that is the problem"
    in_force_at = max(_changed_at(policy), _changed_at(binding)) + timedelta(seconds=TAKES_EFFECT_WITHIN_S)
    if _created_at(revision) < in_force_at:
        name = _metadata(revision).get("name")
        return f"{name} was written before the policy was in force, so anybody may have written it"
    if revision.get("immutable") is not True:
        return f"{_metadata(revision).get('name')} is not immutable"
    return None


def _changed_at(found: Mapping[str, Json]) -> datetime:
    """Return when an object got its specification; one that was changed since has nothing that says when."""
    return _created_at(found) if _metadata(found).get("generation", 1) == 1 else _LATEST


def _created_at(found: Mapping[str, Json]) -> datetime:
    try:
        return datetime.fromisoformat(str(_metadata(found).get("creationTimestamp")))
    except ValueError:
        return _EARLIEST


def _metadata(found: Mapping[str, Json]) -> Mapping[str, Json]:
    metadata = found.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


_EARLIEST = datetime.fromisoformat("0001-01-01T00:00:00+00:00")
_LATEST = datetime.fromisoformat("9000-01-01T00:00:00+00:00")
