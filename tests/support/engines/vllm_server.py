"""`vllm serve` of a checkpoint, as an engine by URL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.server.serve_command import free_port

# The process starts an orphan guard and then becomes vLLM by exec: pid and start time, hence the mark, stay the same.
SERVER = """
import os, sys
from responses_app.engines import orphan_guard
orphan_guard.guard_children()
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
QUIET = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    # Inductor compiles 20 s for the first log-probabilities. A server of this project sets it too.
    "TORCH_COMPILE_DISABLE": "1",
}


@contextmanager
def serving(model: Path, name: str = "tiny", log: Path | None = None) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a server of the checkpoint under a name; yield the process and the URL. With `log` each request is logged in this file."""
    port = str(free_port())
    vllm = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--served-model-name", name]
    options = ["--enforce-eager", "--enable-scale-out", "--enable-prompt-tokens-details", "--scheduling-policy", "priority"]
    options += [] if log is None else ["--enable-log-requests"]
    # vLLM's own executor starts one more process, which spins while it waits, and dies of SIGILL where AMX is not asked for.
    options += ["--distributed-executor-backend", "responses_app.engines.vllm.executor.OneProcessExecutor"]
    command = [sys.executable, "-c", SERVER, *vllm[1:], *options, "--host", "127.0.0.1", "--port", port]
    environ = os.environ | QUIET | ({} if log is None else {"VLLM_LOGGING_LEVEL": "INFO"})
    with Path(os.devnull if log is None else log).open("wb") as out:
        process = subprocess.Popen(command, env=environ, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()
