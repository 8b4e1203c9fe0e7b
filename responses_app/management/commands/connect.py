"""`manage.py connect AGENT`: configures a client, such as Codex, for a model of the running server, and checks the connection."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from responses_app.connect.agents.table import AGENTS
from responses_app.connect.changes import Change, find_secrets, plan, write
from responses_app.connect.check import ConnectionProblem, check_connection, check_server, read_model
from responses_app.connect.connection import Agent, Connection
from responses_app.connect.edits.errors import CannotEdit
from responses_app.management.arguments import text_up_to
from responses_app.models import ApiKey
from responses_app.models.keys import MAX_NAME
from responses_app.utils.invisible import escaped


class Command(BaseCommand):
    """Command `connect`."""

    help = "Print or write the configuration of a client for a model of the running server, with a new API key, and check it."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.add_argument("agent", choices=AGENTS, help=f"client: {', '.join(AGENTS)}")
        parser.add_argument("--model", metavar="NAME", help="name of a served model (default: the first)")
        parser.add_argument(
            "--url", default="http://127.0.0.1:8000", help="address of the server (default: http://127.0.0.1:8000)"
        )
        parser.add_argument("--key", help="API key to use (default: that of an earlier run, else a new key)")
        parser.add_argument(
            "--project", type=text_up_to(MAX_NAME), help="project of the new key (default: default)", default="default"
        )
        parser.add_argument("--home", type=Path, default=Path.home(), help="home folder of the client's user (default: yours)")
        parser.add_argument("--write", action="store_true", help="write the files, after the changes were shown, with backups")

    def handle(self, *_args: Any, agent: str, model: str | None, url: str, home: Path, write: bool, **options: Any) -> None:
        """Run the command."""
        base_url, chosen = f"{url.rstrip('/').removesuffix('/v1')}/v1", AGENTS[agent]
        try:
            present = options["key"] or _known_key(chosen, options["project"], home)
            with _key(present, f"connect {agent}", options["project"], base_url) as key:
                connection = Connection(base_url, key, read_model(base_url, key, model))
                changes = plan(chosen, connection, home, os.environ)
                self._show(changes, connection, write)
                answer = check_connection(connection, agent)
                if write:
                    self._write(changes)
        except (ConnectionProblem, CannotEdit) as problem:
            raise CommandError(escaped(str(problem))) from problem
        self._finish(chosen, connection, answer)
        if changes and not write:
            self.stdout.write("Nothing was written: add --write to write the files.")
        if not (write or present):
            page = f"{base_url.removesuffix('/v1')}/keys"
            self.stdout.write(f'The key is new: delete "connect {agent}" at {page} if you do not use it.')

    def _show(self, changes: Sequence[Change], connection: Connection, write: bool) -> None:
        for change in changes:
            if write:
                self.stdout.write(change.diff(connection.key) + "\n")
            else:
                self.stdout.write(f"# {change.path}\n{change.after.rstrip()}\n")

    def _write(self, changes: Sequence[Change]) -> None:
        for change in changes:
            try:
                backup = write(change)
            except OSError as error:
                raise CommandError(f"{change.path} cannot be written: {error.strerror}.") from error
            self.stdout.write(f"{change.path} was written." + (f" The old file is {backup}." if backup else ""))

    def _finish(self, agent: Agent, connection: Connection, answer: str) -> None:
        model, variables = connection.model, agent.variables(connection)
        for name, value in variables.items():
            self.stdout.write(f"export {name}={shlex.quote(value)}")
        pictures = "takes pictures" if model.supports_images else "takes no pictures"
        efforts = f"efforts {', '.join(model.efforts)}" if model.efforts else "no reasoning"
        self.stdout.write(f"{model.name}: {model.context_window} tokens of context, {efforts}, {pictures}. {answer}")
        for line in (
            agent.context_problem(model.context_window),
            agent.note,
            f"Start: {agent.start.replace('MODEL', model.name)}",
        ):
            if line:
                self.stdout.write(line)


def _known_key(agent: Agent, project: str, home: Path) -> str | None:
    """Return the key that an earlier run has made for the agent and that the agent still has, if it is valid. Raises CannotEdit."""
    for secret in find_secrets(agent, home, os.environ):
        row = ApiKey.find(secret)
        if row is not None and (row.name, row.project) == (f"connect {agent.name}", project) and row.valid_until is None:
            return secret
    return None


@contextmanager
def _key(given_key: str | None, name: str, project: str, base_url: str) -> Iterator[str]:
    """Yield the given key, or a new one, which is deleted again if the block fails. Raises ConnectionProblem."""
    if given_key:
        if not (given_key.isascii() and given_key.isprintable()) or " " in given_key:
            raise ConnectionProblem(
                "--key holds characters that no key has, such as a blank or a line break: copy the key again."
            )
        yield given_key
        return
    check_server(base_url)
    row, key = ApiKey.make(name, project)
    try:
        yield key
    except BaseException:
        row.delete()
        raise
