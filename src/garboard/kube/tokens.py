"""TokenReview: asking the API server whose token this is."""

from collections.abc import Callable

from garboard.documents import Json
from garboard.kube.access import Access
from garboard.kube.client import KubeClient
from garboard.tunnel.server.tokens import TokenReview

_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"


class ApiTokenReviewer:
    """Reviews tokens at an API server; every review reads anew how to get there, so credentials may change."""

    def __init__(self, access: Callable[[], Access]) -> None:
        self._access = access

    def review(self, token: str, audience: str) -> TokenReview:
        asked: Json = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        }
        with KubeClient(self._access()) as client:
            return read_review(client.ask("POST", _PATH, "review a token", asked))


def read_review(answer: dict[str, Json]) -> TokenReview:
    status = answer.get("status")
    fields = status if isinstance(status, dict) else {}
    user, audiences = fields.get("user"), fields.get("audiences")
    return TokenReview(
        is_authenticated=fields.get("authenticated") is True,
        username=str(user.get("username") or "") if isinstance(user, dict) else "",
        audiences=tuple(str(each) for each in audiences) if isinstance(audiences, list) else (),
        error=str(fields.get("error") or ""),
    )
