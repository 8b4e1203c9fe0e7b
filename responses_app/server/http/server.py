"""Daphne server with back-pressure, limits of bodies and slow clients, and a graceful shutdown."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from heapq import nsmallest
from operator import itemgetter
from typing import Any

from daphne.http_protocol import HTTPFactory
from daphne.server import Server
from twisted.internet import reactor
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.protocol import Protocol, connectionDone
from twisted.web.http import _GenericHTTPChannelProtocol

from responses_app.server.http import tcp_limits
from responses_app.server.http.admission import Gate, affordable_connections
from responses_app.server.http.errors import BODY_LIMIT, HttpChannel, overloaded
from responses_app.server.http.pacing import Pacer
from responses_app.server.http.request import HttpRequestHandler
from responses_app.server.http.tcp_limits import LimitedConnection, prepare
from responses_app.server.http.unfinished import ByteBudget
from responses_app.server.http.websocket import EXTENSIONS, WebSocket
from responses_app.wire.asgi_extensions import BODY_FILE, DIRECT_WRITER
from responses_app.wire.transport_limits import TransportLimits

# Bytes read from the spool file at once: a body of 64 MiB takes 256 messages instead of Daphne's 8,192.
BUFFER = 256 * 1024
# Connections over the limit that get an answer; further connections are closed at once.
MAX_ANSWERED_OVERLOADS = 64
OVERLOAD_ANSWER_S = 1.0
# Connections that the kernel accepts ahead of the server, at most `net.core.somaxconn`. The kernel drops or resets
# further connections; clients repeat a dropped one after a second. Twisted's default is 50.
BACKLOG = 4096
# While all connections are in use, those that wait for a request end in place of new ones: the oldest first, so many at once, so that
# searches among all of them are rare.
ENDED_AT_ONCE, SEARCH_EVERY_S = 64, 0.1
GOING_AWAY = 1001
# Unfinished uploads, as multiples of the largest upload: those of the process, and those of a key.
UPLOADS, UPLOADS_EACH = 8, 2
# Seconds between checks for running answers at the end.
CHECK_S = 0.02
# A proxy that kept a connection may have sent a request just before this server closes the connection. So an idle connection is closed
# after this time in seconds.
KEPT_S = 0.3

Application = Callable[[dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]


def tcp(host: str, port: int) -> str:
    """Return Twisted's endpoint string for an address."""
    return f"tcp:port={port}:backlog={BACKLOG}:interface={host.replace(':', chr(92) + ':')}"


def detect_family(port: Any) -> None:
    """Set the family of an adopted socket: Daphne takes each for IPv4, and would read other bytes as the address of an IPv6 client."""
    if port.socket.family == socket.AF_INET:
        listening = socket.socket(fileno=port.socket.detach())
        port.socket, port.fileno, port.addressFamily = listening, listening.fileno, listening.family
        port._addressType = IPv6Address if listening.family == socket.AF_INET6 else IPv4Address


def adopted(descriptor: int) -> str:
    """Return Twisted's endpoint string for a listening socket, which is duplicated and closed."""
    return f"fd:fileno={descriptor}"


class HttpFactory(HTTPFactory):  # type: ignore[misc]
    """Factory of HTTP channels. Twisted sets TCP_NODELAY on each connection, which a test checks."""

    def log(self, request: Any) -> None:
        """Write no line of an access log, which nobody reads (overrides Twisted)."""
        del request

    def protocol(self) -> Any:
        """Make a Twisted protocol around an HttpChannel."""
        return _GenericHTTPChannelProtocol(HttpChannel())

    def buildProtocol(self, addr: Any) -> Any:
        """Make a protocol, or an overload answer beyond the limit of connections (overrides Twisted)."""
        over = self.server.open_connections - self.server.limit + 1
        if over > 0 and not self.server.make_room():
            return Overload(self.server.limit) if over <= MAX_ANSWERED_OVERLOADS else None
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = HttpRequestHandler
        return protocol


class Overload(Protocol):  # type: ignore[misc]
    """Connection over the limit, which is answered and closed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def connectionMade(self) -> None:
        """Send the answer and close (overrides Twisted)."""
        self.transport.write(overloaded(self._limit))
        self.transport.loseWriteConnection()
        self._end = reactor.callLater(OVERLOAD_ANSWER_S, self.transport.abortConnection)

    def connectionLost(self, reason: Any = connectionDone) -> None:
        """End the connection (overrides Twisted)."""
        del reason
        if self._end.active():
            self._end.cancel()


class DaphneServer(Server):  # type: ignore[misc]
    """Daphne server of a listening address and an ASGI application, on the reactor's event loop."""

    def __init__(
        self,
        application: Application,
        endpoint: str,
        ready: Callable[[], None],
        gate: Gate,
        limits: TransportLimits,
    ) -> None:
        self.gate, self.limits = gate, limits
        self.budget = ByteBudget(limits.unfinished, limits.unfinished_each)
        self.upload_budget = ByteBudget(UPLOADS * limits.upload, UPLOADS_EACH * limits.upload)
        self.pacer = Pacer()
        self.limit = affordable_connections(limits.connections)
        super().__init__(
            application,
            endpoints=[endpoint],
            signal_handlers=False,
            ready_callable=ready,
            # Streams and sockets may be silent while a model generates; the application decides when they end.
            http_timeout=None,
            websocket_timeout=-1,
            ping_interval=limits.ping_interval_s,
            ping_timeout=tcp_limits.PING_LIMIT,
            websocket_max_message_size=BODY_LIMIT,
            websocket_max_frame_size=BODY_LIMIT,
            request_buffer_size=BUFFER,
            server_name="",
        )
        self.ports: list[Any] = []
        self.failure: str | None = None
        # Connections that were ended for new ones, and the time of the next search for such.
        self._room, self._next_search = 0, 0.0
        # True if each connection ends after its next answer: proxies keep connections for further requests.
        self.is_leaving = False

    def listen_success(self, port: Any) -> None:
        """Set socket options and report readiness (overrides Daphne)."""
        detect_family(port)
        port.factory = HttpFactory(self)
        port.factory.doStart()
        self.ws_factory.protocol = WebSocket
        port.transport, port.open, port.pacer = LimitedConnection, set(), self.pacer
        prepare(port.socket)
        self.ports.append(port)

    @property
    def open_connections(self) -> int:
        """Return the number of connected clients."""
        return sum(len(port.open) for port in self.ports)

    def make_room(self) -> bool:
        """End connections without a request for a new one. Return False if no client has waited for WAITING_S seconds."""
        now = time.monotonic()
        if now >= self._next_search:
            connected = [(one.waiting_since, one) for port in self.ports for one in port.open]
            waiting = [(since, one) for since, one in connected if since is not None and now - since >= tcp_limits.WAITING_S]
            ended = nsmallest(ENDED_AT_ONCE, waiting, key=itemgetter(0))
            for _, one in ended:
                one.abortConnection()
            self._room, self._next_search = len(ended), now + SEARCH_EVERY_S
        if self._room == 0:
            return False
        self._room -= 1
        return True

    def listen_error(self, failure: Any) -> None:
        """Record the failure and stop (overrides Daphne)."""
        self.failure = failure.getErrorMessage()
        self.stop()

    def timeout_checker(self) -> None:
        """Check the time limits of every connection; Daphne calls this every two seconds."""
        now = time.monotonic()
        for port in self.ports:
            for open_connection in list(port.open):
                open_connection.check_timeouts(now)
        super().timeout_checker()

    def may_get_requests(self) -> bool:
        """Close connections that have been idle for KEPT_S seconds. Return True if others are idle or have a request without an answer."""
        now = time.monotonic()
        connected = [one for port in self.ports for one in list(port.open)]
        idle = [one for one in connected if one.idle_since is not None]
        for open_connection in idle:
            if now - open_connection.idle_since >= KEPT_S:
                open_connection.loseConnection()
        return any(one.has_unanswered_request for one in connected) or any(now - one.idle_since < KEPT_S for one in idle)

    def stop_listening(self) -> None:
        """Accept no more connections; open connections continue, each to the end of its next answer."""
        self.is_leaving = True
        for port in self.ports:
            port.stopListening()

    async def wait_for_answers(self, limit: float) -> None:
        """Wait at most `limit` seconds until all running answers are written."""
        for _ in range(round(limit / CHECK_S)):
            if not any(map(self._answering, list(self.connections))):
                return
            await asyncio.sleep(CHECK_S)

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Start the application for a connection (overrides Daphne)."""
        scope["extensions"] = {DIRECT_WRITER: protocol}
        if scope["type"] == "websocket":
            scope["extensions"] |= EXTENSIONS
        elif protocol.is_upload:
            scope["extensions"][BODY_FILE] = protocol.take_upload()
        return super().create_application(protocol, scope)

    def close_websockets(self) -> None:
        """Close every WebSocket with code 1001, so that clients reconnect."""
        for protocol in list(self.connections):
            if isinstance(protocol, WebSocket) and protocol.state == protocol.STATE_OPEN:
                protocol.close_with_code({"code": GOING_AWAY})

    def _answering(self, protocol: Any) -> bool:
        return not self.connections[protocol].get("disconnected")

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Pass a message of the application to the connection, and wait while the client does not read.

        Daphne alone would buffer without a limit for a client that stopped reading. Twisted sets `producerPaused` when a
        connection has more than 64 KiB unsent.
        """
        details = self.connections.get(protocol)
        if details is None or details.get("disconnected"):
            return
        transport = _transport(protocol)
        if message["type"] == "http.response.cut":
            # The stream is incomplete; only a broken connection shows that to the client.
            if transport is not None:
                transport.abortConnection()
            return
        if message["type"] == "http.response.start":
            self.check_headers_type(message)
        protocol.handle_reply(message)
        if transport is not None and transport.producerPaused:
            await transport.wait_until_read()

    def kill_all_applications(self) -> Any:
        """Cancel all applications; unlike Daphne, accept connections without an application."""
        for protocol in [one for one, details in self.connections.items() if "application_instance" not in details]:
            del self.connections[protocol]
        return super().kill_all_applications()


def _transport(protocol: Any) -> Any:
    """Return the TCP connection of a request or a WebSocket, or None after the connection has ended."""
    channel = getattr(protocol, "channel", protocol)
    return getattr(channel, "transport", None)
