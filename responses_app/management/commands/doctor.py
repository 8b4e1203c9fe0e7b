"""`manage.py doctor`: checks the parts of the machine that the server needs, and says what to do about a missing part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from responses_app.installation.data_dir import data_dir
from responses_app.sandbox import bubblewrap
from responses_app.sandbox.launch import packages
from responses_app.sandbox.launch.problem import MachineFacts, local_problem


class Command(BaseCommand):
    """Command `doctor`."""

    help = "Check whether this machine can run the sandbox of the code interpreter. Exit code 1 with a reason if not."
    requires_system_checks: list[str] = []  # noqa: RUF012 (so declared by Django)

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Run the command."""
        facts = MachineFacts.read()
        for name, value in self._lines(facts):
            self.stdout.write(f"{name:<48} {'-' if value is None or value == '' else value}")
        if problem := local_problem():
            raise CommandError(f"The sandbox does not work. {problem}")
        self.stdout.write("The sandbox works: a trial run has succeeded.")

    def _lines(self, facts: MachineFacts) -> list[tuple[str, object]]:
        folder = data_dir() / packages.FOLDER
        return [
            ("bubblewrap", bubblewrap.find_bubblewrap() if facts.has_bubblewrap else "missing"),
            ("kernel.unprivileged_userns_clone", facts.unprivileged_userns_clone),
            ("user.max_user_namespaces", facts.max_user_namespaces),
            ("kernel.apparmor_restrict_unprivileged_userns", facts.apparmor_restricts),
            ("AppArmor profile of this process", facts.apparmor_profile),
            ("seccomp filter of this process", "yes" if facts.has_seccomp_filter else "no"),
            ("packages of the containers", _packages(folder)),
        ]


def _packages(folder: Path) -> str:
    if packages.is_installed(folder):
        return str(packages.packages_folder(folder))
    return f"{packages.summary(folder)}; bin/serve installs these, or manage.py sandbox --prepare"
