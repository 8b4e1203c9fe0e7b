"""Access to the sandbox as the settings name it."""

from __future__ import annotations

from django.conf import settings

from responses_app.installation.data_dir import MANAGE, SERVE, data_dir
from responses_app.sandbox import runner_failure
from responses_app.sandbox.client import SandboxClient
from responses_app.sandbox.launch import packages
from responses_app.sandbox.launch.problem import local_problem
from responses_app.sandbox.options import RunnerOptions
from responses_app.utils import unix_socket


def code_interpreter() -> str:
    """Return RESPONSES_CODE_INTERPRETER: `auto`, `on` or `off`."""
    return str(settings.RESPONSES_CODE_INTERPRETER)


def sandbox_problem() -> str | None:
    """Return None if code can run in the sandbox, else a sentence for the client. The first call may take a second.

    A runner at an `http` address may be unreachable in spite of None; then calls raise SandboxUnavailable.
    """
    if code_interpreter() == "off":
        return "The code interpreter is switched off by RESPONSES_CODE_INTERPRETER."
    return isolation_problem()


def isolation_problem() -> str | None:
    """Return None if a runner is configured and can work, else a sentence. Applies to single runs too."""
    if not is_configured():
        return f"No sandbox is configured. Set RESPONSES_SANDBOX_URL, or start the server with {SERVE}."
    if settings.RESPONSES_SANDBOX_URL.startswith("unix:"):
        return local_problem()
    return None


def missing_socket() -> str | None:
    """Return a sentence if RESPONSES_SANDBOX_URL names a socket at which nothing listens, else None."""
    url = str(settings.RESPONSES_SANDBOX_URL)
    if not url.startswith("unix:") or unix_socket.is_listening(url.removeprefix("unix:")):
        return None
    return (
        f"RESPONSES_SANDBOX_URL names {url}, but no runner listens there, so calls of code_interpreter fail. "
        f"Start `{MANAGE} sandbox`, or correct RESPONSES_SANDBOX_URL."
    )


def start_failure() -> str:
    """Return why a runner of this server does not start; empty if each does, or has not been needed."""
    return runner_failure.read(data_dir())


def is_configured() -> bool:
    """Return whether the settings name a runner."""
    return bool(settings.RESPONSES_SANDBOX_URL)


def has_packages() -> bool:
    """Return whether RESPONSES_SANDBOX_PACKAGES has packages installed for containers."""
    return bool(settings.RESPONSES_SANDBOX_PACKAGES)


def packages_note() -> str:
    """Return a sentence about packages that containers lack; empty if nothing is missing, or if the operator has the runner."""
    installs_packages = settings.RESPONSES_SANDBOX_URL.startswith("unix:") and code_interpreter() != "off"
    folder = data_dir() / packages.FOLDER
    if not installs_packages or packages.is_installed(folder):
        return ""
    if not has_packages():
        return "Code in containers has the standard library alone: RESPONSES_SANDBOX_PACKAGES is off."
    return f"The packages of containers ({packages.names()}) are {packages.summary(folder)}. Code without these does not wait."


def sandbox_client() -> SandboxClient:
    """Return a new client of the runner. Close the client in the event loop that used it."""
    return SandboxClient(settings.RESPONSES_SANDBOX_URL, settings.RESPONSES_SANDBOX_TOKEN)


def reader_client() -> SandboxClient:
    """Return a new client of the runner that reads files, which may be the runner of the containers."""
    return SandboxClient(
        settings.RESPONSES_SANDBOX_READER_URL or settings.RESPONSES_SANDBOX_URL, settings.RESPONSES_SANDBOX_TOKEN
    )


def runner_options() -> RunnerOptions:
    """Return the limits of a runner from the settings."""
    return RunnerOptions(
        run_timeout_s=settings.RESPONSES_SANDBOX_RUN_TIMEOUT,
        output_bytes=settings.RESPONSES_SANDBOX_OUTPUT_BYTES,
        memory_mib=settings.RESPONSES_SANDBOX_MEMORY_MIB,
        disk_mib=settings.RESPONSES_SANDBOX_DISK_MIB,
        max_containers=settings.RESPONSES_SANDBOX_CONTAINERS,
        startup_code=settings.RESPONSES_CONTAINER_STARTUP,
        token=settings.RESPONSES_SANDBOX_TOKEN,
    )
