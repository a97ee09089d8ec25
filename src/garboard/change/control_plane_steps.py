"""The steps on a control plane: certificates, kubeconfigs and static pods, and the waits behind them."""

from collections.abc import Iterator, Mapping, Sequence

from garboard.change.attribute import ALL_PODS
from garboard.change.authorities import WAITING, is_signed_elsewhere
from garboard.change.carrying import EditConflict
from garboard.change.differences import AttributeChange
from garboard.change.node_steps import NodeWork, assumed_manifest, cause_of, changed_file, with_live_flags
from garboard.change.plan import PlannedFile, PlannedStep
from garboard.change.rendering import RenderedPod
from garboard.change.snapshot import SnapshotNode
from garboard.documents import marshal_yaml
from garboard.engine import Issue
from garboard.model.go import join_path
from garboard.model.paths import KUBERNETES_DIR, manifest_path
from garboard.phases.issuing import CertificateRequest, KubeconfigRequest, SignedRequest
from garboard.phases.static_pods import ReplacedPod
from garboard.pki import KUBECONFIGS, CertSpec, KubeconfigSpec, PkiInputs, certificate
from garboard.values import dataclass

ETCD, API_SERVER = "etcd", "kube-apiserver"
TOGETHER = "the API server and its etcd are replaced together"
_NEXT = "the next node only follows then"
_KUBECONFIGS = ("admin", "super-admin", "controller-manager", "scheduler")
_READY = {
    API_SERVER: "kube-apiserver answers /readyz",
    "kube-controller-manager": "kube-controller-manager answers /healthz",
    "kube-scheduler": "kube-scheduler answers /readyz",
    ETCD: "the member of etcd is up and has caught up",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRenderings:
    """What one configuration makes of a control plane."""

    pods: Mapping[str, RenderedPod]
    certificates: Mapping[str, tuple[str, ...]]
    kubeconfigs: tuple[str, str]
    inputs: PkiInputs | None = None  # None for a node without an API server


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneChange:
    """A control plane as it is rendered before and after, and why; `quorum` says what is left of etcd meanwhile."""

    node: SnapshotNode
    before: NodeRenderings
    after: NodeRenderings
    changes: Sequence[AttributeChange]
    certificates_dir: str
    patch_cause: str
    quorum: str = ""
    is_first: bool = False
    overwrites: bool = False  # flags that somebody has typed in are no reason to stop, and go

    def work(self) -> NodeWork:
        """Return the steps in their order, and where they are in conflict with what the node has."""
        pods, conflicts = self._pod_steps()
        replaced = [name for step in pods for name in step.restarts]
        steps = [*self._certificate_steps(), *self._kubeconfig_steps()]
        if ETCD in replaced and self.is_first:
            cause = cause_of(ETCD, self.changes, self.patch_cause)
            steps.append(PlannedStep(phase="etcd-snapshot", title="take a snapshot of etcd", cause=cause))
        steps += pods
        if ETCD in replaced and API_SERVER not in replaced:
            steps.append(self._restarted_with_etcd())
            replaced.append(API_SERVER)
        if replaced:
            waits = ", ".join(_READY[name] for name in replaced)
            steps.append(PlannedStep(phase="gates", title=f"wait until {waits}", cause=_NEXT))
        return NodeWork(steps=tuple(steps), conflicts=tuple(conflicts))

    def _pod_steps(self) -> tuple[list[PlannedStep], list[tuple[str, EditConflict]]]:
        steps: list[PlannedStep] = []
        conflicts: list[tuple[str, EditConflict]] = []
        for name in ALL_PODS:
            old, new = self.before.pods.get(name), self.after.pods.get(name)
            if old is None or new is None or old.document == new.document:
                continue
            seen = (self.node.manifests or {}).get(name)
            assumed = assumed_manifest(old.document, self.node, name) if seen is None else None
            before = with_live_flags(old.document, seen, assumed, name) if self.overwrites else old.document
            file, found = changed_file(manifest_path(name), before, new.document, seen, assumed)
            conflicts += [(name, each) for each in found]
            if file is not None:
                steps.append(self._replacement(name, file))
        return steps, conflicts

    def _replacement(self, name: str, file: PlannedFile) -> PlannedStep:
        return PlannedStep(
            phase=f"static-pods/{name}",
            title=f"replace {name}" + (f" ({self.quorum})" if name == ETCD and self.quorum else ""),
            cause=cause_of(name, self.changes, self.patch_cause),
            files=(file,),
            restarts=(name,),
            replaced=ReplacedPod(component=name, former=file.former or b"", manifest=file.content or b""),
        )

    def _restarted_with_etcd(self) -> PlannedStep:
        """Return the step for an API server that stays as it is, and is replaced with its etcd."""
        seen = (self.node.manifests or {}).get(API_SERVER)
        there = assumed_manifest(self.after.pods[API_SERVER].document, self.node, API_SERVER)
        text = seen if seen is not None else marshal_yaml(there, source=manifest_path(API_SERVER))
        return PlannedStep(
            phase=f"static-pods/{API_SERVER}",
            title=f"restart {API_SERVER} with it",
            cause=TOGETHER,
            restarts=(API_SERVER,),
            replaced=ReplacedPod(component=API_SERVER, former=text.encode(), manifest=text.encode()),
        )

    def _certificate_steps(self) -> Iterator[PlannedStep]:
        for phase, names in self.after.certificates.items():
            old = self.before.certificates.get(phase, ())
            name = phase.removeprefix("certs/")
            file = certificate(name).base_name
            if names == old or self._has_names(f"{file}.crt", names, old):
                continue
            gone = [f"-{each}\n" for each in old if each not in names]
            added = [f"+{each}\n" for each in names if each not in old]
            path = join_path(self.certificates_dir, f"{file}.crt")
            spec = certificate(name)
            is_elsewhere = is_signed_elsewhere(self.node, self.certificates_dir, spec)
            verb = f"put the signed {path} in its place" if is_elsewhere else f"issue {path} again"
            changed = PlannedFile(path=path, diff="".join(gone + added), is_assumed=self.node.certificates is None)
            yield PlannedStep(
                phase=phase,
                title=f"{verb} and verify it by a handshake; nothing restarts",
                cause=cause_of(phase, self.changes, "the names that it needs changed"),
                files=(changed,),
                issues=(self._issue(spec, is_elsewhere=is_elsewhere),),
            )

    def _has_names(self, path: str, names: Sequence[str], former: Sequence[str]) -> bool:
        """Whether the certificate that is there has what is asked for, as on a node that is asked a second time."""
        found = next((each for each in self.node.certificates or () if each.path == path), None)
        wanted, gone = ({text.partition(":")[2] for text in texts} for texts in (names, set(former) - set(names)))
        return found is not None and wanted <= set(found.sans) and not gone & set(found.sans)

    def _issue(self, spec: CertSpec, *, is_elsewhere: bool) -> Issue:
        inputs = self.after.inputs
        assert inputs is not None, "a node with certificates has an API server"
        if is_elsewhere:
            return SignedRequest(spec=spec, inputs=inputs, folder=self.certificates_dir, waiting=WAITING).action()
        return CertificateRequest(spec=spec, inputs=inputs, folder=self.certificates_dir).action()

    def _kubeconfig_steps(self) -> Iterator[PlannedStep]:
        pairs = zip(self.before.kubeconfigs, self.after.kubeconfigs, strict=True)
        diff = "".join(f"-{old}\n+{new}\n" for old, new in pairs if old != new)
        if diff:
            seen = self.node.kubeconfigs
            specs = [each for each in KUBECONFIGS if each.name in _KUBECONFIGS]
            # Only the first node of a cluster has super-admin.conf.
            known = [each for each in specs if seen is None or f"{KUBERNETES_DIR}/{each.file_name}" in seen]
            yield PlannedStep(
                phase="kubeconfig/all",
                title="make the kubeconfigs again",
                cause=cause_of("kubeconfigs", self.changes, "what they name changed"),
                files=tuple(
                    PlannedFile(path=f"{KUBERNETES_DIR}/{each.file_name}", diff=diff, is_assumed=True) for each in known
                ),
                issues=tuple(self._kubeconfig(each) for each in known),
            )

    def _kubeconfig(self, spec: KubeconfigSpec) -> Issue:
        assert self.after.inputs is not None, "a node with kubeconfigs has an API server"
        return KubeconfigRequest(
            spec=spec, inputs=self.after.inputs, folder=self.certificates_dir, kubeconfig_dir=KUBERNETES_DIR
        ).action()
