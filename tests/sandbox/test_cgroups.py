"""Delegated cgroups, with a folder in place of the kernel's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from responses_app.sandbox.launch import delegated_cgroup
from responses_app.sandbox.runner import cgroups


def delegate(folder: Path, controllers: str) -> Path:
    """Make a folder that looks like a delegated cgroup."""
    own_group = folder / "own"
    (own_group / "runner").mkdir(parents=True)
    (own_group / "cgroup.controllers").write_text(controllers)
    return own_group


def test_controllers_are_enabled_and_the_launcher_moves_to_a_leaf(tmp_path: Path) -> None:
    own_group = delegate(tmp_path, "cpuset cpu io memory pids")
    assert delegated_cgroup.prepare(tmp_path, "/own") == str(own_group)
    assert (own_group / "runner" / "cgroup.procs").read_text() == str(os.getpid())
    assert (own_group / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"


@pytest.mark.parametrize("controllers", ["", "cpu", "memory"])
def test_cgroup_without_controllers_is_not_used(tmp_path: Path, controllers: str) -> None:
    delegate(tmp_path, controllers)
    assert delegated_cgroup.prepare(tmp_path, "/own") == ""


def test_missing_cgroup_is_not_used(tmp_path: Path) -> None:
    assert delegated_cgroup.prepare(tmp_path, "/missing") == ""


def test_container_has_a_cgroup_with_limits(tmp_path: Path) -> None:
    folder = Path(cgroups.create(str(tmp_path), "cntr_1", 1024, 128))
    limits = {file.name: file.read_text() for file in folder.iterdir()}
    assert limits == {
        "memory.max": str(1 << 30),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "130",
        "cpu.weight": "20",
    }
    cgroups.move(str(folder), [12])
    assert (folder / "cgroup.procs").read_text() == "12"


def test_without_a_delegated_cgroup_nothing_happens(tmp_path: Path) -> None:
    assert cgroups.create("", "cntr_1", 1024, 128) == ""
    assert cgroups.create(str(tmp_path / "missing"), "cntr_1", 1024, 128) == ""
    cgroups.move("", [1])
    cgroups.remove("")
