"""The install config of a pool's cluster: made of the template's text, with the patches of an inventory entry."""

import base64
import json

from garboard.errors import GarboardError
from garboard.fleet.controllers.stored import Stored
from garboard.fleet.customize import Customization, Rules, compile_customization
from garboard.fleet.documents import load_documents
from garboard.fleet.install_config import FILE_NAME, InstallConfig, PatchedInstallConfig, patch_install_config
from garboard.fleet.scrubbing import Scrubber
from garboard.model import DEFAULT_VERSION
from garboard.patches import Origin, OriginKind, SourceText
from garboard.schema import load_schema
from garboard.values import Json, dataclass

PULL_SECRET_KEY = ".dockerconfigjson"


@dataclass(frozen=True, slots=True)
class Unpatchable:
    """Why no install config can be made with an inventory entry, without secrets."""

    message: str


def secret_text(secret: Stored, key: str) -> str | None:
    """Return what a Secret holds under a key; None if it has no such key, or no text there."""
    data = secret.text("data", key)
    if not data:
        return None
    try:
        return base64.b64decode(data).decode()
    except ValueError:
        return None


def secret_data(texts: dict[str, str]) -> dict[str, Json]:
    return {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}


def compiled(customization: Stored) -> Customization:
    """Return the patches of a customization; raise what is wrong with them."""
    tree = {key: value for key, value in customization.tree.items() if key != "status"}
    documents = load_documents([(customization.name, json.dumps(tree).encode())])
    (written,) = documents.customizations.values()
    return compile_customization(written)


def read_template(secret: Stored) -> InstallConfig:
    """Return the install config that a Secret holds; raise what is wrong with it."""
    text = secret_text(secret, FILE_NAME) or ""
    return InstallConfig.read(text, SourceText(f"Secret {secret.namespace}/{secret.name}", text))


def patched_config(
    template: Stored, name: str, base_domain: str, entry: Stored | None
) -> PatchedInstallConfig | Unpatchable:
    """Return the install config of a cluster, or why it cannot be made."""
    scrub = Scrubber([secret_text(template, FILE_NAME) or ""])
    try:
        config = read_template(template).named(name, base_domain, Origin(OriginKind.CONFIG, name))
        own = compiled(entry) if entry is not None else None
        return patch_install_config(config, own, Rules(lambda: load_schema(DEFAULT_VERSION), scrub))
    except GarboardError as error:
        return Unpatchable(scrub(error.message))
