"""Ports that are reserved before the server listens."""

from __future__ import annotations

import errno
import socket

import pytest

from responses_app.server.bootstrap.ports import CannotListen, check, reserve, start_listening


def test_reserved_port_that_another_program_has_taken_is_named() -> None:
    with reserve("127.0.0.1") as reserved, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(reserved.getsockname())
        other.listen()
        with pytest.raises(CannotListen, match=rf":{reserved.getsockname()[1]}: another program listens there already"):
            start_listening(reserved.fileno(), 5)


def test_reserved_port_listens() -> None:
    with reserve("127.0.0.1") as reserved:
        start_listening(reserved.fileno(), 5)
        socket.create_connection(reserved.getsockname(), timeout=5).close()


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "[::1]", "http://127.0.0.1", "a..b", f"{'a' * 64}.b"])
def test_host_with_more_than_an_address_is_named_with_the_form(host: str) -> None:
    with pytest.raises(CannotListen) as refused:
        check(host, 8000)
    assert str(refused.value).startswith(f"cannot listen on {host}: ")
    assert "without a port or brackets" in str(refused.value)


def test_link_local_address_without_an_interface_is_named_with_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    # A machine without IPv6 has another error.
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(CannotListen) as refused:
        check("fe80::1", 8000)
    assert str(refused.value) == "cannot listen on [fe80::1]:8000: a link-local address needs its interface, as in fe80::1%eth0"
