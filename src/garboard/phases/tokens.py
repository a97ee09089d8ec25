"""Bootstrap tokens of a running cluster: planned, read back from their Secrets, and shown as kubeadm shows them."""

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from garboard.documents import Json
from garboard.engine import DeleteObject, ExpiryPlaceholder, Plan, PutObject, Step
from garboard.errors import BadUsage
from garboard.manifests.bootstrap_token import token_secret
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.model.lifecycle import BootstrapToken
from garboard.model.names import is_bootstrap_token

SECRET_TYPE = "bootstrap.kubernetes.io/token"
SELECTOR = f"type={SECRET_TYPE}"
_PREFIX, _USAGE = "bootstrap-token-", "usage-bootstrap-"
_NONE = "<none>"
_END = "<the end of the token>"
_HEADINGS = ("TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS")
_WIDTHS = (23, 9, 7, 22, 56, 0)
_DAY_S, _YEAR_S = 24 * 3600, 365 * 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredToken:
    """A token as its Secret has it."""

    token: str = field(repr=False)
    expires: str = ""  # RFC 3339; empty for one that never does
    usages: tuple[str, ...] = ()
    description: str = ""
    groups: tuple[str, ...] = ()

    def document(self) -> dict[str, Json]:
        """Return what `token list` prints of it, as JSON."""
        fields: dict[str, Json] = {
            "kind": "BootstrapToken",
            "apiVersion": "output.kubeadm.k8s.io/v1alpha3",
            "token": self.token,
            "description": self.description,
            "expires": self.expires,
            "usages": [*self.usages],
            "groups": [*self.groups],
        }
        return {key: value for key, value in fields.items() if value}


def secret_name(token_id: str) -> str:
    return f"{_PREFIX}{token_id}"


def token_id_in(name: str) -> str:
    """Return the id of the token whose Secret has this name."""
    return name.removeprefix(_PREFIX)


def planned_token(token: BootstrapToken) -> PutObject:
    """Return what puts the Secret of a token into the cluster; its time begins then, and not with the plan."""
    content = token_secret(token, datetime.fromtimestamp(0, UTC)).content
    action, data = PutObject.of(content), content["data"]
    assert isinstance(data, dict)
    if token.expires or token.ttl is None or "expiration" not in data:
        return action
    ending = ExpiryPlaceholder(_END, token.ttl.as_timedelta)
    return replace(action, content={**content, "data": {**data, "expiration": _END}}, endings=(ending,))


def plan_tokens(tokens: Iterable[BootstrapToken]) -> Plan:
    """Return the plan that makes some tokens in a cluster."""
    return Plan(tuple(Step(planned_token(each), "it was asked for", phase="token/create") for each in tokens))


def plan_deletion(token_ids: Iterable[str]) -> Plan:
    """Return the plan that deletes some tokens from a cluster."""
    return Plan(tuple(Step(_deletion(each), "it was asked for", phase="token/delete") for each in token_ids))


def _deletion(token_id: str) -> DeleteObject:
    return DeleteObject(api_version="v1", kind="Secret", namespace=KUBE_SYSTEM, name=secret_name(token_id))


def token_id_of(text: str) -> str:
    """Return the id of a token that is given as a whole, or by its id alone; the secret half is never shown."""
    if is_bootstrap_token(text):
        return text.partition(".")[0]
    if re.fullmatch("[a-z0-9]{6}", text):
        return text
    raise BadUsage(
        "what was given is neither a token nor the id of one",
        hint="a token is six letters or digits, a dot, and sixteen more; its id are the six",
    )


def stored_tokens(secrets: Iterable[dict[str, Json]]) -> tuple[tuple[StoredToken, ...], tuple[str, ...]]:
    """Return the tokens among some Secrets, and what there is to say about those that hold none."""
    tokens: list[StoredToken] = []
    warnings: list[str] = []
    for secret in secrets:
        found = _token_in(secret)
        if isinstance(found, StoredToken):
            tokens.append(found)
        else:
            warnings.append(found)
    return tuple(tokens), tuple(warnings)


def _token_in(secret: dict[str, Json]) -> StoredToken | str:
    metadata = secret.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
    data = _decoded(secret.get("data"))
    token = f"{data.get('token-id', '')}.{data.get('token-secret', '')}"
    if not is_bootstrap_token(token) or name != secret_name(data["token-id"]):
        return f"Secret {KUBE_SYSTEM}/{name} is no bootstrap token, although its type says so"
    return StoredToken(
        token=token,
        expires=data.get("expiration", ""),
        # Sorted, for the keys of a Secret have no order.
        usages=tuple(
            sorted(key.removeprefix(_USAGE) for key in data if key.startswith(_USAGE) and data[key] == "true")
        ),
        description=data.get("description", ""),
        groups=tuple(filter(None, data.get("auth-extra-groups", "").split(","))),
    )


def _decoded(data: Json) -> dict[str, str]:
    values = data if isinstance(data, Mapping) else {}
    return {key: base64.b64decode(str(value)).decode("utf-8", "replace") for key, value in values.items()}


def tokens_as_text(tokens: Iterable[StoredToken], now: datetime) -> str:
    """Return the table of `kubeadm token list`, to the last space; nothing where there is no token.

    The headings are as wide as the cells of the first row; every other row has the widths of its own cells.
    """
    rows = [_cells(each, now) for each in tokens]
    if not rows:
        return ""
    widths = [max(map(len, column)) for column in zip(_HEADINGS, rows[0], strict=True)]
    headings = [text.ljust(width) for text, width in zip(_HEADINGS[:-1], widths, strict=False)]
    lines = ([*headings, _HEADINGS[-1]], *rows)
    return "".join("   ".join(line) + "\n" for line in lines)


def _cells(token: StoredToken, now: datetime) -> tuple[str, ...]:
    expires = datetime.fromisoformat(token.expires).astimezone(UTC) if token.expires else None
    texts = (
        token.token,
        _short_duration((expires - now).total_seconds()) if expires else "<forever>",
        token.expires or "<never>",
        ",".join(token.usages) or _NONE,
        token.description or _NONE,
        ",".join(token.groups) or _NONE,
    )
    return tuple(text.ljust(width) for text, width in zip(texts, _WIDTHS, strict=True))


def _short_duration(seconds: float) -> str:
    """Return a length of time in its largest unit, cut off, as Kubernetes shows ages."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    for size, unit in ((_YEAR_S, "y"), (_DAY_S, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{max(whole, 0)}s"
