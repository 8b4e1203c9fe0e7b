"""`manage.py doctor`: checks an installation and names the remedy of each problem."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from django.core import checks as django_checks
from django.core.management.base import CommandError, CommandParser
from django.db import connection

from project.unknown_variables import describe_doubtful_values, describe_unknown
from responses_app.connect.connection import KEY_VARIABLE
from responses_app.installation.data_dir import IS_CHECKOUT, MANAGE, data_dir
from responses_app.management.arguments import parse_seconds
from responses_app.management.base import DatabaseCommand, check_server_url
from responses_app.sandbox import bubblewrap
from responses_app.sandbox.launch import packages
from responses_app.sandbox.launch.problem import MachineFacts
from responses_app.server.doctor import database, engines, host, oidc, proxy, storage, tools
from responses_app.server.doctor.findings import FAILED, OK, WARNING, Check, CheckResults, Finding, run_checks
from responses_app.store.database_problems import connection_problem

LABELS: Final = {"ok": "ok", "warning": "WARNING", "failed": "FAILED", "skipped": "skipped"}

# Seconds that a check waits for a database that is away.
AWAY_TIMEOUT_S: Final = 0.2


class Command(DatabaseCommand):
    """Command `doctor`."""

    help = (
        "Check database, keys, models, host, storage, sandbox and sign-in provider, and with --url the proxy. "
        "Exit code 1 if a check has failed."
    )
    needs_database = False

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.add_argument("--url", metavar="URL", help="check the running server behind this address too")
        parser.add_argument(
            "--key", metavar="KEY", help="API key for --url (default: VERBATIM_API_KEY, or api_key in the data folder)"
        )
        parser.add_argument(
            "--wait",
            metavar="SECONDS",
            type=parse_seconds,
            default=0,
            help="with --url: time that a quiet WebSocket and a silent request must last",
        )
        parser.add_argument("--json", action="store_true", help="print the findings as JSON")

    def handle(self, *_args: Any, url: str | None, key: str | None, wait: float, json: bool, **_options: Any) -> None:
        """Run the command."""
        if url:
            check_server_url(url)
        findings = list[Finding]()
        for finding in run_checks(_all_checks(url, key, wait)):
            findings.append(finding)
            if not json:
                self.stdout.write(f"{LABELS[finding.status]:<8} {finding.name:<21} {finding.message}")
        failed = sum(finding.status == FAILED for finding in findings)
        if json:
            self._print_json(findings, failed)
        else:
            self._print_sandbox_facts()
        if failed:
            if json:
                sys.exit(1)
            raise CommandError(f"{failed} check{'s have' if failed > 1 else ' has'} failed.")

    def _print_json(self, findings: list[Finding], failed: int) -> None:
        body = {"status": "failed" if failed else "ok", "findings": [asdict(finding) for finding in findings]}
        self.stdout.write(json.dumps(body, indent=2))

    def _print_sandbox_facts(self) -> None:
        for name, value in _sandbox_facts(MachineFacts.read()):
            self.stdout.write(f"{'fact':<8} {name:<47} {'-' if value is None or value == '' else value}")


def _all_checks(url: str | None, key: str | None, wait_s: float) -> Iterator[tuple[str, Check]]:
    yield "settings", _check_settings
    if connection_problem():
        # Several checks would each wait for the pool. Only Django's wrapper for Postgres has a pool.
        connection.pool.timeout = AWAY_TIMEOUT_S  # type: ignore[attr-defined]
    yield from database.checks()
    yield from host.checks()
    yield from storage.checks()
    yield from engines.checks()
    yield from tools.checks()
    yield from oidc.checks()
    if url:
        yield from proxy.checks(url, key or _default_key(), wait_s)


def _check_settings() -> CheckResults:
    """Run Django's system checks, and look for variables that no setting reads."""
    problems = [message for message in django_checks.run_checks() if message.level >= django_checks.WARNING]
    for message in problems:
        status = FAILED if message.level >= django_checks.ERROR else WARNING
        yield status, f"{message.msg} {message.hint or ''}".strip()
    for sentence in (*describe_unknown(os.environ), *describe_doubtful_values()):
        yield WARNING, sentence
    if not problems:
        yield OK, "The settings can be used."


def _default_key() -> str:
    file = data_dir() / "api_key"
    return os.environ.get(KEY_VARIABLE) or (file.read_text().strip() if file.exists() else "")


def _sandbox_facts(facts: MachineFacts) -> Iterator[tuple[str, object]]:
    folder = data_dir() / packages.FOLDER
    installed = packages.is_installed(folder)
    yield "bubblewrap", bubblewrap.find_bubblewrap() if facts.has_bubblewrap else "missing"
    yield "kernel.unprivileged_userns_clone", facts.unprivileged_userns_clone
    yield "user.max_user_namespaces", facts.max_user_namespaces
    yield "kernel.apparmor_restrict_unprivileged_userns", facts.apparmor_restricts
    yield "AppArmor profile of this process", facts.apparmor_profile
    yield "seccomp filter of this process", "yes" if facts.has_seccomp_filter else "no"
    yield (
        "packages of the containers",
        packages.packages_folder(folder)
        if installed
        else f"{packages.summary(folder)}; {'bin/serve installs these, or ' if IS_CHECKOUT else ''}{MANAGE} sandbox --prepare",
    )
