"""Limits at the start of a server: of processes, of the address space, and of the rights of others to the files that the server makes."""

from __future__ import annotations

import os
import resource

import pytest

from responses_app.server.__main__ import main
from responses_app.server.bootstrap.process_limits import LimitTooLow, ensure_address_space, ensure_processes


@pytest.mark.parametrize(("umask", "expected"), [(0o000, 0o022), (0o002, 0o022), (0o077, 0o077)])
def test_umask_of_a_server_denies_writing_by_others(umask: int, expected: int) -> None:
    before = os.umask(umask)
    try:
        with pytest.raises(SystemExit):
            main(["--help"])
    finally:
        actual = os.umask(before)
    assert actual == expected


def test_limit_of_processes_that_allows_no_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(resource, "getrlimit", lambda _limit: (60, 60))
    with pytest.raises(
        LimitTooLow, match=r"only 60 processes and threads, and the server needs 128 or more: set `ulimit -u 4096`"
    ):
        ensure_processes()
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    ensure_processes()


def test_limit_of_the_address_space_that_allows_no_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = (400_000 << 10, 400_000 << 10)
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _limit: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _limit, both: raised.append(both))
    with pytest.raises(LimitTooLow, match=r"only 390 MiB of address space.*more than 1024: set `ulimit -v unlimited`"):
        ensure_address_space()
    limits = (400_000 << 10, resource.RLIM_INFINITY)
    ensure_address_space()
    assert raised == [(resource.RLIM_INFINITY, resource.RLIM_INFINITY)]
