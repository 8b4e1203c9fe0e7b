"""Seccomp filter as a BPF program: denied system calls fail with EPERM, foreign architectures kill the process.

`program` is pure: the bytes are an array of `struct sock_filter`, as bubblewrap takes from a descriptor (`--seccomp`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

INSTRUCTION = struct.Struct("=HBBI")
# Instructions of linux/bpf_common.h.
LOAD_WORD = 0x20
JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_ANY_BIT = 0x15, 0x35, 0x45
RETURN = 0x06
# Actions of linux/seccomp.h.
KILL_PROCESS, ERRNO, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
EPERM, ENOSYS, EAFNOSUPPORT, ENETUNREACH = 1, 38, 97, 101
# Offsets of struct seccomp_data; the low half of a 64-bit argument comes first.
NUMBER_OFFSET, ARCHITECTURE_OFFSET, FIRST_ARGUMENT_OFFSET = 0, 4, 16
SECOND_ARGUMENT_OFFSET, THIRD_ARGUMENT_OFFSET, FOURTH_ARGUMENT_OFFSET = 24, 32, 40
# Numbers from here on are system calls of the x32 interface of x86_64.
X32_BIT = 0x40000000

CLONE_NEWUSER = 0x10000000
# All namespace flags of clone that fit into the flags next to the signal: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, USER, PID, NET.
CLONE_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | CLONE_NEWUSER | 0x20000000 | 0x40000000
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
# The kernel has one limit on the memory of the TCP and UDP sockets of all namespaces. Sockets of a loopback interface could use it up.
NETWORK_FAMILIES = (AF_INET, AF_INET6)
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
# The bit is also in MAP_SHARED_VALIDATE.
MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20
MADV_PAGEOUT = 21

# Denied system calls with the numbers of x86_64 and aarch64; None where the architecture has no such call.
DENIED: Mapping[str, tuple[int | None, int | None]] = {
    # Tracing and memory of other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    # Keys, kernel programs, performance counters.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # Namespaces and mounts.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # The kernel has one limit on the watches of a user, whom all containers share.
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    # The machine has one limit on the events of asynchronous I/O (fs.aio-max-nr).
    "io_setup": (206, 0),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    # A session has a share of the processor of its own, so code stays in the session that the runner made.
    "setsid": (112, 157),
    # The machine.
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "syslog": (103, 116),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "personality": (135, 92),
    # Memory that no process maps, and which a limit per process does not see.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "vmsplice": (278, 75),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # Memory policies.
    "mbind": (237, 235),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """Architecture of the kernel's audit numbers. `column` is the index in DENIED."""

    audit_number: int
    column: int
    clone: int
    clone3: int
    socket: int
    socketpair: int
    ioctl: int
    mmap: int
    madvise: int
    has_x32: bool


ARCHITECTURES = {
    "x86_64": Architecture(
        0xC000003E, 0, clone=56, clone3=435, socket=41, socketpair=53, ioctl=16, mmap=9, madvise=28, has_x32=True
    ),
    "aarch64": Architecture(
        0xC00000B7, 1, clone=220, clone3=435, socket=198, socketpair=199, ioctl=29, mmap=222, madvise=233, has_x32=False
    ),
}


class UnknownArchitecture(Exception):
    """Machine for which no filter exists."""


def program(machine: str) -> bytes:
    """Return the filter for a machine as `platform.machine` names it. Raises UnknownArchitecture."""
    try:
        architecture = ARCHITECTURES[machine]
    except KeyError:
        raise UnknownArchitecture(f"the sandbox has no system call filter for {machine}") from None
    return b"".join(INSTRUCTION.pack(*instruction) for instruction in instructions(architecture))


def instructions(architecture: Architecture) -> list[tuple[int, int, int, int]]:
    """Return the instructions as (code, jump if true, jump if false, operand)."""
    listing = [
        (LOAD_WORD, 0, 0, ARCHITECTURE_OFFSET),
        (JUMP_EQUAL, 1, 0, architecture.audit_number),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD_WORD, 0, 0, NUMBER_OFFSET),
    ]
    if architecture.has_x32:
        listing += [(JUMP_GREATER_EQUAL, 0, 1, X32_BIT), (RETURN, 0, 0, ERRNO | ENOSYS)]
    for numbers in DENIED.values():
        number = numbers[architecture.column]
        if number is not None:
            listing += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | EPERM)]
    # The C library falls back to clone, whose flags a filter can read; those of clone3 are behind a pointer.
    listing += [(JUMP_EQUAL, 0, 1, architecture.clone3), (RETURN, 0, 0, ERRNO | ENOSYS)]
    listing += _argument(architecture.clone, FIRST_ARGUMENT_OFFSET, [(JUMP_ANY_BIT, 0, 1, CLONE_NAMESPACES)], EPERM)
    for call in (architecture.socket, architecture.socketpair):
        listing += _argument(call, FIRST_ARGUMENT_OFFSET, _none_of((AF_UNIX, *NETWORK_FAMILIES)), EAFNOSUPPORT)
        for family in NETWORK_FAMILIES:
            listing += _argument(call, FIRST_ARGUMENT_OFFSET, [(JUMP_EQUAL, 0, 1, family)], ENETUNREACH)
    for request in (TIOCSTI, TIOCLINUX):
        listing += _argument(architecture.ioctl, SECOND_ARGUMENT_OFFSET, [(JUMP_EQUAL, 0, 1, request)], EPERM)
    # Pages of shared memory without a file stay after munmap or madvise, and no count of a process has them.
    is_shared = [(JUMP_ANY_BIT, 0, 2, MAP_ANONYMOUS), (JUMP_ANY_BIT, 0, 1, MAP_SHARED)]
    listing += _argument(architecture.mmap, FOURTH_ARGUMENT_OFFSET, is_shared, EPERM)
    # Pages in the swap space are not resident.
    listing += _argument(architecture.madvise, THIRD_ARGUMENT_OFFSET, [(JUMP_EQUAL, 0, 1, MADV_PAGEOUT)], EPERM)
    return [*listing, (RETURN, 0, 0, ALLOW)]


def _argument(call: int, offset: int, test: Sequence[tuple[int, int, int, int]], error: int) -> list[tuple[int, int, int, int]]:
    """Deny `call` if `test` holds for the argument at `offset`. The last jump of `test` passes over the denial."""
    body = [(LOAD_WORD, 0, 0, offset), *test, (RETURN, 0, 0, ERRNO | error), (LOAD_WORD, 0, 0, NUMBER_OFFSET)]
    return [(JUMP_EQUAL, 0, len(body), call), *body]


def _none_of(values: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """Return jumps over the denial for each of `values`."""
    return [(JUMP_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
