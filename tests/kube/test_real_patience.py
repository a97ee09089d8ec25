"""A real API server whose etcd stands still for a while."""

import subprocess
from pathlib import Path

import pytest

from garboard.documents import Json
from garboard.kube import KubeClient, ObjectRef
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tests.support.host.freezing import freeze, thaw
from tests.support.kube.real_server import real_api_server

pytestmark = pytest.mark.real

REF = ObjectRef("ConfigMap", "default", "patient")
DATA: dict[str, Json] = {"key": "value"}
CONTENT: dict[str, Json] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "patient"}, "data": DATA}


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_changes_are_made_once_however_often_etcd_stands_still(
    binaries: Binaries, tmp_path: Path, version: object
) -> None:
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with real_api_server(binaries, str(version), tmp_path, processes) as access:
        etcd, reported = processes["etcd"], list[str]()

        def go_on(line: str) -> None:
            reported.append(line)
            thaw(etcd)

        with KubeClient(access, timeout_s=1.0, report=go_on) as client:
            client.find("ConfigMap", "default", "patient")
            freeze(etcd)
            made = client.create(REF, CONTENT)
            assert made["data"] == DATA
            freeze(etcd)
            changed = client.replace(REF, {**made, "data": {"key": "other"}})
            assert changed["data"] == {"key": "other"}
            freeze(etcd)
            client.delete(REF)
            assert client.find("ConfigMap", "default", "patient") is None
        assert len(reported) >= 3, reported
