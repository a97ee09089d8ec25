"""Differences that come from where a component was rendered, not from anybody's wish.

The same configuration gives other manifests with other proxy variables, timeouts and folders of certificates, and a
member of etcd keeps in its flags how it once joined (docs/compatibility.md).
"""

from garboard.documents import Json
from garboard.drift.leaves import FlagStep, LeafPath
from garboard.manifests.node import EXTRA_CA_DIRECTORIES
from garboard.patches.fieldpath import Pick

_RELEASED_APART = ("corednsdeployment", "etcd")
_JOINING_FLAGS = ("--initial-cluster", "--initial-cluster-state")
_CA_VOLUMES = {path.strip("/").replace("/", "-") for path in EXTRA_CA_DIRECTORIES}
STARTUP_THRESHOLD = ("startupProbe", "failureThreshold")
PROXY = "a proxy variable of the shell that rendered it"
TIMEOUT = "timeouts.controlPlaneComponentHealthCheck when it was rendered"
AUTHORITIES = "the folders of certificates that the host had when it was rendered"
JOINED = "how the member joined; a member that runs ignores it"
REGISTERED = "kubeletExtraArgs or taints with which the node was registered; no cluster stores them"
RELEASE = "the release that rendered it: patch releases of one minor have other images"
RESOLVER = "whether systemd-resolved was active when it was rendered"


def surrounding_of(component: str, path: LeafPath) -> str:
    """Return which surroundings decide a field of a component; nothing if none do."""
    last = path[-1] if path else ""
    if component == "kubeletconfiguration":
        return RESOLVER if path == ("resolvConf",) else ""
    if component == "etcd" and isinstance(last, FlagStep):
        return JOINED if last.name in _JOINING_FLAGS else ""
    if path[-2:] == STARTUP_THRESHOLD:
        return TIMEOUT
    picks = {each.key: each.value for each in path if isinstance(each, Pick)}
    if "env" in path:
        return PROXY if picks.get("name", "").lower().endswith("_proxy") else ""
    if "volumeMounts" in path:
        return AUTHORITIES if picks.get("mountPath") in EXTRA_CA_DIRECTORIES else ""
    if "volumes" in path:
        return AUTHORITIES if picks.get("name") in _CA_VOLUMES else ""
    return ""


def is_other_release(component: str, path: LeafPath, found: Json, declared: Json) -> bool:
    """Say whether an image is another release of the same: kubeadm's patch releases come with others of these."""
    if component not in _RELEASED_APART or path[-1:] != ("image",):
        return False
    ours, _, tag = str(declared).rpartition(":")
    theirs, _, other = str(found).rpartition(":")
    return ours == theirs and tag != other and bool(tag and other)
