"""Daphne with what it lacks: back-pressure, limits for bodies and for slow clients, and an end that lets responses finish."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.server import Server
from twisted.internet import reactor
from twisted.internet.protocol import Protocol, connectionDone
from twisted.web.http import _GenericHTTPChannelProtocol

from responses_app.local.transport_limits import TransportLimits
from responses_app.server.http import tcp_limits
from responses_app.server.http.admission import Gate, OpenGate, affordable_connections
from responses_app.server.http.errors import BODY_LIMIT, HttpChannel, error, overloaded, too_large
from responses_app.server.http.pacing import Pacer
from responses_app.server.http.tcp_limits import ANSWER, BODY, HEAD, LINGER, LimitedConnection, prepare
from responses_app.server.http.unfinished import Budget, Charge, Full
from responses_app.server.http.websocket import EXTENSIONS, WebSocket

# Read from the spool file at once; a body of 64 MiB takes a few hundred messages instead of Daphne's eight thousand.
BUFFER = 256 * 1024
# Connections over the limit that are told so; those beyond are closed without a word.
TOLD_MOST = 64
TOLD_S = 1.0
GOING_AWAY = 1001
# How often to look whether a slow client has read on: hundreds that do not must not keep the loop busy.
LOOK, LOOK_MOST, LOOK_LESS = 0.02, 0.5, 1.25

Application = Callable[[dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]


def tcp(host: str, port: int) -> str:
    """An endpoint of Twisted's for an address."""
    return f"tcp:port={port}:interface={host.replace(':', chr(92) + ':')}"


def adopted(descriptor: int) -> str:
    """An endpoint for a socket that listens already. It is closed, and a copy of it used."""
    return f"fd:fileno={descriptor}"


class HttpRequestHandler(WebRequest):  # type: ignore[misc]
    """A request whose body is counted and refused beyond its limit, instead of filling the disk."""

    received = 0
    stage = HEAD
    limit = BODY_LIMIT
    charge: Charge | None = None

    def __init__(self, channel: Any, *rest: Any) -> None:
        # Twisted would read forms, and answer 400 by itself to one that is none; the application reads bodies.
        super().__init__(channel, *rest, parsePOSTFormSubmission=False)
        if isinstance(channel.transport, LimitedConnection):
            channel.transport.begun += 1

    def gotLength(self, length: int | None) -> None:
        self.stage = BODY
        super().gotLength(length)

    def handleContentChunk(self, data: bytes) -> None:
        if self.stage == LINGER:
            return
        self.received += len(data)
        if self.received > self.limit:
            self.channel.refuse(too_large(self.limit))
            return
        try:
            if self.charge is not None:
                self.charge.add(len(data))
        except Full as full:
            self.channel.refuse(full.answer)
            return
        super().handleContentChunk(data)

    def process(self) -> Any:
        self.stage = ANSWER
        done = super().process()
        # The application has all of the body; its file would stay as long as the answer takes.
        self._drop_body()
        return done

    def discard(self) -> None:
        """Keep nothing of the body: it was refused."""
        self.stage = LINGER
        self._drop_body()

    def connectionLost(self, reason: Any) -> None:
        """Daphne's, and the body is counted no more."""
        self._release()
        super().connectionLost(reason)

    def _drop_body(self) -> None:
        self._release()
        if self.content is not None:
            self.content.close()

    def _release(self) -> None:
        if self.charge is not None:
            self.charge.release()

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Daphne's, in the API's words in place of a page."""
        del status_text
        headers, said = error(status, body)
        self.handle_reply({"type": "http.response.start", "status": status, "headers": headers})
        self.handle_reply({"type": "http.response.body", "body": said})


class HttpFactory(HTTPFactory):  # type: ignore[misc]
    """Channels that make our requests. Twisted sets TCP_NODELAY on each of them (case J6); a test sees to it that it stays so."""

    def protocol(self) -> Any:
        """Twisted's, around a channel of ours."""
        return _GenericHTTPChannelProtocol(HttpChannel())

    def buildProtocol(self, addr: Any) -> Any:
        """Twisted's, unless there are too many connections."""
        over = self.server.open_connections - self.server.limit + 1
        if over > 0:
            return Overload(self.server.limit) if over <= TOLD_MOST else None
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = HttpRequestHandler
        return protocol


class Overload(Protocol):  # type: ignore[misc]
    """A connection over the limit: it is told so and closed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def connectionMade(self) -> None:
        self.transport.write(overloaded(self._limit))
        self.transport.loseWriteConnection()
        self._end = reactor.callLater(TOLD_S, self.transport.abortConnection)

    def connectionLost(self, reason: Any = connectionDone) -> None:
        del reason
        if self._end.active():
            self._end.cancel()


class DaphneServer(Server):  # type: ignore[misc]
    """One listening address in front of one ASGI application, on the loop that the reactor was installed with."""

    def __init__(
        self,
        application: Application,
        endpoint: str,
        ready: Callable[[], None],
        gate: Gate | None = None,
        limits: TransportLimits | None = None,
    ) -> None:
        limits = limits or TransportLimits()
        self.gate: Gate = gate or OpenGate()
        self.budget = Budget(limits.unfinished, limits.unfinished_each)
        self.pacer = Pacer()
        self.limit = affordable_connections(limits.connections)
        super().__init__(
            application,
            endpoints=[endpoint],
            signal_handlers=False,
            ready_callable=ready,
            # Streams and sockets may be silent for as long as a model thinks; their ends are decided in the application.
            http_timeout=None,
            websocket_timeout=-1,
            ping_interval=tcp_limits.PING_EVERY,
            ping_timeout=tcp_limits.PING_LIMIT,
            websocket_max_message_size=BODY_LIMIT,
            websocket_max_frame_size=BODY_LIMIT,
            request_buffer_size=BUFFER,
            server_name="",
        )
        self.ports: list[Any] = []
        self.failure: str | None = None

    def listen_success(self, port: Any) -> None:
        port.factory = HttpFactory(self)
        port.factory.doStart()
        self.ws_factory.protocol = WebSocket
        port.transport, port.open, port.pacer = LimitedConnection, set(), self.pacer
        prepare(port.socket)
        self.ports.append(port)

    @property
    def open_connections(self) -> int:
        """How many clients are connected."""
        return sum(len(port.open) for port in self.ports)

    def listen_error(self, failure: Any) -> None:
        self.failure = failure.getErrorMessage()
        self.stop()

    def timeout_checker(self) -> None:
        """Daphne's round, every two seconds, with a look at every connection."""
        now = time.monotonic()
        for port in self.ports:
            for one in list(port.open):
                one.check_timeouts(now)
        super().timeout_checker()

    def stop_listening(self) -> None:
        """Accept no more connections; those that are there go on."""
        for port in self.ports:
            port.stopListening()

    async def wait_for_answers(self, limit: float) -> None:
        """Wait until the answers that are under way have been handed over, but no longer than `limit` seconds."""
        for _ in range(round(limit / LOOK)):
            if not any(map(self._answering, list(self.connections))):
                return
            await asyncio.sleep(LOOK)

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        if scope["type"] == "websocket":
            scope["extensions"] = EXTENSIONS
        return super().create_application(protocol, scope)

    def close_websockets(self) -> None:
        """Tell every WebSocket that is still open that the server goes away, so that its client comes back."""
        for protocol in list(self.connections):
            if isinstance(protocol, WebSocket) and protocol.state == protocol.STATE_OPEN:
                protocol.close_with_code({"code": GOING_AWAY})

    def _answering(self, protocol: Any) -> bool:
        return not self.connections[protocol].get("disconnected")

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Hand the application's message to the connection, and keep it waiting while the client does not read.

        Daphne writes whatever it is given: a client that stopped reading made it hold 200,000 events. Twisted knows when
        a connection has more than 64 KiB unsent; `producerPaused` says so.
        """
        details = self.connections.get(protocol)
        if details is None or details.get("disconnected"):
            return
        transport = _transport(protocol)
        if message["type"] == "http.response.cut":
            # What has been said so far is true, but it is not the end: only a broken connection tells that to a client.
            if transport is not None:
                transport.abortConnection()
            return
        if message["type"] == "http.response.start":
            self.check_headers_type(message)
        protocol.handle_reply(message)
        if message.get("more_body") and transport is not None and transport.connected and not transport.disconnecting:
            # Twisted would write at its next turn of the loop, at the price of another system call and a log context.
            transport.doWrite()
        if transport is not None and transport.producerPaused:
            await _until_read(details, transport)

    def kill_all_applications(self) -> Any:
        """As Daphne's, which stumbles over a connection that has no application yet."""
        for protocol in [one for one, details in self.connections.items() if "application_instance" not in details]:
            del self.connections[protocol]
        return super().kill_all_applications()


def _transport(protocol: Any) -> Any:
    """The TCP connection below a request or a WebSocket; None once it is gone."""
    channel = getattr(protocol, "channel", protocol)
    return getattr(channel, "transport", None)


async def _until_read(details: dict[str, Any], transport: Any) -> None:
    """Wait until the client has read, or has lost its connection because it does not."""
    pause = LOOK
    while transport.producerPaused and not details.get("disconnected"):
        await asyncio.sleep(pause)
        pause = min(pause * LOOK_LESS, LOOK_MOST)
