"""The attacks of `tests/rpc/attacks.py` on the sockets of the running programs, and a server that attacks its agent.

What is shown each time: the attack is answered as it should be, neighbours go on, and the program keeps nothing of it.
"""

import asyncio
import contextlib
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from garboard.lab.binaries import Binaries
from garboard.rpc import frames
from garboard.rpc.headers import HeaderEncoder
from garboard.rpc.messages import Deframer, pack_prefix
from garboard.rpc.violations import ErrorCode
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.packets import encode_packet
from tests.support.rpc.attacks import Attack, attacks_of_a_client, attacks_of_either_end
from tests.support.rpc.peers import REQUEST
from tests.support.tunnel.clients import GrpcTunnel, echo_checked, echo_server
from tests.support.tunnel.programs import Program, Programs, programs
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

MIB = 1024 * 1024
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
SERVER = "konnectivity_network_proxy_server_"


def request_for(path: str, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return (*((name, path if name == ":path" else value) for name, value in REQUEST), *more)


CONNECT = request_for("/AgentService/Connect", ("agentid", "hostile"), ("agentidentifiers", "host=nowhere"))
PROXY = request_for("/ProxyService/Proxy")
ON_AGENT_PORT = attacks_of_a_client(CONNECT, streams=16)
ON_FRONT = attacks_of_a_client(PROXY, streams=100_000)
del ON_FRONT["more streams than allowed"]  # an API server may have as many as it likes
for on_server in (ON_AGENT_PORT, ON_FRONT):
    del on_server["data beyond the stream's window"]  # what is consumed opens the window: a test of its own does not
# What a server does to an agent that has called it: stream 1 is open.
ON_AGENT = {
    **attacks_of_either_end(),
    "message larger than 4 MiB": Attack(
        (frames.frame(frames.HEADERS, frames.END_HEADERS, 1, HeaderEncoder().encode(
            ((":status", "200"), ("content-type", "application/grpc"), ("serverid", "x"), ("servercount", "2")))),
         frames.frame(frames.DATA, 0, 1, pack_prefix(0, 5 * MIB))),
        ErrorCode.CANCEL, stream_only=True,
    ),
}  # fmt: skip


class Stand:
    """A server with a good agent, both ours and both processes."""

    def __init__(self, started: Programs, certificates: Certificates, front: str) -> None:
        self._keys = certificates
        self.front = front
        (self.evil_port,) = free_ports(1)
        # No attacker leads anywhere: connections go through the good agent alone.
        self.server = started.server("ours", "grpc", front, extra=("--proxy-strategies=defaultRoute",))
        hosts = f"--proxy-server-host=127.0.0.1:{self.server.port},127.0.0.1:{self.evil_port}"
        self.agent = started.agent("ours", self.server, extra=(hosts, "--agent-identifiers=default-route=true"))
        self.server.wait_for("/readyz")
        self.exchange()

    def exchange(self) -> None:
        """A connection through both carries its bytes whole."""

        async def scenario() -> None:
            async with echo_server() as address, asyncio.timeout(60):
                tunnel = await GrpcTunnel.open(self.front, address)
                await echo_checked(tunnel, 200_000)
                await tunnel.close()

        asyncio.run(scenario())

    def agent_port(self) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=self._keys.ca)
        context.load_cert_chain(self._keys.client, self._keys.client_key)
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", self.server.port), timeout=30)
        return context.wrap_socket(plain, server_hostname="localhost")

    def front_socket(self) -> socket.socket:
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(30)
        plain.connect(self.front)
        return plain

    @contextlib.contextmanager
    def evil_server(self) -> Iterator[Callable[[], ssl.SSLSocket]]:
        """Where the agent looks for its second server; each call gives its next connection, with TLS agreed on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._keys.server, self._keys.server_key)
        context.set_alpn_protocols(["h2"])
        with socket.create_server(("127.0.0.1", self.evil_port)) as listener:
            listener.settimeout(60)

            def accept() -> ssl.SSLSocket:
                plain, _ = listener.accept()
                plain.settimeout(30)
                return context.wrap_socket(plain, server_side=True)

            yield accept


@pytest.fixture(scope="module")
def stand(binaries: Binaries, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    folder = tmp_path_factory.mktemp("hostile")
    with programs(binaries, certificates, folder) as started:
        yield Stand(started, certificates, str(folder / "f.sock"))


@contextlib.contextmanager
def nothing_kept(program: Program, mib: int = 48) -> Iterator[None]:
    """The program has no more files open than before, and has grown by less than this."""
    files, memory = open_files(program), resident_bytes(program)
    yield
    until = time.monotonic() + 30
    while open_files(program) > files:
        assert time.monotonic() < until, f"{open_files(program) - files} more files are open than before"
        time.sleep(0.1)
    assert resident_bytes(program) - memory < mib * MIB
    assert program.process.poll() is None


def open_files(program: Program) -> int:
    return len(list(Path(f"/proc/{program.process.pid}/fd").iterdir()))


def resident_bytes(program: Program) -> int:
    [line] = [line for line in Path(f"/proc/{program.process.pid}/status").read_text().splitlines() if "VmRSS" in line]
    return int(line.split()[1]) * 1024


def answer_to(attack: Attack, peer: socket.socket, greeting: bytes) -> set[tuple[int, int]]:
    """Send it all while reading; the codes of the resets and the goodbye that come, until they do or 30 s are over."""
    codes: set[tuple[int, int]] = set()
    wanted = (frames.RST_STREAM if attack.stream_only else frames.GOAWAY, int(attack.ends))
    reader = frames.FrameReader(1 << 24)
    for data in _conversation(peer, b"".join((greeting, *attack.pieces)), within_s=30):
        for frame in reader.feed(data):
            if frame.kind == frames.GOAWAY:
                codes.add((frame.kind, frames.parse_word(frame.payload[4:])))
            elif frame.kind == frames.RST_STREAM:
                codes.add((frame.kind, frames.parse_word(frame.payload)))
        if wanted in codes:
            break
    peer.close()
    assert wanted in codes, codes
    return codes


def _conversation(peer: socket.socket, words: bytes, within_s: float) -> Iterator[bytes]:
    """Say it all and yield what is heard meanwhile and after, until the peer is gone; in one thread, as TLS demands."""
    peer.setblocking(False)
    unsaid, until = memoryview(words), time.monotonic() + within_s
    while time.monotonic() < until:
        with contextlib.suppress(*_LATER):
            try:
                unsaid = unsaid[peer.send(unsaid[:65536]) :] if unsaid else unsaid
            except _LATER:
                raise
            except OSError:
                unsaid = unsaid[:0]  # nobody listens any more; what was said to us is still to be read
        try:
            data = peer.recv(65536)
        except _LATER:
            select.select([peer], [peer] if unsaid else [], [], 0.05)
        except OSError:
            return
        else:
            if not data:
                return
            yield data


@pytest.mark.parametrize("name", ON_AGENT_PORT)
def test_attack_on_the_port_for_agents(stand: Stand, name: str) -> None:
    with nothing_kept(stand.server):
        answer_to(ON_AGENT_PORT[name], stand.agent_port(), frames.PREFACE + frames.settings({}))
    stand.exchange()


@pytest.mark.parametrize("name", ON_FRONT)
def test_attack_on_the_front_end(stand: Stand, name: str) -> None:
    with nothing_kept(stand.server):
        answer_to(ON_FRONT[name], stand.front_socket(), frames.PREFACE + frames.settings({}))
    stand.exchange()


@pytest.mark.parametrize("name", ON_AGENT)
def test_attack_of_a_server_on_its_agent(stand: Stand, name: str) -> None:
    with nothing_kept(stand.agent), stand.evil_server() as accept:
        answer_to(ON_AGENT[name], called_by_the_agent(accept()), b"")
    stand.exchange()


def called_by_the_agent(peer: ssl.SSLSocket) -> ssl.SSLSocket:
    """The connection once the agent has opened its stream."""
    peer.sendall(frames.settings({}))
    reader = frames.FrameReader(1 << 24, preface=frames.PREFACE)
    while not any(frame.kind == frames.HEADERS for frame in reader.feed(peer.recv(65536))):
        pass
    return peer


@contextlib.contextmanager
def silent_endpoint() -> Iterator[str]:
    """It takes connections and reads nothing."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def grpc_data(packet: packets.Packet) -> bytes:
    message = encode_packet(packet)
    return frames.frame(frames.DATA, 0, 1, pack_prefix(0, len(message)) + message)


def dialled(peer: socket.socket, address: str, first: bytes) -> int:
    """The id of a connection that a client of raw frames has dialled."""
    block = HeaderEncoder().encode(PROXY)
    opened = frames.header_frames(1, block, end_stream=False, max_frame=16_384)
    peer.sendall(frames.PREFACE + first + opened + grpc_data(packets.DialRequest("tcp", address, 1)))
    reader, deframer = frames.FrameReader(1 << 24), Deframer()
    while True:
        for frame in reader.feed(peer.recv(65536)):
            for message in deframer.feed(frame.payload) if frame.kind == frames.DATA else ():
                answer = packets.decode_packet(message)
                assert isinstance(answer, packets.DialResponse), answer
                return answer.connect_id


def test_data_beyond_the_window_of_a_stream_that_nobody_reads(stand: Stand) -> None:
    with nothing_kept(stand.server), nothing_kept(stand.agent), silent_endpoint() as address:
        peer = stand.front_socket()
        connect_id = dialled(peer, address, frames.settings({}))
        data = grpc_data(packets.Data(connect_id, "", bytes(16_000)))
        answer_to(Attack(tuple([data] * 4000), ErrorCode.FLOW_CONTROL_ERROR, stream_only=True), peer, b"")
    stand.exchange()


def test_client_that_opens_no_window_is_held_and_holds_up_nobody(stand: Stand) -> None:
    """A source without end behind it: what waits is bounded, and is gone with the client."""

    def pour(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(bytes(65536))

    with nothing_kept(stand.server), nothing_kept(stand.agent), socket.create_server(("127.0.0.1", 0)) as source:
        peer = stand.front_socket()
        # Enough of a window for the answer to the dial, and then none at all.
        dialled(peer, f"127.0.0.1:{source.getsockname()[1]}", frames.settings({4: 100}))
        connection, _ = source.accept()
        pouring = threading.Thread(target=pour, args=(connection,))
        pouring.start()
        for _ in range(5):
            stand.exchange()
        time.sleep(3)
        peer.close()
        pouring.join(30)
        assert not pouring.is_alive()
        connection.close()


def test_agent_that_opens_no_window_takes_no_memory(stand: Stand) -> None:
    """Its stream is open and nothing can be said on it; the others go on."""
    peer = stand.agent_port()
    with nothing_kept(stand.server):
        block = HeaderEncoder().encode(CONNECT)
        opened = frames.header_frames(1, block, end_stream=False, max_frame=16_384)
        peer.sendall(frames.PREFACE + frames.settings({4: 0}) + opened)
        stand.server.wait_for("/metrics", f'{SERVER}grpc_connections{{service_method="Connect"}} 2')
        stand.exchange()
        peer.close()
