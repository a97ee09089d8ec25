"""The installer `garboard`: its verbs, in a folder and on hosts that are there already.

Each host is written its infraID first. One that is not in the metadata, or shows another infraID, is never touched.
"""

import json
import secrets
import string
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from garboard.errors import BadDocument, ClusterUnreachable, GarboardError, NotReady
from garboard.fleet.installers.bundles import CONFIG, BundleSecrets, build_bundles
from garboard.fleet.installers.contract import (
    CREATE_CLUSTER,
    CREATE_IGNITION_CONFIGS,
    CREATE_MANIFESTS,
    DESTROY_CLUSTER,
    INSTALL_CONFIG,
    KUBECONFIG,
    METADATA,
    InstallMetadata,
    Verb,
)
from garboard.fleet.installers.host_config import HostsConfig, read_hosts_config
from garboard.fleet.installers.host_view import HostClaim, HostRefused, why_not_claimed
from garboard.fleet.installers.hosts_metadata import HostsMetadata, hosts_metadata, read_hosts_metadata
from garboard.fleet.installers.manifests import render_manifests
from garboard.fleet.provision import OutputScrubber
from garboard.host.work_folder import WorkFolder
from garboard.node.fleet.host_commands import STATE
from garboard.node.fleet.remote_host import HostTimes, RemoteHost
from garboard.node.reporter import Reporter
from garboard.pki.keys import SystemKeys
from garboard.retry import Pauses, wait_until
from garboard.values import Json

Answer = TypeVar("Answer")

_BUNDLES, _ADDONS, _SECRETS = "bundles", "bundles/addons.json", "bundles/secrets.json"
_CONFIG_FLAG = f"--config={STATE}/{CONFIG}"
_INIT = ("init", _CONFIG_FLAG, "--upload-certs", "--skip-token-print", "--skip-phases=show-join-command")
_JOIN = ("join", _CONFIG_FLAG)
# What joins after a long while finds no token and no certificates any more: both are made again.
_REFRESH = (
    ("init", "phase", "upload-certs", _CONFIG_FLAG, "--upload-certs", "--skip-certificate-key-print"),
    ("init", "phase", "bootstrap-token", _CONFIG_FLAG, "--skip-token-print"),
)
_AT_ONCE = 16
_LETTERS = string.ascii_lowercase + string.digits


class HostInstaller:
    """Makes a cluster of hosts with garboard's own init and join, and resets them."""

    name = "garboard"
    resumes = True

    def __init__(self, reporter: Reporter, scrubber: OutputScrubber, times: HostTimes | None = None) -> None:
        self._reporter, self._scrubber, self._times = reporter, scrubber, times

    def run(self, verb: Verb, folder: Path) -> None:
        with WorkFolder.opened(folder) as files:
            _VERBS[verb](self, files)

    def create_manifests(self, files: WorkFolder) -> None:
        for each in render_manifests(_config(files)):
            files.write(each.path, each.data)

    def create_ignition_configs(self, files: WorkFolder) -> None:
        config = _config(files)
        tree = {path: data for name in ("kubeadm", "hosts", "addons") for path, data in _tree(files, name).items()}
        shared = BundleSecrets(f"{_random(6)}.{_random(16)}", secrets.token_hex(32))
        self._scrubber.learn(shared.token, shared.certificate_key)
        metadata = InstallMetadata(f"{config.name[:27].rstrip('-')}-{_random(5)}", str(uuid.uuid4()), config.name)
        made = build_bundles(config, tree, metadata, shared, SystemKeys(), datetime.now(UTC))
        for host, bundle in made.files.items():
            files.write(f"{_BUNDLES}/{host}.json", json.dumps(dict(bundle)).encode())
        files.write(_ADDONS, json.dumps(list(made.addons)).encode())
        files.write(_SECRETS, json.dumps([shared.token, shared.certificate_key]).encode())
        files.write(KUBECONFIG, made.kubeconfig)
        files.write(METADATA, hosts_metadata(made.metadata))
        for path in tree:
            files.remove(path)

    def create_cluster(self, files: WorkFolder) -> None:
        config = _config(files)
        self._scrubber.learn(*map(str, _list(files, _SECRETS)))
        metadata = read_hosts_metadata(files.read(METADATA), source=METADATA)
        hosts = self._hosts(metadata)
        self._take_over(hosts, metadata, {each.name: _bundle(files, each.name) for each in hosts})
        first, *others = [each for each in hosts if each.host.is_control_plane]
        workers = [each for each in hosts if not each.host.is_control_plane]
        if first.bring("init", _INIT):
            for words in _REFRESH:
                first.run(words)
        if addons := _list(files, _ADDONS):
            self._reporter.report(f"[{first.name}] applying {len(addons)} addons")
            first.ask_cluster("addons", addons)
        self._join(others, workers)
        self._await_ready(first, [each.name for each in hosts], config.ready_within_s)

    def destroy_cluster(self, files: WorkFolder) -> None:
        hosts = self._hosts(read_hosts_metadata(files.read(METADATA), source=METADATA))
        control_planes = [each for each in hosts if each.host.is_control_plane]
        problems = self._release([each for each in hosts if not each.host.is_control_plane])
        for each in reversed(control_planes):  # the first one last: it is the one that all others know
            problems += self._release([each])
        if problems:
            raise ClusterUnreachable(
                f"not every host could be released: {'; '.join(problems)}",
                hint="what these hosts were is known: the same command asks them again",
                error_class="hosts-left",
            )

    def _hosts(self, metadata: HostsMetadata) -> list[RemoteHost]:
        return [
            RemoteHost(each, HostClaim(metadata.infra_id, each.name, metadata.authority), self._reporter, self._times)
            for each in metadata.hosts
        ]

    def _take_over(self, hosts: Sequence[RemoteHost], metadata: HostsMetadata, bundles: Mapping[str, Json]) -> None:
        """Claim all hosts and give each its bundle; if one of them is refused, none is changed."""
        _refuse(_at_once(hosts, lambda each: each.require_same_version()))
        _refuse(_at_once(hosts, lambda each: _require_free(each, metadata)))
        self._reporter.report(f"[claim] {len(hosts)} hosts for {metadata.infra_id}")
        _refuse(_at_once(hosts, lambda each: each.claim()))
        _refuse(_at_once(hosts, lambda each: each.stage(bundles[each.name])))

    def _join(self, control_planes: Sequence[RemoteHost], workers: Sequence[RemoteHost]) -> None:
        """Join control planes one after the other, and all workers beside them; one failure does not stop others."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            beside = {each: pool.submit(each.bring, "join", _JOIN) for each in workers}
            errors: list[GarboardError] = []
            for each in control_planes:
                try:
                    each.bring("join", _JOIN)
                except GarboardError as error:
                    errors.append(error)
                    break  # the next one would join a cluster of which nobody knows how it is
            for future in beside.values():
                try:
                    future.result()
                except GarboardError as error:
                    errors.append(error)
        _refuse(errors)

    def _await_ready(self, first: RemoteHost, names: Sequence[str], timeout_s: float) -> None:
        def problem() -> str | None:
            found = first.ask_cluster("nodes")
            nodes = found.get("nodes") if isinstance(found, dict) else None
            ready = nodes if isinstance(nodes, dict) else {}
            missing = [each for each in names if ready.get(each) is not True]
            return f"{', '.join(missing)} not Ready" if missing else None

        self._reporter.report(f"[nodes] waiting until {len(names)} nodes are Ready")
        last = wait_until(problem, timeout_s=timeout_s, pauses=Pauses.every(2.0))
        if last is not None:
            raise ClusterUnreachable(
                f"after {timeout_s:.0f} s: {last}",
                hint="a cluster needs a network addon; nodesReadyWithin of the install config changes the time",
                error_class="nodes-not-ready",
            )

    def _release(self, hosts: Sequence[RemoteHost]) -> list[str]:
        def release(host: RemoteHost) -> None:
            self._reporter.report(f"[{host.name}] {host.release()}")

        return [error.message for error in _at_once(hosts, release)]


_VERBS: Mapping[Verb, Callable[[HostInstaller, WorkFolder], None]] = {
    CREATE_MANIFESTS: HostInstaller.create_manifests,
    CREATE_IGNITION_CONFIGS: HostInstaller.create_ignition_configs,
    CREATE_CLUSTER: HostInstaller.create_cluster,
    DESTROY_CLUSTER: HostInstaller.destroy_cluster,
}


def _require_free(host: RemoteHost, metadata: HostsMetadata) -> None:
    wanted = HostClaim(metadata.infra_id, host.name, metadata.authority)
    if reason := why_not_claimed(host.view(), wanted):
        raise HostRefused(f"{host.name}: {reason}")


def _at_once(hosts: Sequence[RemoteHost], task: Callable[[RemoteHost], None]) -> list[GarboardError]:
    """Do something with all hosts at once, and return what failed."""

    def attempt(host: RemoteHost) -> GarboardError | None:
        try:
            task(host)
        except GarboardError as error:
            return error
        return None

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [each for each in pool.map(attempt, hosts) if each is not None]


def _refuse(errors: Sequence[GarboardError]) -> None:
    """Raise what failed; of several failures the first one, with the messages of all."""
    if not errors:
        return
    if len(errors) == 1:
        raise errors[0]
    message = "; ".join(each.message for each in errors)
    if all(isinstance(each, HostRefused) for each in errors):
        raise HostRefused(message, hint=errors[0].hint)
    raise NotReady(message, hint=errors[0].hint, error_class=errors[0].error_class)


def _config(files: WorkFolder) -> HostsConfig:
    data = files.read(INSTALL_CONFIG)
    if data is None:
        raise BadDocument(f"there is no {INSTALL_CONFIG} in {files.path}", error_class="bad-install-config")
    return read_hosts_config(data, source=INSTALL_CONFIG)


def _tree(files: WorkFolder, name: str) -> dict[str, bytes]:
    if not (files.path / name).is_dir():
        return {}
    return {f"{name}/{path}": data for path, data in files.tree(name).items() if isinstance(data, bytes)}


def _bundle(files: WorkFolder, host: str) -> Json:
    data = files.read(f"{_BUNDLES}/{host}.json")
    if data is None:
        raise BadDocument(f"the bundle of {host} has gone", error_class="bad-manifest")
    bundle: Json = json.loads(data)
    return bundle


def _list(files: WorkFolder, name: str) -> list[Json]:
    found = json.loads(files.read(name) or b"[]")
    return found if isinstance(found, list) else []


def _random(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))
