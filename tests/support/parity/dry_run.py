"""`kubeadm init --dry-run` prints every object that it would send; no cluster is needed."""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from garboard.documents import Json, read_yaml
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.node_run import CONFIG_PATH, Configuration

FOLDER = "/dry-run"
_CREATED = re.compile(
    r"^\[dryrun\] Would perform action CREATE on resource .*\n(?:\[dryrun\] Resource name .*\n)?"
    r"\[dryrun\] Attached object:\n((?:.*\n)*?)\n(?=\[|\n|Your )",
    re.MULTILINE,
)


@dataclass(frozen=True)
class DryRun:
    """The objects that kubeadm would make, as it prints them, and the CA that it made up."""

    texts: tuple[str, ...]
    ca: bytes

    def objects(self) -> Iterator[dict[str, Json]]:
        for text in self.texts:
            document = read_yaml(text, source="dry run")
            assert isinstance(document, dict)
            yield document

    def names(self) -> list[str]:
        pairs = ((each["kind"], each["metadata"]) for each in self.objects())
        return [f"{kind} {metadata['name']}" for kind, metadata in pairs if isinstance(metadata, dict)]

    @property
    def token(self) -> str:
        """The first bootstrap token, which kubeadm has drawn if none was given."""
        data = next(self._token_data())
        return f"{data['token-id']}.{data['token-secret']}"

    def token_expirations(self) -> dict[str, datetime]:
        """Return when each bootstrap token would end, by its id."""
        found = ((data["token-id"], data.get("expiration")) for data in self._token_data())
        return {token_id: datetime.fromisoformat(text) for token_id, text in found if text}

    def _token_data(self) -> Iterator[dict[str, str]]:
        for each in self.objects():
            data = each.get("data")
            if isinstance(data, dict) and "token-id" in data:
                yield {key: base64.b64decode(str(value)).decode() for key, value in data.items()}


def dry_run_init(kubeadm: Kubeadm, configuration: Configuration, root: Path, *flags: str) -> DryRun:
    machine = configuration.machine(root, kubeadm.version)
    (root / FOLDER.lstrip("/")).mkdir()
    done = machine.run(
        kubeadm.program,
        *("init", "--dry-run", "--skip-phases", "preflight", "--config", CONFIG_PATH, *flags),
        environment={**configuration.environment, "KUBEADM_INIT_DRYRUN_DIR": FOLDER},
    )
    assert done.returncode == 0, done.stderr
    return DryRun(tuple(_CREATED.findall(done.stdout)), (root / FOLDER.lstrip("/") / "ca.crt").read_bytes())
