"""The sockets that a supervisor holds."""

import asyncio
import socket
import stat
from pathlib import Path

import pytest

from garboard.errors import NotReady
from garboard.tunnel.server.accepting import listening_socket
from garboard.tunnel.server.tenants import FrontendConfig
from garboard.tunnel.workers.sockets import FrontSockets, PortHold

LOCAL = "127.0.0.1"


def test_port_that_another_program_shares_is_not_taken() -> None:
    """Workers could listen there too, and every second agent would end at the other program."""
    with listening_socket(socket.AF_INET, (LOCAL, 0), is_shared=True) as foreign:
        port = foreign.getsockname()[1]
        with pytest.raises(NotReady, match=f"cannot listen on port {port}: Address already in use"):
            asyncio.run(PortHold.take(LOCAL, port))


def test_port_is_for_workers_and_gets_no_connections_itself() -> None:
    hold = asyncio.run(PortHold.take(LOCAL, 0))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOCAL, hold.port))
    first, second = (listening_socket(socket.AF_INET, (LOCAL, hold.port), is_shared=True) for _ in range(2))
    with first, second:
        socket.create_connection((LOCAL, hold.port)).close()
        with pytest.raises(NotReady):  # a second server
            asyncio.run(PortHold.take(LOCAL, hold.port))
    hold.close()


def test_every_address_of_the_machine_is_held_under_one_port() -> None:
    hold = asyncio.run(PortHold.take("", 0))
    assert {each.getsockname()[1] for each in hold._sockets} == {hold.port}
    hold.close()


def test_unix_socket_is_for_its_group_and_takes_the_place_of_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / "f.sock"
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))
    fronts = FrontSockets()
    assert asyncio.run(fronts.open([FrontendConfig(uds_name=str(path))])) == [str(path)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o770
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    fronts.close()
    assert not path.exists()


@pytest.mark.parametrize("is_kept", [True, False], ids=["an old socket is kept", "a file is in its place"])
def test_unix_socket_that_cannot_be_bound_is_told_and_leaves_nothing_behind(tmp_path: Path, is_kept: bool) -> None:
    taken, free = tmp_path / "taken", tmp_path / "free"
    taken.touch()
    frontends = [
        FrontendConfig(uds_name=str(free)),
        FrontendConfig(uds_name=str(taken), delete_existing_uds_file=not is_kept),
    ]
    fronts = FrontSockets()
    with pytest.raises(NotReady, match=r"cannot listen on .*taken"):
        asyncio.run(fronts.open(frontends))
    assert fronts.by_place == {}
    assert taken.is_file()
    assert not free.exists()


def test_socket_that_is_open_stays_open_when_others_come_and_go(tmp_path: Path) -> None:
    stays, goes, comes = (FrontendConfig(uds_name=str(tmp_path / name)) for name in ("stays", "goes", "comes"))
    fronts = FrontSockets()
    asyncio.run(fronts.open([stays, goes]))
    [kept] = fronts.by_place[stays.place]
    assert asyncio.run(fronts.open([stays, comes])) == [comes.place]
    fronts.keep_only([stays, comes])
    assert list(fronts.by_place) == [stays.place, comes.place]
    assert fronts.by_place[stays.place] == [kept]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["comes", "stays"]
    fronts.close(removes=False)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["comes", "stays"]
