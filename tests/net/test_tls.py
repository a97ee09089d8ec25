"""What every TLS context of ours trusts: authorities that OpenSSL's strict flag refuses, and intermediate ones."""

import contextlib
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import garboard
from garboard.etcd import EtcdAccess
from garboard.kube import Access
from garboard.net import tls
from garboard.rpc import client_tls, server_tls
from garboard.tunnel.tls import KeyPair, ListenerKeys, ListenerTls, TlsPolicy
from garboard.tunnel.tls import client_context as agent_context
from tests.support.net.old_authority import make_old_certificates
from tools.harness.certificates import Certificates, make_certificates

SOURCE = Path(garboard.__file__).parent
NEWER = ("python3.12", "python3.13", "python3.14")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates of an authority without key identifiers."""
    return make_old_certificates(tmp_path_factory.mktemp("old"))


@pytest.fixture(params=[False, True], ids=["as this Python is", "strict by default, as from 3.13 on"])
def _defaults(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    make = ssl.create_default_context

    def make_strict(*given: object, **named: object) -> ssl.SSLContext:
        context = make(*given, **named)  # type: ignore[arg-type]
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    if request.param:
        monkeypatch.setattr(ssl, "create_default_context", make_strict)


def handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Do a handshake in memory; raises what either end objects to."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue


def credential(of: Certificates) -> bytes:
    return of.client.read_bytes() + of.client_key.read_bytes()


def of_kube(of: Certificates) -> ssl.SSLContext:
    return Access(
        server="https://localhost:1", host="localhost", port=1, ca=of.ca.read_bytes(), credential=credential(of)
    ).tls()


def of_etcd(of: Certificates) -> ssl.SSLContext:
    return EtcdAccess(ca=of.ca.read_bytes(), certificate=of.client.read_bytes(), key=of.client_key.read_bytes()).tls()


def of_rpc(of: Certificates) -> ssl.SSLContext:
    return client_tls(of.ca, certificate=of.client, key=of.client_key)


def of_agent(of: Certificates) -> ssl.SSLContext:
    return agent_context(of.ca, of.client, of.client_key)


def of_rpc_server(of: Certificates) -> ssl.SSLContext:
    return server_tls(of.server, of.server_key, client_ca_file=of.ca)


def of_tunnel_server(of: Certificates) -> ssl.SSLContext:
    keys = ListenerKeys(KeyPair(of.server, of.server_key, of.ca), TlsPolicy())
    listener = ListenerTls(lambda _name: keys, TlsPolicy())
    listener.ask_for([keys])
    return listener.context


@pytest.mark.usefixtures("_defaults")
@pytest.mark.parametrize("client", [of_kube, of_etcd, of_rpc, of_agent])
@pytest.mark.parametrize("server", [of_rpc_server, of_tunnel_server])
def test_authority_without_key_identifiers_is_accepted_by_both_ends(
    old: Certificates,
    client: Callable[[Certificates], ssl.SSLContext],
    server: Callable[[Certificates], ssl.SSLContext],
) -> None:
    handshake(client(old), server(old))


def test_strict_flag_would_refuse_that_authority(old: Certificates) -> None:
    """Without this, the tests above would show nothing."""
    strict = of_kube(old)
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    with pytest.raises(ssl.SSLCertVerificationError, match="Missing Authority Key Identifier"):
        handshake(strict, of_rpc_server(old))


def test_another_authority_is_refused(old: Certificates, tmp_path: Path) -> None:
    other = make_certificates(tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(of_kube(other), of_rpc_server(old))


def test_intermediate_authority_is_trusted_without_its_root(tmp_path: Path) -> None:
    """As by Go: with an external CA, ca.crt is often signed by an authority that no node has."""
    names = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]

    def make(name: str, *more: str) -> None:
        files = ["-keyout", f"{tmp_path}/{name}.key", "-out", f"{tmp_path}/{name}.crt", "-subj", f"/CN={name}"]
        subprocess.run(["openssl", "req", "-x509", *names, *files, *more], check=True, capture_output=True)

    make("root")
    make("ca", "-CA", f"{tmp_path}/root.crt", "-CAkey", f"{tmp_path}/root.key", "-addext", "basicConstraints=CA:TRUE")
    signed = ["-CA", f"{tmp_path}/ca.crt", "-CAkey", f"{tmp_path}/ca.key", "-addext", "subjectAltName=DNS:localhost"]
    make("server", *signed, "-addext", "basicConstraints=CA:FALSE")
    client = tls.new_client_context((tmp_path / "ca.crt").read_bytes())
    server = tls.new_server_context()
    server.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    handshake(client, server)


def test_no_context_is_made_anywhere_else() -> None:
    making = re.compile(r"create_default_context|SSLContext\(|_create_unverified_context")
    found = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if making.search(path.read_text())]
    assert found == ["net/tls.py"]


def newer_interpreters() -> list[str]:
    """Newer Pythons of this machine, as far as they start."""
    folders = Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python3")
    candidates = [*(found for name in NEWER if (found := shutil.which(name))), *map(str, folders)]
    return [each for each in candidates if subprocess.run([each, "-c", ""], capture_output=True).returncode == 0]


TRY_IN_ANOTHER_PYTHON = """
import ssl, sys
from pathlib import Path
from garboard.net.tls import new_client_context, new_server_context
folder = Path(sys.argv[1])
server = new_server_context(folder / "ca.crt")
server.load_cert_chain(folder / "server.crt", folder / "server.key")
pem = (folder / "client.crt").read_bytes() + (folder / "client.key").read_bytes()
client = new_client_context((folder / "ca.crt").read_bytes(), pem)
to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
ends = [client.wrap_bio(to_client, to_server, server_hostname="localhost"), server.wrap_bio(to_server, to_client, True)]
for end in ends * 4:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        pass
is_strict = bool(ssl.create_default_context().verify_flags & ssl.VERIFY_X509_STRICT)
assert is_strict == (sys.version_info >= (3, 13)), "the defaults of this Python are not as they are said to be"
print(end.getpeercert()["subject"])
"""


def test_newer_pythons_accept_it_too(old: Certificates) -> None:
    found = newer_interpreters()
    if not found:
        pytest.skip(f"no Python newer than {sys.version_info[:2]} here")
    for each in found:
        done = subprocess.run(
            [each, "-c", TRY_IN_ANOTHER_PYTHON, old.ca.parent],
            capture_output=True, text=True, env={"PYTHONPATH": str(SOURCE.parent), "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        assert "client" in done.stdout, done.stderr


def shown_chain(server: ssl.SSLContext) -> list[bytes]:
    """What a client sees, as DER."""
    asker = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asker.check_hostname, asker.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, end = asker.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)
    for each in (client, end, client):
        with contextlib.suppress(ssl.SSLError):  # it shows no certificate itself
            each.do_handshake()
    return [each.public_bytes(2) for each in client._sslobj.get_unverified_chain()]  # type: ignore[attr-defined]


def as_der(*files: Path) -> list[bytes]:
    return [ssl.PEM_cert_to_DER_cert(file.read_text()) for file in files]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_server_shows_the_same_chain_when_it_need_not_look_for_it(
    tmp_path: Path, length: int, version: ssl.TLSVersion
) -> None:
    """Of a certificate by itself, with its authority among those of clients, and in one file with others."""
    (tmp_path / "other").mkdir()
    of, other = make_certificates(tmp_path), make_certificates(tmp_path / "other")
    clients = other if length == 1 else of
    in_file = of.server
    if length == 3:
        in_file = tmp_path / "chain.crt"
        in_file.write_bytes(of.server.read_bytes() + of.ca.read_bytes() + other.ca.read_bytes())
    before, after = (server_tls(in_file, of.server_key, client_ca_file=clients.ca) for _ in range(2))
    before.maximum_version = after.maximum_version = version
    assert tls.keep_chain(after, of.server_key) == length
    assert shown_chain(after) == shown_chain(before) == as_der(of.server, of.ca, other.ca)[:length]
    assert after.verify_mode is ssl.CERT_REQUIRED
    handshake(client_tls(of.ca, certificate=clients.client, key=clients.client_key), after)


def signed(name: str, folder: Path, *more: str | Path) -> Path:
    """A certificate, with its key beside it; an authority."""
    made = folder / f"{name}.crt"
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command = ["openssl", "req", "-x509", *new, "-keyout", made.with_suffix(".key"), "-out", made, *more]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return made


def test_server_of_the_tunnel_looks_for_its_chain_once(tmp_path: Path) -> None:
    """An authority that comes to the context later would be shown, too, by one that looks for it in each handshake."""
    root = signed("root", tmp_path)
    middle = signed("middle", tmp_path, "-CA", root, "-CAkey", root.with_suffix(".key"))
    leaf = signed("leaf", tmp_path, "-CA", middle, "-CAkey", middle.with_suffix(".key"))
    looks_each_time = server_tls(leaf, leaf.with_suffix(".key"), client_ca_file=middle)
    context = ListenerKeys(KeyPair(leaf, leaf.with_suffix(".key"), middle), TlsPolicy()).context
    for each in (looks_each_time, context):
        assert shown_chain(each) == as_der(leaf, middle)
        each.load_verify_locations(root)
    assert shown_chain(looks_each_time) == as_der(leaf, middle, root)
    assert shown_chain(context) == as_der(leaf, middle)
