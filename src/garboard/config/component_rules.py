"""What the components would refuse of a configuration: arguments, environments and volumes, kubelet configurations.

kubeadm itself passes all of these on unread. They are judged by the rules that patches are judged by, one by one and as
far as they are decoded; what only the rendered result shows is left to who renders it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from garboard.config.component_configs import KUBELET_KIND
from garboard.config.decoding import decode, path_text
from garboard.config.reading import ReadOptions, type_of
from garboard.config.sources import ConfigDocument
from garboard.documents import DocumentPath, Json
from garboard.model import KubernetesVersion
from garboard.model.minors import MinorFacts
from garboard.rules import DocumentField, ResultFinding, check_kubelet, check_pod, flag_rules
from garboard.rules.command_line import Word
from garboard.schema import load_schema

_SECTIONS: dict[DocumentPath, str] = {
    ("apiServer",): "kube-apiserver",
    ("controllerManager",): "kube-controller-manager",
    ("scheduler",): "kube-scheduler",
    ("etcd", "local"): "etcd",
}
# What stands in a Pod, and where it comes from.
_ORIGINS: dict[DocumentPath, str] = {("spec", "containers", 0, "env"): "extraEnvs", ("spec", "volumes"): "extraVolumes"}
_MOUNTS: DocumentPath = ("spec", "containers", 0, "volumeMounts")


@dataclass(frozen=True, slots=True)
class ConfigFinding:
    """What a component refuses, or warns about, at one field of a document."""

    document: ConfigDocument
    code: str
    path: DocumentPath
    message: str
    hint: str | None = None
    is_warning: bool = False

    @classmethod
    def of_result(
        cls, document: ConfigDocument, found: ResultFinding, path: DocumentPath, *, is_warning: bool = False
    ) -> Self:
        """Return what was found in a result, at the field of a document that decides it."""
        names = [step for step in found.path if isinstance(step, str)]
        message = found.message.removeprefix(f"{names[-1]}: ") if names else found.message  # the path has it
        return cls(document, found.code, path, message, found.hint, is_warning)

    def __str__(self) -> str:
        line = self.document.source.where(self.path)
        hint = f"; {self.hint}" if self.hint else ""
        return f"[{self.code}] {path_text(self.path)}: {self.message}{line}{hint}"


def component_findings(
    document: ConfigDocument, facts: MinorFacts, release: KubernetesVersion, options: ReadOptions
) -> list[ConfigFinding]:
    """Return what is wrong with what one document hands to components of a release."""
    type_ = type_of(document.gvk, facts, options)
    if type_ is None:
        return []
    tree = DocumentField(decode(document.tree, type_).tree)
    judged = _Judged(document, release)
    if document.gvk.kind == KUBELET_KIND:
        return [ConfigFinding.of_result(document, each, each.path) for each in check_kubelet(tree.value, release)]
    found: list[ConfigFinding] = []
    if document.gvk.kind == "ClusterConfiguration":
        for section, program in _SECTIONS.items():
            component = tree.at(*map(str, section))
            found += judged.flags(component["extraArgs"], program)
            found += judged.pod(component, program)
    return [*found, *judged.flags(tree["nodeRegistration"]["kubeletExtraArgs"], "kubelet")]


@dataclass(frozen=True, slots=True)
class _Judged:
    document: ConfigDocument
    release: KubernetesVersion

    def flags(self, arguments: DocumentField, program: str) -> Iterator[ConfigFinding]:
        """Yield what is wrong with single arguments; those of v1beta3 are a map."""
        rules = flag_rules(load_schema(self.release), program)
        for word in _words(arguments):
            for each in rules.problems(word) if rules and word.name else ():
                yield ConfigFinding(self.document, each.code, word.at, each.message, each.hint, each.is_warning)

    def pod(self, component: DocumentField, program: str) -> Iterator[ConfigFinding]:
        """Yield what the kubelet refuses in the environment and the volumes of a component."""
        for each in check_pod(_pod_of(component, program), self.release):
            path = _path_in_section(each.path)
            if path is not None:
                yield ConfigFinding.of_result(self.document, each, (*component.path, *path))


def _words(arguments: DocumentField) -> Iterator[Word]:
    for each in arguments.elements():
        is_part = each["mergeMethod"].text != ""  # of a value that only the rendered command has
        yield Word(each["name"].text, None if is_part else each["value"].text, each.path)
    for name, value in arguments.members():
        yield Word(name, value.text, value.path)


def _pod_of(component: DocumentField, program: str) -> Json:
    """Return a Pod with what the section of a component adds to it, at the same places in its lists."""
    volumes = component["extraVolumes"].elements()
    mounts: list[Json] = [{"name": each["name"].value, "mountPath": each["mountPath"].value} for each in volumes]
    paths: list[Json] = [
        {"name": each["name"].value, "hostPath": {"path": each["hostPath"].value, "type": each["pathType"].value}}
        for each in volumes
    ]
    container: Json = {
        "name": program,
        "image": program,
        "env": component["extraEnvs"].value,
        "volumeMounts": mounts,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": program},
        "spec": {"containers": [container], "volumes": paths},
    }


def _path_in_section(path: DocumentPath) -> DocumentPath | None:
    """Return where in the section of a component a field of its Pod comes from; a mount comes with its volume."""
    if path[:4] == _MOUNTS:
        # The name is that of the volume, about which the volume itself is told.
        return ("extraVolumes", *path[4:]) if path[-1] != "name" else None
    for place, name in _ORIGINS.items():
        if path[: len(place)] == place:
            rest = path[len(place) :]
            if rest[1:2] == ("hostPath",):
                rest = (rest[0], "pathType" if rest[2:] == ("type",) else "hostPath")
            return (name, *rest)
    return None
