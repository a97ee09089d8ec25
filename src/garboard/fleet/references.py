"""The references between documents: followed within a namespace, and what is wrong with them collected."""

import base64
from collections.abc import Sequence
from typing import TypeVar

from garboard.documents import DocumentPath
from garboard.errors import BadDocument
from garboard.fleet.customize import Customization, CustomizationFailed, CustomizationFailure, compile_customization
from garboard.fleet.documents import (
    ClusterDeployment,
    ClusterDeploymentCustomization,
    ClusterPool,
    DocumentProblem,
    FleetDocuments,
    InvalidFleetDocuments,
    NameRef,
    ObjectKey,
    SecretObject,
    WrittenObject,
    problem_at,
)
from garboard.fleet.install_config import FILE_NAME, InstallConfig
from garboard.fleet.secret_values import known_secrets, secret_files, secret_texts
from garboard.patches import SourceText
from garboard.schema import suggest

ReferrerT = TypeVar("ReferrerT", ClusterDeployment, ClusterPool)


class References:
    """Follows the references of documents. What does not lead anywhere is noted, and all of it raised at the end."""

    def __init__(self, documents: FleetDocuments) -> None:
        self.documents = documents
        self.secrets = known_secrets(documents)
        self._problems: list[DocumentProblem] = []
        self._failures: list[CustomizationFailure] = []
        self._compiled: dict[ObjectKey, Customization | None] = {}
        self._configs: dict[ObjectKey, InstallConfig] = {}

    @property
    def wrong(self) -> int:
        """How many problems there are so far."""
        return len(self._problems) + len(self._failures)

    def refuse_problems(self) -> None:
        """Raise what was found to be wrong."""
        if self._problems:
            raise InvalidFleetDocuments(self._problems)
        if self._failures:
            raise CustomizationFailed(self._failures)

    def problem(
        self, referrer: WrittenObject[ReferrerT], at: DocumentPath, message: str, hint: str | None = None
    ) -> None:
        self._problems.append(problem_at(referrer.source, at, message, hint))

    def customization(
        self, referrer: WrittenObject[ReferrerT], name: str, at: DocumentPath, namespaces: Sequence[str] = ()
    ) -> Customization | None:
        """Return a customization of the namespace of what refers to it, else of `namespaces`; compiled once."""
        searched = (referrer.key.namespace, *namespaces)
        for namespace in searched:
            written = self.documents.customizations.get(ObjectKey(namespace, name))
            if written is not None:
                return self._compile(written)
        known = [key.name for key in self.documents.customizations if key.namespace in searched]
        self._missing(referrer, at, "ClusterDeploymentCustomization", name, known)
        return None

    def compile_all(self) -> None:
        """Look at every customization, also at those that nothing refers to."""
        for written in self.documents.customizations.values():
            self._compile(written)

    def _compile(self, written: WrittenObject[ClusterDeploymentCustomization]) -> Customization | None:
        if written.key not in self._compiled:
            self._compiled[written.key] = None
            try:
                self._compiled[written.key] = compile_customization(written)
            except CustomizationFailed as error:
                self._failures += error.failures
        return self._compiled[written.key]

    def _missing(
        self, referrer: WrittenObject[ReferrerT], at: DocumentPath, kind: str, name: str, known: Sequence[str]
    ) -> None:
        near = suggest(name, known)
        hint = f"did you mean {near!r}?" if near else "name the file that holds it with -f too"
        namespace = f"{referrer.key.namespace}/" if kind != "ClusterImageSet" else ""
        self.problem(referrer, at, f"{kind} {namespace}{name} is not in these files", hint)

    def secret(
        self, referrer: WrittenObject[ReferrerT], ref: NameRef | None, at: DocumentPath
    ) -> WrittenObject[SecretObject] | None:
        """Return the Secret that is referred to."""
        if ref is None or not ref.name:
            return None
        found = self.documents.secrets.get(ObjectKey(referrer.key.namespace, ref.name))
        if found is None:
            known = [each.name for each in self.documents.secrets if each.namespace == referrer.key.namespace]
            self._missing(referrer, (*at, "name"), "Secret", ref.name, known)
        return found

    def secret_text(self, referrer: WrittenObject[ReferrerT], ref: NameRef | None, at: DocumentPath, key: str) -> str:
        """Return the text of one key of the Secret that is referred to; nothing without a reference."""
        written = self.secret(referrer, ref, at)
        if written is None:
            return ""
        text = secret_texts(written.value).get(key)
        if text is None:
            hint = f"add {key} below stringData of the Secret"
            self.problem(referrer, (*at, "name"), f"Secret {written.key} has no key {key}", hint)
        return text or ""

    def install_config(
        self, referrer: WrittenObject[ReferrerT], ref: NameRef | None, at: DocumentPath
    ) -> InstallConfig | None:
        """Return the install config of the Secret that is referred to."""
        written, text = self.secret(referrer, ref, at), self.secret_text(referrer, ref, at, FILE_NAME)
        if written is None or not text:
            return None
        if written.key not in self._configs:
            try:
                self._configs[written.key] = InstallConfig.read(text, _source_of(written, FILE_NAME, text))
            except BadDocument as error:
                self._problems.append(DocumentProblem(written.where(), error.message, error.hint))
                return None
        return self._configs[written.key]

    def release_image(self, referrer: WrittenObject[ReferrerT], ref: NameRef | None, at: DocumentPath) -> str:
        """Return the release image of the ClusterImageSet that is referred to."""
        if ref is None or not ref.name:
            return ""
        found = self.documents.image_sets.get(ObjectKey("", ref.name))
        if found is None:
            known = [each.name for each in self.documents.image_sets]
            self._missing(referrer, (*at, "name"), "ClusterImageSet", ref.name, known)
        return found.value.spec.release_image if found is not None else ""

    def extra_manifests(
        self, referrer: WrittenObject[ReferrerT], maps: NameRef | None, secret: NameRef | None, at: DocumentPath
    ) -> dict[str, bytes]:
        """Return the files that are copied into manifests/, of a ConfigMap or of a Secret."""
        files: dict[str, bytes] = {}
        if maps is not None and maps.name:
            found = self.documents.config_maps.get(ObjectKey(referrer.key.namespace, maps.name))
            if found is None:
                known = [each.name for each in self.documents.config_maps]
                self._missing(referrer, (*at, "manifestsConfigMapRef", "name"), "ConfigMap", maps.name, known)
            else:
                files = {key: text.encode() for key, text in found.value.data.items()}
                files |= {key: base64.b64decode(text) for key, text in found.value.binary_data.items()}
        held = self.secret(referrer, secret, (*at, "manifestsSecretRef"))
        files |= secret_files(held.value) if held is not None else {}
        return {f"manifests/{key}": data for key, data in files.items()}


def _source_of(written: WrittenObject[SecretObject], key: str, text: str) -> SourceText:
    """Return where the text of a key stands: lines of the file, unless it is encoded."""
    if key in written.value.string_data:
        return written.source.block(("stringData", key), text)
    return SourceText(f"{written.source.name} ({key} of Secret {written.key})", text)
