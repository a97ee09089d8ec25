import os
import socket
from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host.inspection import HostInspector, address_towards

NOT_HERE = "203.0.113.9"  # RFC 5737: for documentation


def test_port_is_in_use_while_somebody_listens() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        assert not HostInspector(None).can_listen("127.0.0.1", server.getsockname()[1])


def test_address_of_another_machine_is_not_called_in_use() -> None:
    with pytest.raises(GarboardError, match=f"port 2380 at {NOT_HERE}: this machine has no such address"):
        HostInspector(None).can_listen(NOT_HERE, 2380)


def test_own_address_is_the_one_that_leads_to_the_host() -> None:
    assert address_towards("127.0.0.1", 8132) == "127.0.0.1"
    assert address_towards("no such host", 8132) == ""


@pytest.mark.timeout(20)
def test_named_pipe_is_not_read_and_a_missing_file_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    inspector = HostInspector(None)
    with pytest.raises(GarboardError, match="is a named pipe"):
        inspector.read(str(tmp_path / "pipe"))
    assert inspector.read(str(tmp_path / "missing")) is None
    assert inspector.entries(str(tmp_path)) == ["pipe"]
    assert inspector.entries(str(tmp_path / "missing")) is None
    assert inspector.read("/proc/version")
