"""What phases plan from: the configuration of a node, and what was found on the machine before anything changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, Self

from garboard.config import ComponentConfigs
from garboard.documents import Json
from garboard.engine import Note, PutObject, Step, WriteFile, paths_written
from garboard.manifests import NodeHost, RenderedFile
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.model.cluster import ClusterConfiguration
from garboard.model.go import join_path
from garboard.model.node import ApiEndpoint, NodeRegistration, Timeouts
from garboard.model.paths import ADMIN_CONF, KUBERNETES_DIR
from garboard.phases.patching import NodePatches
from garboard.phases.preflight import MachineInspector
from garboard.pki import PkiInputs, certificate
from garboard.pki.files import Folder, ObservedPairs, ObservedServiceAccount
from garboard.pki.inputs import node_inputs
from garboard.values import dataclass

if TYPE_CHECKING:  # a worker has no such credentials, and need not load what reads certificates
    from garboard.pki.credentials import ObservedKubeconfig
    from garboard.pki.decide import AuthorityState


def _stored_maps(steps: Sequence[Step]) -> dict[str, dict[str, str]]:
    """Return what ConfigMaps of kube-system hold once steps have been done, by their names."""
    found: dict[str, dict[str, str]] = {}
    for action in (each.action for each in steps):
        if isinstance(action, PutObject) and (action.kind, action.namespace) == ("ConfigMap", KUBE_SYSTEM):
            data = action.content.get("data") if isinstance(action.content, dict) else None
            given = data if isinstance(data, dict) else {}
            found[action.name] = {key: text for key, text in given.items() if isinstance(text, str)}
    return found


class MachineView(Protocol):
    """The machine as planning sees it: it reads, and nothing more."""

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is no file."""
        ...

    def has_folder(self, path: str) -> bool: ...

    def entries(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, sorted; none where there is no folder."""
        ...

    def has_files(self, path: str) -> bool:
        """Say whether anything but folders is below a folder; what cannot be looked into is taken to hold something."""
        ...

    def resolve(self, path: str) -> str:
        """Return where a path leads, as a path without links, `.` and `..`."""
        ...

    def mount_point(self, path: str) -> str:
        """Return where that is mounted in which a folder without links is; empty if that cannot be told."""
        ...

    def owner(self, path: str) -> tuple[int, int, int] | None:
        """Return user, group and mode of a file, or None where there is no file."""
        ...

    def folder(self, path: str) -> Folder: ...

    def has_service_manager(self) -> bool: ...

    def is_active(self, service: str) -> bool: ...


class ClusterView(Protocol):
    """The objects of a cluster that runs already, as planning sees them."""

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None:
        """Return an object, or None where there is none."""
        ...

    def labelled(self, kind: str, namespace: str, selector: str) -> Sequence[dict[str, Json]]:
        """Return the objects of a namespace that a label selector selects."""
        ...


@dataclass(frozen=True, slots=True)
class ObservedCredentials:
    """Certificates, keys and kubeconfigs as found."""

    pairs: ObservedPairs = field(default_factory=dict)
    service_account: ObservedServiceAccount = field(default_factory=ObservedServiceAccount)
    kubeconfigs: "Mapping[str, ObservedKubeconfig | None]" = field(default_factory=dict)
    external: "tuple[AuthorityState, ...]" = ()

    @property
    def is_external_ca(self) -> bool:
        """Whether the cluster's CA is here without its key, and then complete."""
        return any(each.name == "ca" for each in self.external)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """One node while its plan is made. Every workflow extends it by what only its own phases need."""

    node_registration: NodeRegistration
    machine: MachineView
    host: NodeHost
    now: datetime
    config_kind: str = "InitConfiguration"  # the document that describes the node
    cluster: ClusterConfiguration = field(default_factory=ClusterConfiguration)  # the defaults where none is known
    local_api_endpoint: ApiEndpoint = field(default_factory=ApiEndpoint)
    timeouts: Timeouts = field(default_factory=Timeouts)
    components: ComponentConfigs = field(default_factory=ComponentConfigs)
    credentials: ObservedCredentials = field(default_factory=ObservedCredentials)
    patches: NodePatches = field(default_factory=NodePatches)
    kubeconfig_dir: str = KUBERNETES_DIR
    kubeconfig: str = ADMIN_CONF  # leads to the cluster that objects are put into
    objects: ClusterView | None = None  # None if no API server shall be asked
    inspector: MachineInspector | None = None  # None if the machine is not checked
    ignored_checks: frozenset[str] = frozenset()
    # What earlier steps of the plan make: files, and what ConfigMaps of kube-system hold, by name.
    planned: frozenset[str] = field(default_factory=frozenset)
    stored_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def node_name(self) -> str:
        return self.node_registration.name

    @property
    def inputs(self) -> PkiInputs:
        return node_inputs(self.cluster, self.node_name, self.local_api_endpoint)

    def certificate_path(self, name: str) -> str:
        return join_path(self.cluster.certificates_dir, name)

    def shared_path(self, name: str) -> str:
        """Return where a file that control planes share is; those of an external etcd have whole paths for names."""
        return name if name.startswith("/") else self.certificate_path(name)

    def kubeconfig_path(self, name: str) -> str:
        return join_path(self.kubeconfig_dir, name)

    @property
    def running_cluster(self) -> ClusterView | None:
        """The cluster as it is; None before the steps of this very plan have made it."""
        return None if self.kubeconfig in self.planned else self.objects

    def is_ca_planned(self, name: str) -> bool:
        """Whether earlier steps of the plan make this certificate authority."""
        return self.certificate_path(f"{certificate(name).base_name}.crt") in self.planned

    def after(self, steps: tuple[Step, ...]) -> Self:
        """Return the context as it will be once `steps` have been done."""
        planned, stored = self.planned | paths_written(steps), {**self.stored_maps, **_stored_maps(steps)}
        return replace(self, planned=planned, stored_maps=stored)

    def writes(self, files: Iterator[RenderedFile]) -> Iterator[Step | Note]:
        """Plan to write the files that are not yet as they should be."""
        for file in files:
            found = self.machine.read(file.path)
            if found == file.content:
                yield Note(f"{file.path} is as it should be")
                continue
            cause = "there is no such file" if found is None else "its content differs"
            action = WriteFile(path=file.path, content=file.content, mode=file.mode, folder_mode=file.directory_mode)
            yield Step(action, cause)
