"""What a document is once read: a JSON tree, the paths into it, and when two trees are the same."""

from typing import TypeAlias

from garboard.values import Json

__all__ = ["MAX_DEPTH", "DocumentPath", "Json", "equal"]

# From the root: member names and list indices.
DocumentPath: TypeAlias = tuple[str | int, ...]

# Go stops at 10,000 levels. Ours is lower, so that plain recursion over a tree stays within Python's limit everywhere;
# the deepest CustomResourceDefinitions known stay below a hundred.
MAX_DEPTH = 256
DEPTH_HINT = "no Kubernetes document nests that deep"


def equal(one: Json, other: Json) -> bool:
    """Say whether two trees are the same in kind and value: `True` is not `1`, and the integer `1` is not `1.0`.

    Kubernetes tells integers from floats, so a comparison that decides anything must too.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(key in other and equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other
