"""What an API server is asked of others: whose a token is, and what that user may do."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from garboard.documents import Json
from garboard.kube.resources import ObjectRef
from garboard.values import dataclass

# Both are answered and not kept, so that they have no names.
TOKEN_REVIEW = ObjectRef("TokenReview", "", "")
ACCESS_REVIEW = ObjectRef("SubjectAccessReview", "", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedUser:
    """Whose a token is, by an API server; `error` says why it could not be told."""

    is_authenticated: bool = False
    name: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    audiences: tuple[str, ...] = ()
    error: str = ""


def token_review(token: str, audiences: Sequence[str] = ()) -> dict[str, Json]:
    """Return the question whose a token is; without audiences it has to be one for the API server itself."""
    spec: dict[str, Json] = {"token": token, **({"audiences": [*audiences]} if audiences else {})}
    return {"apiVersion": "authentication.k8s.io/v1", "kind": TOKEN_REVIEW.kind, "spec": spec}


def read_token_review(answer: Mapping[str, Json]) -> ReviewedUser:
    fields = _mapping(answer.get("status"))
    user = _mapping(fields.get("user"))
    return ReviewedUser(
        is_authenticated=fields.get("authenticated") is True,
        name=str(user.get("username") or ""),
        uid=str(user.get("uid") or ""),
        groups=_texts(user.get("groups")),
        extra={key: _texts(values) for key, values in _mapping(user.get("extra")).items()},
        audiences=_texts(fields.get("audiences")),
        error=str(fields.get("error") or ""),
    )


def access_review(user: ReviewedUser, verb: str, resource: str, group: str, namespace: str = "") -> dict[str, Json]:
    """Return the question whether a user may do something to objects, of all namespaces if none is given."""
    spec: dict[str, Json] = {
        "user": user.name,
        "uid": user.uid,
        "groups": [*user.groups],
        "extra": {key: [*values] for key, values in user.extra.items()},
        "resourceAttributes": {"verb": verb, "group": group, "resource": resource, "namespace": namespace},
    }
    return {"apiVersion": "authorization.k8s.io/v1", "kind": ACCESS_REVIEW.kind, "spec": spec}


def read_access_review(answer: Mapping[str, Json]) -> bool:
    """Say whether the user may; what an authorizer does not know counts as no."""
    status = _mapping(answer.get("status"))
    return status.get("allowed") is True and status.get("denied") is not True


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()
