"""What Hive's admission refuses in a single object beyond its shape.

Patches are checked where they are compiled (`customize`), and what several objects have to agree about in `requests`.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Final

from garboard.fleet.documents.kinds import (
    ClusterDeployment,
    ClusterDeploymentCustomization,
    ClusterPool,
    DeploymentSpec,
    FleetObject,
    PlatformBlock,
    Provisioning,
    SecretObject,
)
from garboard.fleet.documents.problems import DocumentProblem, problem_at
from garboard.model.names import subdomain_problems
from garboard.patches import SourceText

MAX_NAME: Final = 63


def object_problems(value: FleetObject, source: SourceText) -> Iterator[DocumentProblem]:
    """Yield everything that is wrong with an object by itself."""
    name = value.metadata.name
    for problem in subdomain_problems(name)[:1]:
        yield problem_at(source, ("metadata", "name"), f"{name!r}: {problem}")
    match value:
        case ClusterDeployment():
            yield from _length_problems(source, ("metadata", "name"), name)
            yield from _deployment_problems(value.spec, source)
        case ClusterPool():
            yield from _length_problems(source, ("metadata", "name"), name)
            yield from _platform_problems(value.spec.platform, source)
            if not value.spec.image_set_ref.name:
                yield problem_at(source, ("spec", "imageSetRef", "name"), "the name of the ClusterImageSet is missing")
        case ClusterDeploymentCustomization():
            yield from _length_problems(source, ("metadata", "name"), name)
        case SecretObject():
            yield from _encoding_problems(value, source)
        case _:
            pass


def _length_problems(source: SourceText, at: tuple[str, ...], name: str) -> Iterator[DocumentProblem]:
    if len(name) > MAX_NAME:
        yield problem_at(source, at, f"{len(name)} characters; Hive takes at most {MAX_NAME}", "choose a shorter name")


def _deployment_problems(spec: DeploymentSpec, source: SourceText) -> Iterator[DocumentProblem]:
    yield from _length_problems(source, ("spec", "clusterName"), spec.cluster_name)
    yield from _platform_problems(spec.platform, source)
    pool = spec.cluster_pool_ref
    if spec.installed:
        if spec.cluster_metadata is None:
            yield problem_at(source, ("spec", "installed"), "an installed cluster needs clusterMetadata")
    elif (spec.provisioning is None) == (spec.cluster_install_ref is None):
        message = "one of provisioning and clusterInstallRef is needed, and only one"
        yield problem_at(source, ("spec",), message)
    if pool is not None and pool.claim_name and not spec.installed:
        yield problem_at(source, ("spec", "clusterPoolRef", "claimName"), "a new cluster cannot be claimed yet")
    if spec.provisioning is not None:
        yield from _provisioning_problems(spec.provisioning, spec, source)


def _provisioning_problems(
    provisioning: Provisioning, spec: DeploymentSpec, source: SourceText
) -> Iterator[DocumentProblem]:
    at = ("spec", "provisioning")
    reference = provisioning.install_config_secret_ref
    has_pool_entry = spec.cluster_pool_ref is not None and reference is None
    if not spec.installed and not has_pool_entry and (reference is None or not reference.name):
        hint = "write installConfigSecretRef: {name: SECRET}, a Secret with the key install-config.yaml"
        yield problem_at(source, at, "installConfigSecretRef.name is missing", hint)
    if provisioning.manifests_config_map_ref is not None and provisioning.manifests_secret_ref is not None:
        message = "manifestsConfigMapRef and manifestsSecretRef exclude each other"
        yield problem_at(source, (*at, "manifestsSecretRef"), message)


def _platform_problems(platform: PlatformBlock, source: SourceText) -> Iterator[DocumentProblem]:
    if len(platform) != 1:
        found = ", ".join(platform) or "none"
        hint = "write one block, such as `none: {}`"
        yield problem_at(source, ("spec", "platform"), f"one platform is needed; found {found}", hint)


def _encoding_problems(secret: SecretObject, source: SourceText) -> Iterator[DocumentProblem]:
    for key, text in secret.data.items():
        try:
            base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            hint = "encode the value with base64, or write it as it is below stringData"
            yield problem_at(source, ("data", key), "not base64", hint)
