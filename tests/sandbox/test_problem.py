"""Sentences about machines that forbid the sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from responses_app.sandbox.launch import launcher
from responses_app.sandbox.launch.problem import MachineFacts, forbidding_part, local_problem, missing_part

NO_PERMISSION = "bwrap: No permissions to create a new namespace, likely because the kernel does not allow non-privileged users"


@pytest.mark.parametrize(
    ("facts", "message", "expected"),
    [
        (MachineFacts(unprivileged_userns_clone=0), NO_PERMISSION, "kernel.unprivileged_userns_clone=0"),
        (MachineFacts(max_user_namespaces=0), "bwrap: Creating new namespace failed", "user.max_user_namespaces=0"),
        (MachineFacts(apparmor_restricts=1), "bwrap: setting up uid map: Permission denied", "bwrap-userns-restrict"),
        (MachineFacts(has_seccomp_filter=True), NO_PERMISSION, "seccomp filter of the container runtime"),
        (
            MachineFacts(apparmor_profile="docker-default (enforce)"),
            "bwrap: Failed to make / slave: Permission denied in mount",
            "docker-default (enforce)",
        ),
        (
            MachineFacts(has_seccomp_filter=True),
            "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
            "systempaths",
        ),
        (MachineFacts(), "bwrap: Can't find source path /closed/x: Permission denied", "may not read Python"),
        (MachineFacts(), "something\nelse", "failed: else"),
        (MachineFacts(), "", "no message"),
    ],
)
def test_forbidding_part_is_named(facts: MachineFacts, message: str, expected: str) -> None:
    assert expected in forbidding_part(facts, message)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (MachineFacts(), None),
        (MachineFacts(machine="riscv64"), "not Linux on riscv64"),
        (MachineFacts(system="Darwin", machine="aarch64"), "not Darwin"),
        (MachineFacts(has_bubblewrap=False), "apt-get install bubblewrap"),
    ],
)
def test_missing_part_is_named(facts: MachineFacts, expected: str | None) -> None:
    problem = missing_part(facts)
    assert problem == expected if expected is None else expected in str(problem)


def test_trial_run_succeeds_on_this_machine() -> None:
    assert local_problem() is None


@pytest.mark.parametrize(
    ("folder", "problem"), [("site-packages", "None"), ("packages", "The sandbox does not see a Python package")]
)
def test_packages_by_a_link_are_seen_in_folders_of_packages_alone(tmp_path: Path, folder: str, problem: str) -> None:
    venv.create(tmp_path / "venv")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    linked = tmp_path / folder
    linked.symlink_to(sysconfig.get_path("purelib"))
    (tmp_path / "venv" / "lib" / version / "site-packages" / "linked.pth").write_text(f"{linked}\n")
    code = "from responses_app.sandbox.launch.problem import local_problem; print(local_problem())"
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "python", "-c", code],
        env={**os.environ, "PYTHONPATH": str(launcher.ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(problem)
