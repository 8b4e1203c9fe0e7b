"""`manage.py erase`: erases the data of a project, a conversation, an account or a person, after a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from responses_app.management.base import DatabaseCommand
from responses_app.management.progress import ProgressLine
from responses_app.models import Conversation
from responses_app.store import audit_log, person
from responses_app.store.content import erasure
from responses_app.utils.user_model import User
from responses_app.web.accounts import account


class Command(DatabaseCommand):
    """Command `erase`."""

    help = (
        "Erase the data of a project, a conversation, an account or a person. Without --yes, only print what would be erased."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--project", metavar="NAME", help="all responses, conversations, items and files of a project")
        what.add_argument("--conversation", metavar="ID", help="a conversation with its responses and items")
        what.add_argument("--user", metavar="NAME", help="an account with its sessions and memberships; projects stay")
        what.add_argument("--safety-identifier", metavar="ID", help="all responses of requests with this safety_identifier")
        parser.add_argument("--keys", action="store_true", help="with --project: its API keys and memberships too")
        parser.add_argument("--yes", action="store_true", help="do it")

    def handle(self, *_args: Any, yes: bool, keys: bool, **what: Any) -> None:
        """Run the command."""
        if keys and not what["project"]:
            raise CommandError("--keys goes with --project.")
        if what["user"]:
            self._user(what["user"], yes)
        elif what["safety_identifier"]:
            self._person(what["safety_identifier"], yes)
        elif what["conversation"]:
            self._conversation(what["conversation"], yes)
        else:
            self._project(what["project"], keys, yes)
        if not yes:
            self.stdout.write("Nothing was erased. Add --yes to erase the data.")

    def _project(self, project: str, keys: bool, yes: bool) -> None:
        counts = erasure.count_project(project)
        if not any(counts.values()):
            raise CommandError(f"There is nothing of a project {project!r}.")
        self._print_summary(f"project {project!r}", counts)
        if not keys:
            self.stdout.write("The API keys and memberships stay; --keys erases them too.")
        if yes:
            self._record(f"project {project}", project)
            self._do(erasure.erase_project(project), counts)
            self._do(erasure.erase_keys(project) if keys else iter(()), counts)

    def _conversation(self, uid: str, yes: bool) -> None:
        row = Conversation.objects.filter(uid=uid).first()
        if row is None:
            raise CommandError(f"There is no conversation {uid!r}.")
        counts = erasure.count_conversation(row)
        self._print_summary(f"conversation {uid!r}", counts)
        self.stdout.write("Items that a response outside of it needs stay.")
        if yes:
            self._record(f"conversation {uid}")
            self._do(erasure.erase_conversation(row), counts)

    def _person(self, identifier: str, yes: bool) -> None:
        responses = person.responses_of(identifier)
        if not responses.exists():
            raise CommandError(f"No stored response has the safety_identifier {identifier!r}.")
        counts = person.count_person(responses)
        self._print_summary(f"safety_identifier {identifier!r}", counts)
        self.stdout.write("Items that a response of another person continues stay, and so do uploaded files.")
        if yes:
            self._record(f"safety_identifier {identifier}")
            self._do(person.erase_person(responses), counts)

    def _user(self, name: str, yes: bool) -> None:
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"There is no account {name!r}.")
        self._print_summary(f"account {name!r}", account.count_records(user))
        for project in account.own_projects(user):
            self.stdout.write(f"No other user is a member of the project {project!r}, which stays: see --project.")
        if yes:
            self._record(f"user {name}")
            account.erase_account(user)
            self.stdout.write("Erased.")

    def _record(self, subject: str, project: str = "") -> None:
        """Append an entry to the audit log before anything is erased: a command that fails or is killed may have erased a part."""
        audit_log.record(audit_log.command(), "erase", subject, project)

    def _print_summary(self, title: str, counts: Mapping[str, int]) -> None:
        self.stdout.write(f"{title}: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))

    def _do(self, steps: Iterator[tuple[str, int]], counts: Mapping[str, int]) -> None:
        """Erase step by step. Show the progress of kinds of which `counts` has the number, and print the sums of all."""
        total, lines = Counter[str](), dict[str, ProgressLine]()
        for kind, count in steps:
            total[kind] += count
            # Most items go with their responses, so their number is no total.
            if kind not in lines and kind in counts and kind != "items":
                lines[kind] = ProgressLine(self.stdout, kind, counts[kind])
            if kind in lines:
                lines[kind].add(count)
        left = total.pop(erasure.LEFT, 0)
        for kind, number in total.items():
            text = f"done: {number} {kind}"
            if kind in lines:
                lines[kind].end(text)
            else:
                self.stdout.write(text)
        if left:
            self.stdout.write(
                f"WARNING: {left} responses began meanwhile. These stay, with the conversations and items that they need. Revoke "
                "the API keys of the project, and run the command again."
            )
        if total[erasure.NOT_ERASED]:
            raise CommandError(
                f"{total[erasure.NOT_ERASED]} responses could not be erased. The messages above name the reasons."
            )
