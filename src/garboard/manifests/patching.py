"""The user's patches, as far as rendering is concerned."""

from typing import Protocol

from garboard.documents import Json


class Patcher(Protocol):
    """Applies the patches of one target, as kubeadm does; `document` may be changed in place."""

    def __call__(self, target: str, document: Json, /) -> Json: ...


def unpatched(_target: str, document: Json, /) -> Json:
    """The patcher of who has no patches."""
    return document
