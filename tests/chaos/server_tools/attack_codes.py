"""Attacks as code that a model writes, each with a part of the output that shows the failure of the attack."""

from __future__ import annotations

from dataclasses import dataclass

SECRET = "the-secret-of-the-server"
SYSCALL = """import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    print(os.strerror(ctypes.get_errno()) if getattr(libc, name)(*arguments) == -1 else 'it worked')
"""
DENIED = "Operation not permitted"
# Prints the content of what can be read, and how many files and sockets of the server were found.
READ = """import glob, os, socket
found = [dict(os.environ)]
paths = [f'{folder}/{name}' for folder, _, names in os.walk(SECRETS) for name in names]
paths += ['/etc/shadow', '/etc/passwd', '/root/.bashrc', *glob.glob('/proc/*/environ'), *glob.glob('/proc/*/cmdline')]
opened = 0
for path in paths:
    try:
        found.append(open(path, 'rb').read())
        opened += not path.startswith('/proc/')
    except OSError:
        pass
sockets = 0
for path in (SECRETS + '/data/sandbox.sock', SECRETS + '/data/postgres/.s.PGSQL.5432'):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        sockets += 1
    except OSError:
        pass
pids = [name for name in os.listdir('/proc') if name.isdigit()]
print(found)
print(opened, 'files', sockets, 'sockets', len(pids), 'processes')
"""


@dataclass(frozen=True, slots=True)
class Attack:
    """Attack: `expected` is in the output if the attack fails."""

    name: str
    code: str
    expected: str


ATTACKS = (
    Attack("network", "import socket; socket.create_connection(('1.1.1.1', 53), 1)", "Network is unreachable"),
    Attack("local network", "import socket; socket.create_connection(('127.0.0.1', 5432), 1)", "Network is unreachable"),
    Attack("host names", "import socket; socket.getaddrinfo('example.com', 80)", "gaierror"),
    Attack("fork bomb", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "longer than 3 seconds"),
    Attack("64 GB", "b = bytearray(64 << 30)", "MemoryError"),
    Attack("all memory", "x = []\nwhile True: x.append(bytearray(1 << 26))", "MemoryError"),
    Attack("endless output", "while True: print('x' * 10000)", "characters were cut"),
    Attack("endless loop", "while True: pass", "longer than 3 seconds"),
    Attack("full disk", "f = open('/mnt/data/big', 'wb')\nwhile True: f.write(bytes(1 << 20))", "OSError"),
    Attack("files, environment, sockets, processes", READ, "0 files 0 sockets 2 processes"),
    Attack("ptrace", f"{SYSCALL}call('ptrace', 16, 1, 0, 0)", DENIED),
    Attack("mount", f"{SYSCALL}call('mount', b'none', b'/tmp', b'tmpfs', 0, None)", DENIED),
    Attack("namespaces", f"{SYSCALL}call('unshare', 0x10000000)", DENIED),
    Attack("keyctl", f"{SYSCALL}call('syscall', 219 if os.uname().machine == 'aarch64' else 250, 0, -3, 0)", DENIED),
    Attack("memory of the machine", "open('/dev/mem', 'rb')", "FileNotFoundError"),
    Attack("device files", "import os; os.mknod('/mnt/data/d', 0o60666, os.makedev(8, 0))", "PermissionError"),
    Attack("symbolic link", "import os; os.symlink('/etc/passwd', 'a.txt'); open('a.txt').read()", "FileNotFoundError"),
    Attack("symbolic link to a file", "import os; os.symlink(SECRETS + '/secret.txt', 'b.txt'); print('linked')", "linked"),
    Attack("symbolic link to a folder", "import os; os.symlink('/', 'root'); print('linked')", "linked"),
    Attack("hard link", "import os; os.link('/usr/bin/env', '/mnt/data/env')", "cross-device"),
    Attack(
        "kill", "import os\nfor pid in range(1, 50):\n    try: os.kill(pid, 0) or print(pid)\n    except OSError: pass", "2"
    ),
)
