"""Models and tools of the server that the chat page offers, and example prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils import timezone

from responses_app.access import model_access, tool_access
from responses_app.models import ApiKey, VectorStore
from responses_app.runs import manager
from responses_app.store.vector_stores import stores as vector_stores
from responses_app.tools.registry import is_run_by_server
from responses_app.tools.sandbox_access import sandbox_problem

# The newest vector stores of the project.
MAX_STORES = 100


@dataclass(frozen=True, slots=True)
class ExamplePrompt:
    """Prompt that the demo model answers. `tool` is a field of the settings form, and `value` the value to be switched on."""

    text: str
    tool: str
    value: str


EXAMPLES = (
    ExamplePrompt('Run the code "plot(9)".', "offered", "code_interpreter"),
    ExamplePrompt("Run print(6*7) in Python.", "offered", "code_interpreter"),
    ExamplePrompt('Search the web for "tides".', "offered", "web_search"),
    ExamplePrompt("What is the weather in Paris?", "servers", "demo"),
)


def offers(project: str) -> dict[str, Any]:
    """Return the template variables of the models and tools that a user in `project` may choose, and of the examples."""
    key = ApiKey.of_project(project)
    built_in = {kind: label for kind, label in _built_in() if tool_access.can_use_type(key, kind)}
    servers = [server for server in _mcp_servers() if tool_access.can_use(key, f"{tool_access.MCP}:{server['label']}")]
    available = {"offered": set(built_in), "servers": {server["label"] for server in servers}}
    examples = EXAMPLES if settings.RESPONSES_DEMO_TOOLS else ()
    return {
        "models": [model for model in manager.current().served.values() if model_access.can_use(key, model.name)],
        "built_in": built_in.items(),
        "servers": servers,
        "stores": _stores(project) if tool_access.can_use_type(key, "file_search") else (),
        "examples": [example for example in examples if example.value in available[example.tool]],
    }


def _mcp_servers() -> list[dict[str, str]]:
    """Return label and description of the operator's MCP servers; none if `mcp` is an inactive tool."""
    servers = settings.RESPONSES_MCP_SERVERS if is_run_by_server("mcp") else {}
    return [{"label": label, "description": values.get("description", "")} for label, values in servers.items()]


def _built_in() -> Iterator[tuple[str, str]]:
    """Yield type and label of the tools that need no choice."""
    if is_run_by_server("code_interpreter") and sandbox_problem() is None:
        yield "code_interpreter", "Code interpreter"
    if is_run_by_server("web_search") and settings.RESPONSES_WEB_SEARCH:
        yield "web_search", "Web search"


def _stores(project: str) -> Sequence[VectorStore]:
    if not is_run_by_server("file_search"):
        return []
    now = timezone.now()
    newest = VectorStore.objects.filter(project=project).order_by("-pk")[:MAX_STORES]
    return [store for store in newest if not vector_stores.is_expired(store, now)]
