"""v1beta3 documents turned into v1beta4 ones: maps of arguments become lists, two timeouts move.

kubeadm 1.36 still reads v1beta3 like this; 1.37 does not, and `garboard config migrate` converts such files.
"""

from collections.abc import Callable, Mapping

from garboard.documents import Json

Tree = dict[str, Json]


def cluster_to_v1beta4(document: Tree) -> Tree:
    """Convert a decoded ClusterConfiguration; its timeout belongs to InitConfiguration now and is left out."""
    api_server = _changed(_object(document, "apiServer"), "extraArgs", _argument_list)
    api_server.pop("timeoutForControlPlane", None)
    converted = {**document, "apiServer": api_server}
    for component in ("controllerManager", "scheduler"):
        converted[component] = _changed(_object(document, component), "extraArgs", _argument_list)
    etcd = _object(document, "etcd")
    if "local" in etcd:
        etcd = {**etcd, "local": _changed(_object(etcd, "local"), "extraArgs", _argument_list)}
    return {**converted, "etcd": etcd}


def control_plane_timeout(document: Mapping[str, Json]) -> str | None:
    """Return the time that a ClusterConfiguration gives the control plane to come up, if it says so."""
    timeout = _object(document, "apiServer").get("timeoutForControlPlane")
    return timeout if isinstance(timeout, str) else None


def node_to_v1beta4(document: Tree) -> Tree:
    """Convert a decoded InitConfiguration or JoinConfiguration."""
    registration = _changed(_object(document, "nodeRegistration"), "kubeletExtraArgs", _argument_list)
    converted = {**document, "nodeRegistration": registration}
    discovery = dict(_object(document, "discovery"))
    timeout = discovery.pop("timeout", None)
    if "discovery" in document:
        converted["discovery"] = discovery
    if timeout is not None:
        converted["timeouts"] = {"discovery": timeout}
    return converted


def _object(document: Mapping[str, Json], name: str) -> Tree:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _changed(document: Tree, name: str, change: Callable[[Json], Json]) -> Tree:
    return {**document, name: change(document[name])} if name in document else dict(document)


def _argument_list(arguments: Json) -> Json:
    if not isinstance(arguments, dict):
        return arguments
    return [{"name": name, "value": arguments[name]} for name in sorted(arguments)]
