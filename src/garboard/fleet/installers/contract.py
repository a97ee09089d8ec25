"""What an installer does for a provisioner: four verbs in a folder of its own, and the files between them.

1. The folder has `install-config.yaml` and nothing else that counts, beside the environment.
2. `create manifests` writes Kubernetes-style objects, one for each file, in sub-folders. They are patched after that.
3. `create ignition-configs` reads them as they are then, fails if one is invalid, and may remove them. It makes nothing
   outside of the folder. Afterwards there are `metadata.json`, with an infraID that no other attempt has, and
   `auth/kubeconfig`.
4. `create cluster` ends when the API can be used, or fails; all that it makes is found again by `metadata.json` alone.
5. `destroy cluster` needs `metadata.json` alone in a new folder, may be repeated, and succeeds when nothing is left.
6. A verb succeeds with status 0. An attempt that was cut short is destroyed, and another one begun in a new folder;
   only an installer that `resumes` goes on within its attempt, from `create cluster` on.
"""

import json
import re
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeAlias

from garboard.errors import BadDocument, GarboardError
from garboard.values import Json, dataclass

Verb: TypeAlias = Literal["create manifests", "create ignition-configs", "create cluster", "destroy cluster"]
CREATE_MANIFESTS: Verb = "create manifests"
CREATE_IGNITION_CONFIGS: Verb = "create ignition-configs"
CREATE_CLUSTER: Verb = "create cluster"
DESTROY_CLUSTER: Verb = "destroy cluster"
INSTALL_CONFIG, METADATA, KUBECONFIG = "install-config.yaml", "metadata.json", "auth/kubeconfig"
# What is part of the names of machines, tags and folders everywhere.
_INFRA_ID = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9._-]{0,126}[a-zA-Z0-9])?")


class Installer(Protocol):
    """Carries out the verbs in a folder; each ends when it has succeeded, and raises otherwise."""

    @property
    def name(self) -> str:
        """What a record calls it: the name of a program, or `garboard`."""
        ...

    @property
    def resumes(self) -> bool:
        """Whether `create cluster` may be repeated within an attempt, after a failure and after a kill."""
        ...

    def run(self, verb: Verb, folder: Path) -> None: ...


class InstallerFailed(GarboardError):
    """A verb of an installer has failed; `status` is that of its program, if it is one and has ended."""

    exit_code: ClassVar[int] = 1
    default_class = "installer-failed"

    def __init__(self, verb: Verb, message: str, *, hint: str | None = None, status: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.verb, self.status = verb, status


class BadMetadata(BadDocument):
    """The metadata.json of an installer is not what the contract asks for."""

    default_class = "bad-metadata"


@dataclass(frozen=True, slots=True)
class InstallMetadata:
    """What metadata.json says of a cluster that is about to be made."""

    infra_id: str
    cluster_id: str = ""
    cluster_name: str = ""
    document: Json = None


def read_metadata(data: bytes | None, *, source: str) -> InstallMetadata:
    """Read metadata.json; without an infraID that can be part of a name it is refused."""
    hint = "nothing has been made yet; look at the log of create ignition-configs"
    if data is None:
        raise BadMetadata(f"{source} does not exist after create ignition-configs", hint=hint)
    try:
        document: Json = json.loads(data)
    except ValueError as error:
        raise BadMetadata(f"{source} is no JSON: {error}", hint=hint) from None
    infra_id = document.get("infraID") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(infra_id, str) or not infra_id:
        raise BadMetadata(f"{source} has no infraID", hint=hint)
    if not _INFRA_ID.fullmatch(infra_id):
        raise BadMetadata(f"{source}: the infraID {infra_id[:80]!r} cannot be part of a name", hint=hint)
    return InstallMetadata(infra_id, _text(document, "clusterID"), _text(document, "clusterName"), document)


def _text(document: dict[str, Json], name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""
