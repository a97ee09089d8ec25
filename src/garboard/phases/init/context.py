"""What the phases of init plan from: the configuration, and what was found on the machine before anything changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, Self

from garboard.config import ComponentConfigs
from garboard.documents import Json
from garboard.engine import Note, Step, WriteFile, paths_written
from garboard.manifests import NodeHost, RenderedFile
from garboard.model.go_paths import join_path
from garboard.model.lifecycle import InitConfiguration
from garboard.phases.patching import NodePatches
from garboard.phases.preflight import Exam
from garboard.pki import PkiInputs, certificate
from garboard.pki.files import Folder
from garboard.pki.inputs import inputs_of
from garboard.pki.observed import ObservedPairs, ObservedServiceAccount
from garboard.values import dataclass

if TYPE_CHECKING:  # a worker finds none of them, and need not load what reads certificates
    from garboard.pki.credentials import ObservedKubeconfig
    from garboard.pki.external import AuthorityState

ADMIN_CONF = "/etc/kubernetes/admin.conf"


class MachineView(Protocol):
    """The machine as planning sees it: it reads, and nothing more."""

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is no file."""
        ...

    def has_folder(self, path: str) -> bool: ...

    def owner(self, path: str) -> tuple[int, int, int] | None:
        """Return user, group and mode of a file, or None where there is no file."""
        ...

    def folder(self, path: str) -> Folder: ...

    def has_service_manager(self) -> bool: ...

    def is_active(self, service: str) -> bool: ...


class ClusterView(Protocol):
    """A cluster that runs already, as planning sees it."""

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
class InitContext:
    """The first control-plane node, before and while its plan is made."""

    config: InitConfiguration
    components: ComponentConfigs
    host: NodeHost
    machine: MachineView
    found: ObservedCredentials
    patches: NodePatches
    kubeconfig_dir: str
    now: datetime
    uploads_certs: bool = False
    certificate_key: str = field(default="", repr=False)  # what shared certificates are sealed with
    shows_join_command: bool = False
    prints_token: bool = True
    prints_certificate_key: bool = True
    ignored_checks: frozenset[str] = frozenset()
    exam: Exam | None = None  # None if nobody looks whether the machine is ready
    is_only_shown: bool = False  # what stands in the way is told, and does not stop the plan from being made
    kubeconfig: str = ADMIN_CONF  # leads to the cluster that objects are put into
    cluster: ClusterView | None = None  # None if nobody shall be asked
    planned: frozenset[str] = field(default_factory=frozenset)  # files that earlier steps of the plan write

    @property
    def node_name(self) -> str:
        return self.config.node_registration.name

    @property
    def inputs(self) -> PkiInputs:
        return inputs_of(self.config)

    def certificate_path(self, name: str) -> str:
        return join_path(self.config.cluster.certificates_dir, name)

    def kubeconfig_path(self, name: str) -> str:
        return join_path(self.kubeconfig_dir, name)

    @property
    def running_cluster(self) -> ClusterView | None:
        """The cluster as it is; None before the steps of this very plan have made it."""
        return None if self.kubeconfig in self.planned else self.cluster

    def is_ca_planned(self, name: str) -> bool:
        """Whether earlier steps of the plan make this certificate authority."""
        return self.certificate_path(f"{certificate(name).base_name}.crt") in self.planned

    def after(self, steps: tuple[Step, ...]) -> Self:
        return replace(self, planned=self.planned | paths_written(steps))

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
