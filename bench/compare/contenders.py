"""Servers of the comparison, started with equal settings of the engine."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from bench.compare import random_model
from bench.support.api_streams import CHAT_COMPLETIONS, MESSAGES, ApiStream
from bench.support.servers import BenchServer, python, serve
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

# Options of this server, and the kinds of contenders that such a server makes, with the fields of their requests.
OURS: Mapping[tuple[str, ...], Mapping[str, Mapping[str, object]]] = {
    (): {"stored": {"store": True}, "unstored": {"store": False}},
    ("--worker",): {"worker": {"store": True}},
}
# Kinds of `--api`: other API formats of a server of the kind before.
OUR_APIS: Mapping[str, ApiStream] = {"chat": CHAT_COMPLETIONS, "messages": MESSAGES}
VLLM_APIS: Mapping[str, ApiStream] = {"vllm-chat": CHAT_COMPLETIONS}


@dataclass(frozen=True, slots=True)
class ComparedModel:
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
    """Kind of server in the comparison: endpoint, fields of each request, and processes to account for."""

    kind: str
    target: Target
    servers: tuple[BenchServer, ...]
    fields: Mapping[str, object] = field(default_factory=dict)

    def cpu(self) -> dict[str, float]:
        """Add up the CPU seconds so far, by part of the servers."""
        total: dict[str, float] = {}
        for server in self.servers:
            for part, seconds in server.parts().items():
                total[part] = total.get(part, 0.0) + seconds
        return total


def vllm_command(model: ComparedModel, port: int, *, pausing: bool = False) -> list[str]:
    """Build the command of vLLM's own server. `pausing` replaces vLLM's executor on a CPU, whose processes spin while they wait."""
    command = [python(), "-m", "vllm.entrypoints.openai.api_server", "--model", model.source, "--served-model-name", model.name]
    command += ["--host", HOST, "--port", str(port), "--disable-log-stats", "--uvicorn-log-level", "warning"]
    for name, value in model.options.items():
        command += [f"--{name.replace('_', '-')}", *([] if name == "enforce_eager" else [value])]
    if model.parsers:
        reasoning, tools = model.parsers
        command += ["--reasoning-parser", reasoning, "--tool-call-parser", tools, "--enable-auto-tool-choice"]
    return [*command, "--distributed-executor-backend", EXECUTOR] if pausing and not model.on_gpu else command


def our_command(model: ComparedModel, port: int, *options: str) -> list[str]:
    """Build the command of this server, by default with the engine in the web process."""
    url = f"vllm:///{quote(model.source.lstrip('/'))}?{urlencode(model.options)}"
    return [python(), "-m", "responses_app.server", "--model", f"{model.name}={url}", "--port", str(port), *options]


@contextmanager
def start_contenders(
    model: ComparedModel,
    folder: Path,
    port: int,
    without: Collection[str] = (),
    *,
    agentic_api: str | None = None,
    pausing: bool = False,
    apis: bool = False,
) -> Iterator[list[Contender]]:
    """Start the servers of all kinds but `without`, in turn, and yield the contenders. An idle server takes 1 % of a core."""
    with ExitStack() as stack:
        contenders: list[Contender] = []
        if "vllm" not in without or agentic_api:
            command = vllm_command(model, port, pausing=pausing)
            vllm = stack.enter_context(serve(command, port, model.env, folder / "vllm.log"))
            target = Target(HOST, port, model.name)
            contenders.append(Contender("vllm", target, (vllm,)))
            contenders += _in_apis(target, vllm, VLLM_APIS if apis else {})
            if agentic_api:
                contenders.append(_agentic_api(stack, agentic_api, model, port + 3, vllm, folder))
        for number, (options, kinds) in enumerate(OURS.items(), start=1):
            if set(kinds) - set(without):
                server = _serve_ours(stack, model, folder, port + number, options)
                target = Target(HOST, port + number, model.name, KEY)
                contenders += (Contender(kind, target, (server,), fields) for kind, fields in kinds.items())
                contenders += _in_apis(target, server, OUR_APIS if apis and not options else {})
        yield [contender for contender in contenders if contender.kind not in without]


def _in_apis(target: Target, server: BenchServer, apis: Mapping[str, ApiStream]) -> Iterator[Contender]:
    """Yield a contender for each API format of a server."""
    for kind, api in apis.items():
        yield Contender(kind, replace(target, api=api), (server,))


def _serve_ours(stack: ExitStack, model: ComparedModel, folder: Path, port: int, options: Sequence[str]) -> BenchServer:
    data = folder / f"data-{port}"
    env = {"RESPONSES_DATA_DIR": str(data), "RESPONSES_API_KEY": KEY, "RESPONSES_LOG_LEVEL": "WARNING"}
    # Logs are sealed between the measurements, not beside the next one.
    env["RESPONSES_SEAL_AFTER"] = "1"
    return stack.enter_context(
        serve(our_command(model, port, *options), port, model.env | env, folder / f"verbatim-{port}.log")
    )


def _agentic_api(
    stack: ExitStack, address_or_program: str, model: ComparedModel, port: int, vllm: BenchServer, folder: Path
) -> Contender:
    """Make the contender of a URL, or start a command with `{port}`, and `{vllm}` for the address of vLLM's server."""
    if address_or_program.startswith(("http://", "https://")):
        parts = urlsplit(address_or_program)
        return Contender("agentic-api", Target(parts.hostname or HOST, parts.port or 80, model.name), (vllm,))
    command = shlex.split(address_or_program.format(port=port, vllm=f"http://{HOST}:{vllm.port}"))
    server = stack.enter_context(serve(command, port, {}, folder / "agentic-api.log"))
    return Contender("agentic-api", Target(HOST, port, model.name), (vllm, server))
