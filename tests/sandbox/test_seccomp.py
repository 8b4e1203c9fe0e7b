"""Programs of the system call filter, run by a small BPF machine."""

from __future__ import annotations

import struct

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from responses_app.sandbox.runner import seccomp
from responses_app.sandbox.runner.seccomp import (
    ALLOW,
    ARCHITECTURES,
    DENIED,
    EAFNOSUPPORT,
    ENETUNREACH,
    ENOSYS,
    EPERM,
    ERRNO,
    KILL_PROCESS,
)

CLONE_THREAD_FLAGS = 0x003D0F00
SIGCHLD = 17
machines = pytest.mark.parametrize("machine", sorted(ARCHITECTURES))


def decide(machine: str, number: int, *arguments: int, audit_number: int | None = None) -> int:
    """Run the program of a machine for a system call and return the action."""
    architecture = ARCHITECTURES[machine].audit_number if audit_number is None else audit_number
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *padded)
    program = list(seccomp.INSTRUCTION.iter_unpack(seccomp.program(machine)))
    accumulator = position = 0
    while True:
        code, if_true, if_false, operand = program[position]
        position += 1
        match code:
            case seccomp.LOAD_WORD:
                (accumulator,) = struct.unpack_from("=I", data, operand)
            case seccomp.RETURN:
                return int(operand)
            case seccomp.JUMP_EQUAL:
                position += if_true if accumulator == operand else if_false
            case seccomp.JUMP_GREATER_EQUAL:
                position += if_true if accumulator >= operand else if_false
            case seccomp.JUMP_ANY_BIT:
                position += if_true if accumulator & operand else if_false


@machines
@pytest.mark.parametrize("name", sorted(DENIED))
def test_denied_calls_fail(machine: str, name: str) -> None:
    number = DENIED[name][ARCHITECTURES[machine].column]
    if number is not None:
        assert decide(machine, number) == ERRNO | EPERM


@machines
@given(number=st.integers(0, 500), argument=st.sampled_from([0, 1, SIGCHLD]))
def test_all_other_calls_are_allowed(machine: str, number: int, argument: int) -> None:
    architecture = ARCHITECTURES[machine]
    listed = {numbers[architecture.column] for numbers in DENIED.values()}
    listed |= {architecture.clone3, architecture.socket, architecture.socketpair}
    assume(number not in listed)
    assert decide(machine, number, argument) == ALLOW


@machines
@pytest.mark.parametrize(
    ("flags", "action"),
    [
        (SIGCHLD, ALLOW),
        (CLONE_THREAD_FLAGS, ALLOW),
        (seccomp.CLONE_NEWUSER | SIGCHLD, ERRNO | EPERM),
        (0x00020000, ERRNO | EPERM),
        (0x40000000, ERRNO | EPERM),
    ],
)
def test_clone_makes_no_namespace(machine: str, flags: int, action: int) -> None:
    assert decide(machine, ARCHITECTURES[machine].clone, flags) == action


@machines
@pytest.mark.parametrize(
    ("family", "action"),
    [
        (1, ALLOW),
        *((family, ERRNO | ENETUNREACH) for family in (2, 10)),
        *((family, ERRNO | EAFNOSUPPORT) for family in (0, 16, 17, 38, 40)),
    ],
)
@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_socket_families_are_listed(machine: str, family: int, action: int, call: str) -> None:
    assert decide(machine, getattr(ARCHITECTURES[machine], call), family) == action


@machines
@pytest.mark.parametrize(("request_", "action"), [(0x5413, ALLOW), (0x5412, ERRNO | EPERM), (0x541C, ERRNO | EPERM)])
def test_terminal_input_cannot_be_faked(machine: str, request_: int, action: int) -> None:
    assert decide(machine, ARCHITECTURES[machine].ioctl, 0, request_) == action


@machines
@pytest.mark.parametrize(
    ("flags", "action"),
    [(0x21, ERRNO | EPERM), (0x23, ERRNO | EPERM), (0x8021, ERRNO | EPERM), (0x22, ALLOW), (0x01, ALLOW), (0x02, ALLOW)],
)
def test_shared_memory_has_a_file(machine: str, flags: int, action: int) -> None:
    assert decide(machine, ARCHITECTURES[machine].mmap, 0, 4096, 3, flags) == action


@machines
@pytest.mark.parametrize(("advice", "action"), [(4, ALLOW), (14, ALLOW), (21, ERRNO | EPERM)])
def test_memory_is_not_moved_to_swap(machine: str, advice: int, action: int) -> None:
    assert decide(machine, ARCHITECTURES[machine].madvise, 0, 4096, advice) == action


@machines
def test_clone3_does_not_exist(machine: str) -> None:
    assert decide(machine, ARCHITECTURES[machine].clone3) == ERRNO | ENOSYS


@machines
def test_foreign_architectures_are_killed(machine: str) -> None:
    assert decide(machine, 0, audit_number=0x40000003) == KILL_PROCESS


def test_x32_calls_do_not_exist() -> None:
    assert decide("x86_64", 0x40000000 | 101) == ERRNO | ENOSYS


def test_unknown_machines_have_no_filter() -> None:
    with pytest.raises(seccomp.UnknownArchitecture, match="riscv64"):
        seccomp.program("riscv64")
