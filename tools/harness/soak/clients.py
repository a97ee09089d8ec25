"""Clients of the front end that come and go: as many as told at any time, each with an agent of its own choice.

    python -m tools.harness.soak.clients '{"front": "/tmp/f.sock", ...}'

When its time is over it prints what it saw as one line of JSON.
"""

import asyncio
import json
import random
import sys
import time
from dataclasses import asdict, dataclass
from typing import Final, cast

from tools.harness.soak.content import WHOLE, Header, Kind, address_of, piece
from tools.harness.soak.findings import Broken, ClientCounts
from tools.harness.soak.programs import run_until_told

RETRY_S: Final = 1.0
LAST_WORDS_S: Final = 60.0  # how long connections may take to end when the time is over
OPENING_AT_ONCE: Final = 100  # fewer than wait in the queue of the front end's socket: it is never full
OPENS_EVERY_S: Final = 0.05
SENT_AT_ONCE: Final = 64 * 1024
# One in so many connections moves much in one direction; the others talk now and then.
BULK_IN: Final = 50
BULK_BYTES: Final = (64 * 1024, 4 * 1024 * 1024)
SAMPLE_IN: Final = 10  # of the round trips, so many are kept for the figures
ACCEPTED: Final = b"HTTP/1.1 200 Connection Established\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientsPlan:
    """The clients of one process."""

    front: str
    endpoint_port: int
    agents: int
    connections: int
    seconds: float
    stay_s: float  # how long a connection stays on average
    pause_s: float  # how long it is silent between two messages
    seed: int

    def as_argument(self) -> str:
        return json.dumps(asdict(self))


class Conversation(asyncio.Protocol):
    """One connection; every byte that comes is compared with what it must be."""

    transport: asyncio.Transport | None = None
    _head = b""
    is_open = False
    _is_full = False
    _sent = 0
    _received = 0
    _asked_at = 0.0

    def __init__(self, clients: "Clients", agent: int, header: Header, leaves_at: float) -> None:
        self.clients = clients
        self.agent = agent
        self.header = header
        self.began_at = time.monotonic()
        self._leaves_at = leaves_at

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        target = f"{address_of(self.agent)}:{self.clients.plan.endpoint_port}"
        self.transport.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            self._head += data
            if not self._head.startswith(ACCEPTED):
                return
            self.is_open, data = True, self._head[len(ACCEPTED) :]
            self.clients.opening -= 1
            self._begin()
        if data:
            self._compare(data)

    def eof_received(self) -> bool:
        is_whole = self.header.kind is Kind.DOWNLOAD and self._received == self.header.size
        self._end("" if is_whole else "cut" if self.is_open else f"refused: {self._head[:200].decode('latin-1')!r}")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("cut" if self.is_open else "refused: no answer")

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._upload()

    def leave(self) -> None:
        """The time is over: finish what is under way, then go."""
        self._leaves_at = 0.0
        if self.is_open and self.header.kind is Kind.ECHO and self._received == self._sent:
            self._end("")

    def give_up(self) -> None:
        self._end("stuck: it did not end in time")

    def _begin(self) -> None:
        assert self.transport is not None
        self.transport.write(self.header.encode())
        match self.header.kind:
            case Kind.ECHO:
                self._ask()
            case Kind.UPLOAD:
                self._upload()
            case Kind.DOWNLOAD:
                pass  # it comes by itself

    def _ask(self) -> None:
        if self.transport is None:
            return
        if time.monotonic() >= self._leaves_at:
            self._end("")
            return
        size = self.clients.message_size()
        self._asked_at = time.monotonic()
        self.transport.write(piece(self.header.offset, self._sent, size))
        self._sent += size

    def _upload(self) -> None:
        while self.transport is not None and not self._is_full and self._sent < self.header.size:
            size = min(SENT_AT_ONCE, self.header.size - self._sent)
            self._sent += size
            self.transport.write(piece(self.header.offset, self._sent - size, size))

    def _compare(self, data: bytes) -> None:
        if self.header.kind is Kind.UPLOAD:
            self.clients.counts.bytes_checked += self._sent
            self._end("" if data == WHOLE and self._sent == self.header.size else f"wrong: the endpoint says {data!r}")
            return
        most = self._sent if self.header.kind is Kind.ECHO else self.header.size
        if self._received + len(data) > most or data != piece(self.header.offset, self._received, len(data)):
            self._end(f"wrong: bytes {self._received} to {self._received + len(data)} of {self.header}")
            return
        self._received += len(data)
        self.clients.counts.bytes_checked += len(data)
        if self.header.kind is Kind.ECHO and self._received == self._sent:
            self.clients.answered(time.monotonic() - self._asked_at)
            asyncio.get_running_loop().call_later(self.clients.pause(), self._ask)

    def _end(self, why: str) -> None:
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.abort()
            self.clients.ended(self, why)


class Clients:
    """Keeps as many conversations going as the plan says."""

    def __init__(self, plan: ClientsPlan) -> None:
        self.plan = plan
        self.counts = ClientCounts()
        self._random = random.Random(plan.seed)
        self._going: set[Conversation] = set()
        self.opening = 0  # of them, those without an answer
        self._round_trips = 0
        self._failed_at: list[float] = []  # as many connections wait a moment before they come again
        self._is_over = False

    async def run(self) -> None:
        over_at = time.monotonic() + self.plan.seconds
        while time.monotonic() < over_at:
            await self._open_some()
            await asyncio.sleep(OPENS_EVERY_S)
        self._is_over = True
        for each in list(self._going):
            each.leave()
        given_up_at = time.monotonic() + LAST_WORDS_S
        while self._going and time.monotonic() < given_up_at:
            await asyncio.sleep(0.1)
        for each in list(self._going):
            each.give_up()
        print(self.counts.to_json(), flush=True)

    def message_size(self) -> int:
        return self._random.choice((100, 100, 100, 1500, 20_000))

    def pause(self) -> float:
        return 0.0 if self._is_over else self._random.expovariate(1 / self.plan.pause_s)

    def answered(self, seconds: float) -> None:
        self._round_trips += 1
        if self._round_trips % SAMPLE_IN == 0:
            self.counts.round_trips_ms.append(round(seconds * 1000, 2))

    def ended(self, conversation: Conversation, why: str) -> None:
        self._going.discard(conversation)
        self.opening -= not conversation.is_open
        if not why:
            self.counts.whole += 1
            return
        now = time.monotonic()
        self._failed_at.append(now)
        self.counts.broken.append(Broken(conversation.agent, conversation.began_at, now, why))

    async def _open_some(self) -> None:
        now = time.monotonic()
        self._failed_at = [at for at in self._failed_at if now - at < RETRY_S]
        missing = self.plan.connections - len(self._going) - len(self._failed_at)
        self.counts.most = max(self.counts.most, len(self._going))
        await asyncio.gather(*(self._open() for _ in range(min(missing, OPENING_AT_ONCE - self.opening))))

    async def _open(self) -> None:
        conversation = self._conversation()
        self._going.add(conversation)
        self.opening += 1
        self.counts.opened += 1
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: conversation, self.plan.front)
        except OSError as error:
            self.ended(conversation, f"refused: {error}")

    def _conversation(self) -> Conversation:
        choose = self._random
        kind = choose.choice((Kind.DOWNLOAD, Kind.UPLOAD)) if not choose.randrange(BULK_IN) else Kind.ECHO
        header = Header(kind, choose.randrange(1 << 20), choose.randint(*BULK_BYTES))
        leaves_at = time.monotonic() + choose.expovariate(1 / self.plan.stay_s)
        return Conversation(self, choose.randrange(self.plan.agents), header, leaves_at)


if __name__ == "__main__":
    run_until_told(Clients(ClientsPlan(**json.loads(sys.argv[1]))).run())
