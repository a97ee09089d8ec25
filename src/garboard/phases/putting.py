"""Objects as they were rendered, as what puts them into the cluster."""

from garboard.engine import Filling, PutObject
from garboard.manifests import ClusterObject


def put(each: ClusterObject, *, fillings: tuple[Filling, ...] = (), keeps_other_data: bool = False) -> PutObject:
    """Return what puts an object into the cluster; the content of a Secret is shown by its digest."""
    return PutObject(
        api_version=each.api_version,
        kind=each.kind,
        name=each.name,
        namespace=each.namespace,
        content=each.content,
        is_secret=each.kind == "Secret",
        fillings=fillings,
        keeps_other_data=keeps_other_data,
    )
