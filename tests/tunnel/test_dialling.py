import asyncio
import errno
import socket

import pytest

from garboard.tunnel import dialling
from garboard.tunnel.dialling import DialFailed, dial, split_address


@pytest.mark.parametrize(
    ("address", "parts"),
    [("10.0.0.1:80", ("10.0.0.1", 80)), ("[fd00::1]:443", ("fd00::1", 443)), ("name:1", ("name", 1)),
     (":80", ("localhost", 80))],
)  # fmt: skip
def test_address_is_host_and_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "host", "host:", "host:0", "host:65536", "host:http", "fd00::1:80", "h:٣"])
def test_bad_address_is_refused_in_words(address: str) -> None:
    with pytest.raises(DialFailed, match="dial tcp: address"):
        split_address(address)


@pytest.mark.parametrize(
    ("error", "words", "kind"),
    [
        (OSError(errno.ECONNREFUSED, ""), "connect: connection refused", "refused"),
        (OSError(errno.EHOSTUNREACH, ""), "connect: no route to host", "no_route"),
        (OSError(errno.ENETUNREACH, ""), "connect: network is unreachable", "no_route"),
        (OSError(errno.EMFILE, ""), "socket: too many open files", "failed"),
        (OSError(errno.EACCES, ""), "connect: Permission denied", "failed"),
        (OSError(errno.ETIMEDOUT, ""), "i/o timeout", "timed_out"),
        (socket.gaierror(socket.EAI_NONAME, ""), "lookup h: no such host", "no_such_host"),
        (TimeoutError(), "i/o timeout", "timed_out"),
    ],
)
def test_failures_have_the_words_that_servers_look_for(
    error: OSError, words: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(dialling, "_dial_each", fail)
    with pytest.raises(DialFailed, match=words) as failed:
        asyncio.run(dial("h:80", asyncio.Protocol))
    assert failed.value.kind == kind
