"""What Secrets hold, and which texts must therefore never be shown."""

import base64
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import UnsetType

from garboard.documents import Json, read_json, read_yaml
from garboard.errors import BadDocument
from garboard.fleet.documents import CustomizationSpec, FleetDocuments, PatchEntity, SecretObject
from garboard.fleet.install_config import FILE_NAME

# Fields of install configs that hold a secret, by the end of their names in small letters.
_SECRET_FIELDS: Final = ("pullsecret", "password", "token", "secretaccesskey", "clientsecret", "certificatekey")


def secret_texts(secret: SecretObject) -> dict[str, str]:
    """Return the content of a Secret by key; stringData stands over data, as in a cluster."""
    return {key: value.decode("utf-8", "surrogateescape") for key, value in secret_files(secret).items()}


def secret_files(secret: SecretObject) -> dict[str, bytes]:
    """Return the content of a Secret as bytes."""
    decoded = {key: base64.b64decode("".join(text.split())) for key, text in secret.data.items()}
    return decoded | {key: text.encode("utf-8", "surrogateescape") for key, text in secret.string_data.items()}


def known_secrets(documents: FleetDocuments) -> tuple[str, ...]:
    """Return every text of the documents that must not be shown: what Secrets hold, and secrets in install configs."""
    found: dict[str, None] = {}
    for written in documents.secrets.values():
        for key, text in secret_texts(written.value).items():
            found |= dict.fromkeys(_inside_config(text) if key == FILE_NAME else (text,))
    for environment in _environments(documents):
        found |= dict.fromkeys(environment)
    for customization in documents.customizations.values():
        found |= dict.fromkeys(_in_patches(customization.value.spec))
    return tuple(each for each in found if each.strip())


def _inside_config(text: str) -> Iterator[str]:
    try:
        value = read_yaml(text, source=FILE_NAME)
    except BadDocument:
        yield text
        return
    yield from secrets_in(value)


def _in_patches(spec: CustomizationSpec) -> Iterator[str]:
    """Yield what patches write to fields that hold a secret by their name."""
    for operation in spec.install_config_patches:
        yield from _in_operation(operation)
    for entry in spec.installer_manifest_patches:
        if not isinstance(entry.patches, UnsetType):
            for operation in entry.patches:
                yield from _in_operation(operation)
        if not isinstance(entry.patch, UnsetType):
            yield from _in_patch(entry.patch)


def _in_operation(operation: PatchEntity) -> Iterator[str]:
    written: Json = operation.value
    if operation.value_json:
        try:
            written = read_json(operation.value_json, source="valueJSON")
        except BadDocument:
            written = operation.value_json
    yield from secrets_in(written, operation.path.rpartition("/")[2])


def _in_patch(patch: Json) -> Iterator[str]:
    """Yield the secrets of a patch that stands as text or as it is; of a JSON patch, those of its operations."""
    if isinstance(patch, str):
        try:
            patch = read_yaml(patch, source="patch")
        except BadDocument:
            return
    for each in patch if isinstance(patch, list) else [patch]:
        yield from secrets_in(each)
        if isinstance(each, dict) and isinstance(each.get("path"), str):
            yield from secrets_in(each.get("value"), str(each["path"]).rpartition("/")[2])


def secrets_in(value: Json, name: str = "") -> Iterator[str]:
    """Yield the texts of fields that hold a secret by their name."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from secrets_in(member, key)
    elif isinstance(value, list):
        for member in value:
            yield from secrets_in(member, name)
    elif isinstance(value, str) and is_secret_field(name):
        yield value


def is_secret_field(name: str) -> bool:
    return name.lower().endswith(_SECRET_FIELDS)


def _environments(documents: FleetDocuments) -> Iterator[Iterable[str]]:
    for pool in documents.pools.values():
        yield [each.value for each in pool.value.spec.installer_env if is_secret_field(_plain(each.name))]
    for deployment in documents.deployments.values():
        provisioning = deployment.value.spec.provisioning
        variables = provisioning.installer_env if provisioning else []
        yield [each.value for each in variables if is_secret_field(_plain(each.name))]


def _plain(name: str) -> str:
    return name.replace("_", "")
