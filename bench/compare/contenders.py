"""Servers of the comparison, started with equal settings of the engine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from bench.compare import random_model
from bench.support.servers import Server, python, serve
from bench.support.stream_client import Target

HOST, KEY = "127.0.0.1", "sk-bench"
# Settings of vLLM that both servers get. Their defaults differ between vLLM's server and its class AsyncLLM.
ENGINE_OPTIONS = {
    "max_model_len": "4096",
    "max_num_seqs": "256",
    "max_num_batched_tokens": "4096",
    "scheduling_policy": "priority",
}
CPU_OPTIONS = {"enforce_eager": "1"}
# Both engines are on the GPU at the same time.
GPU_OPTIONS = {"gpu_memory_utilization": "0.4"}
CPU_ENV = {"VLLM_CPU_KVCACHE_SPACE": "1", "TORCH_COMPILE_DISABLE": "1"}
ENV = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
# The executor for vLLM's own server on a CPU: its processes do not spin while they wait.
EXECUTOR = "responses_app.engines.vllm.executor.PausingExecutor"
PARSERS = {
    random_model.NAME: ("qwen3", "hermes"),
    "demo-chat": ("qwen3", "hermes"),
    "demo-harmony": ("openai_gptoss", "openai"),
}


@dataclass(frozen=True, slots=True)
class Model:
    """Model of the comparison: `source` is a folder or a hub name; the parsers are for vLLM's own server."""

    name: str
    source: str
    parsers: tuple[str, str] | None
    on_gpu: bool = False
    more_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, str]:
        """Return the engine options."""
        return ENGINE_OPTIONS | (GPU_OPTIONS if self.on_gpu else CPU_OPTIONS) | dict(self.more_options)

    @property
    def env(self) -> dict[str, str]:
        """Return the environment of both servers."""
        offline = {"HF_HUB_OFFLINE": "1"} if Path(self.source).exists() else {}
        return ENV | offline | ({} if self.on_gpu else CPU_ENV)


@dataclass(frozen=True, slots=True)
class Contender:
    """Kind of server in the comparison: its endpoint, fields of each request, and the processes to account for."""

    kind: str
    target: Target
    servers: tuple[Server, ...]
    fields: Mapping[str, object] = field(default_factory=dict)

    def cpu(self) -> dict[str, float]:
        """Add up the CPU seconds so far, by part of the servers."""
        total: dict[str, float] = {}
        for server in self.servers:
            for part, seconds in server.parts().items():
                total[part] = total.get(part, 0.0) + seconds
        return total


def vllm_command(model: Model, port: int, *, own_executor: bool = False) -> list[str]:
    """Build the command of vLLM's own server. `own_executor` keeps vLLM's executor, which spins on a CPU."""
    command = [python(), "-m", "vllm.entrypoints.openai.api_server", "--model", model.source, "--served-model-name", model.name]
    command += ["--host", HOST, "--port", str(port), "--disable-log-stats", "--uvicorn-log-level", "warning"]
    for name, value in model.options.items():
        command += [f"--{name.replace('_', '-')}", *([] if name == "enforce_eager" else [value])]
    if model.parsers:
        reasoning, tools = model.parsers
        command += ["--reasoning-parser", reasoning, "--tool-call-parser", tools, "--enable-auto-tool-choice"]
    return command if own_executor or model.on_gpu else [*command, "--distributed-executor-backend", EXECUTOR]


def our_command(model: Model, port: int) -> list[str]:
    """Build the command of this server, with the engine in its web process."""
    url = f"vllm:///{quote(model.source.lstrip('/'))}?{urlencode(model.options)}"
    return [python(), "-m", "responses_app.server", "--model", f"{model.name}={url}", "--port", str(port)]


@contextmanager
def start_contenders(
    model: Model, folder: Path, port: int, *, agentic_api: str | None = None, own_executor: bool = False
) -> Iterator[list[Contender]]:
    """Start the servers, one after the other, and yield the contenders. An idle server takes 1 % of a core."""
    with ExitStack() as stack:
        command = vllm_command(model, port, own_executor=own_executor)
        vllm = stack.enter_context(serve(command, port, model.env, folder / "vllm.log"))
        contenders = [Contender("vllm", Target(HOST, port, model.name), (vllm,))]
        if agentic_api:
            contenders.append(_agentic_api(stack, agentic_api, model, port + 2, vllm, folder))
        env = {"RESPONSES_DATA_DIR": str(folder / "data"), "RESPONSES_API_KEY": KEY, "RESPONSES_LOG_LEVEL": "WARNING"}
        # Logs are sealed between the measurements, not beside the next one.
        env["RESPONSES_SEAL_AFTER"] = "1"
        ours = stack.enter_context(serve(our_command(model, port + 1), port + 1, model.env | env, folder / "verbatim.log"))
        target = Target(HOST, port + 1, model.name, KEY)
        yield [
            *contenders,
            Contender("stored", target, (ours,), {"store": True}),
            Contender("unstored", target, (ours,), {"store": False}),
        ]


def _agentic_api(stack: ExitStack, given: str, model: Model, port: int, vllm: Server, folder: Path) -> Contender:
    """Make the contender of a URL, or start a command with `{port}`, and `{vllm}` for the address of vLLM's server."""
    if given.startswith(("http://", "https://")):
        parts = urlsplit(given)
        return Contender("agentic-api", Target(parts.hostname or HOST, parts.port or 80, model.name), (vllm,))
    command = shlex.split(given.format(port=port, vllm=f"http://{HOST}:{vllm.port}"))
    server = stack.enter_context(serve(command, port, {}, folder / "agentic-api.log"))
    return Contender("agentic-api", Target(HOST, port, model.name), (vllm, server))
