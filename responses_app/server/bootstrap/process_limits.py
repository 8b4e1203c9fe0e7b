"""Limits of a server's processes at the start: open files, processes, address space, and the rights of new files."""

from __future__ import annotations

import os
import resource
from typing import Final

# With fewer the core of vLLM does not start. Each connection needs some more, see server.http.admission.
MIN_OPEN_FILES: Final = 256
# A server with the demo model has about 90 processes and threads before its first request.
MIN_PROCESSES: Final = 128
# A process without an engine has 1.1 GiB of address space after the start, of which it uses a fifth. vLLM needs far more.
MIN_ADDRESS_SPACE: Final = 1 << 30


class LimitTooLow(Exception):
    """Limit of the system under which no server starts."""


def deny_writing_by_others() -> None:
    """Set the umask so that other accounts cannot change new files of this process and its children."""
    os.umask(os.umask(0o077) | 0o022)


def ensure_open_files() -> None:
    """Raise the soft limit of open files to MIN_OPEN_FILES. Raises LimitTooLow if the hard limit is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < MIN_OPEN_FILES:
        raise LimitTooLow(
            f"a process may open only {hard} files, and the server needs {MIN_OPEN_FILES} and one for each connection: "
            "set `ulimit -n 65536` in the shell, LimitNOFILE=65536 in systemd, or --ulimit nofile=65536 for a container"
        )
    if soft != resource.RLIM_INFINITY and soft < MIN_OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (MIN_OPEN_FILES, hard))


def ensure_processes() -> None:
    """Raise a soft limit of processes below MIN_PROCESSES to the hard limit. Raises LimitTooLow if that is lower, too.

    The kernel does not apply the limit to root.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.getuid() and hard != resource.RLIM_INFINITY and hard < MIN_PROCESSES:
        raise LimitTooLow(
            f"this user may have only {hard} processes and threads, and the server needs {MIN_PROCESSES} or more: "
            "set `ulimit -u 4096` in the shell, or LimitNPROC=4096 in systemd"
        )
    if soft != resource.RLIM_INFINITY and soft < MIN_PROCESSES:
        resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))


def ensure_address_space() -> None:
    """Raise a soft limit of the address space below MIN_ADDRESS_SPACE to the hard limit. Raises LimitTooLow if that is lower, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY and hard < MIN_ADDRESS_SPACE:
        raise LimitTooLow(
            f"a process may have only {hard >> 20} MiB of address space, and the server needs more than {MIN_ADDRESS_SPACE >> 20}: "
            "set `ulimit -v unlimited` in the shell, or LimitAS=infinity in systemd, and limit memory with MemoryMax instead"
        )
    if soft != resource.RLIM_INFINITY and soft < MIN_ADDRESS_SPACE:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
