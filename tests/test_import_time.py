"""Imports: the engine's libraries are loaded only by processes that generate."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "vllm", "transformers", "openai_harmony", "xgrammar", "mcp")


@pytest.mark.slow
def test_starting_django_loads_no_engine() -> None:
    code = (
        "import os, sys; os.environ['DJANGO_SETTINGS_MODULE'] = 'project.settings'; import django; django.setup();"
        f"import project.asgi, project.urls, responses_app.runs.manager; print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_command_loads_neither_the_manager_nor_the_server() -> None:
    code = (
        "import os, sys; os.environ['DJANGO_SETTINGS_MODULE'] = 'project.settings'; import django; django.setup();"
        "print([name for name in ('responses_app.runs.manager', 'twisted', 'daphne') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_the_grammar_needs_the_standard_library_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import responses_app.protocol.writer, responses_app.protocol.reducer;"
        "import responses_app.protocol.conformance; new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new - sys.stdlib_module_names - {'responses_app'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
