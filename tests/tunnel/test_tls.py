"""Certificates that change on disk."""

import asyncio
import shutil
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.errors import NotReady
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.tls import KeyPair, ListenerKeys, TlsPolicy, client_context
from tests.support.tunnel.ends import agent_options, server_options, until
from tools.harness.certificates import Certificates, make_certificates


async def shown_certificate(certificates: Certificates, port: int) -> bytes | None:
    context = ssl.create_default_context(cafile=certificates.ca)
    context.load_cert_chain(certificates.client, certificates.client_key)
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    shown: ssl.SSLObject = writer.get_extra_info("ssl_object")
    writer.close()
    return shown.getpeercert(binary_form=True)


def test_new_certificate_is_shown_to_the_next_agent(certificates: Certificates, front: str, tmp_path: Path) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    shutil.copy(certificates.server, certificate)
    shutil.copy(certificates.server_key, key)
    options = replace(
        server_options(certificates, front, "grpc"), cluster_keys=KeyPair(certificate, key, certificates.ca)
    )

    async def scenario() -> None:
        async with serve(options) as server:
            [keys] = server.keys
            before = await shown_certificate(certificates, server.agent_port)
            assert not keys.refresh()
            shutil.copy(certificates.client, certificate)
            assert not keys.refresh()  # the key does not belong to it yet
            assert await shown_certificate(certificates, server.agent_port) == before
            shutil.copy(certificates.client_key, key)
            assert keys.refresh()
            assert await shown_certificate(certificates, server.agent_port) != before

    asyncio.run(scenario())


def test_authority_that_is_replaced_on_disk_is_trusted_no_more(
    certificates: Certificates, front: str, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = make_certificates(tmp_path / "other")
    ca = tmp_path / "agents.crt"
    shutil.copy(certificates.ca, ca)
    keys = KeyPair(certificates.server, certificates.server_key, ca)
    options = replace(server_options(certificates, front, "grpc"), cluster_keys=keys)

    async def joins(shown: Certificates, server: ProxyServer) -> bool:
        agent = replace(
            agent_options(certificates, server.agent_port), agent_cert=shown.client, agent_key=shown.client_key
        )
        async with run_agent(agent):
            try:
                await until(lambda: server.proxy.streams, 0.5)
            except TimeoutError:
                return False
        await until(lambda: not server.proxy.streams)
        return True

    async def scenario() -> None:
        async with serve(options) as server:
            assert await joins(certificates, server)
            assert not await joins(other, server)
            shutil.copy(other.ca, ca)
            assert [keys.refresh() for keys in server.keys] == [True]
            assert await joins(other, server)
            assert not await joins(certificates, server)

    asyncio.run(scenario())


def test_file_that_is_gone_for_a_while_leaves_what_was_loaded(certificates: Certificates, tmp_path: Path) -> None:
    certificate = tmp_path / "server.crt"
    shutil.copy(certificates.server, certificate)
    keys = ListenerKeys(KeyPair(certificate, certificates.server_key), TlsPolicy())
    before = keys.context
    certificate.unlink()
    assert keys.refresh() is False
    assert keys.context is before
    shutil.copy(certificates.server, certificate)
    assert keys.refresh() is True


def test_unusable_files_are_named(certificates: Certificates, tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="is missing") as missing:
        ListenerKeys(KeyPair(tmp_path / "no.crt", certificates.server_key), TlsPolicy())
    assert missing.value.exit_code == 1
    with pytest.raises(NotReady, match="cannot use"):
        ListenerKeys(KeyPair(certificates.client, certificates.server_key), TlsPolicy())
    (tmp_path / "junk").write_text("junk")
    with pytest.raises(NotReady, match="cannot use"):
        client_context(tmp_path / "junk", None, None)
