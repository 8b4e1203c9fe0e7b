"""Model and URL of a worker."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from responses_app.engines.http.client import HttpVllm
from responses_app.engines.registry import open_engine
from responses_app.engines.socket.client import SocketEngine
from responses_app.installation.data_dir import ROOT
from responses_app.runs.models import parse_models
from responses_app.server.cli.model_specs import InvalidModelSpec
from responses_app.server.engine_worker.program import KEY, read_key
from responses_app.server.engine_worker.spec import plan, plan_socket


def test_options_go_to_vllm_and_the_rest_to_whoever_writes_the_prompts(tmp_path: Path) -> None:
    made = plan(f"mine=vllm://{tmp_path}?max_model_len=4096&tool_parser=hermes&chat_template=/a%20b.jinja", "127.0.0.1", 8100)
    assert (made.model, made.options) == (str(tmp_path), {"max_model_len": "4096"})
    (served,) = parse_models(f"mine={made.url}").values()
    assert isinstance(served.engine, HttpVllm)
    assert (served.source, dict(served.parsers)) == (
        str(tmp_path),
        {"tool_parser": "hermes", "chat_template": "/a b.jinja"},
    )


def test_the_key_comes_from_a_variable_or_a_file_and_vllm_does_not_inherit_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("mounted\n")
    monkeypatch.setenv(KEY, "plain")
    assert read_key() == "plain"
    assert KEY not in os.environ
    assert read_key() is None
    monkeypatch.setenv(f"{KEY}_FILE", str(tmp_path / "key"))
    assert read_key() == "mounted"


def test_a_name_on_the_hub_stays_one() -> None:
    made = plan("big=vllm:///Qwen/Qwen3-0.6B", "::", 8100)
    assert made.model == "Qwen/Qwen3-0.6B"
    assert made.url.startswith("http://[::1]:8100?model=big&priority=1&tokenizer=Qwen%2FQwen3-0.6B")


def test_the_key_is_part_of_the_url() -> None:
    url = plan("m=vllm:///a/b", "127.0.0.1", 8100, "p/w d").url
    engine = open_engine(url.split("?")[0])
    assert isinstance(engine, HttpVllm)
    assert engine._key == "p/w d"


def test_folder_of_a_worker_has_a_plain_name(tmp_path: Path) -> None:
    assert plan("org/m odel=vllm:///a/b", "h", 1).folder(tmp_path) == tmp_path / "engines" / "org-m-odel"


def test_an_engine_elsewhere_needs_no_worker() -> None:
    with pytest.raises(InvalidModelSpec, match="http:// is an engine elsewhere"):
        plan("m=http://gpu:8000?model=m&tokenizer=t", "127.0.0.1", 8100)


def test_worker_with_a_socket_has_a_url_without_host_and_key(tmp_path: Path) -> None:
    made = plan_socket(f"demo=vllm://{tmp_path}?tool_parser=hermes&max_model_len=9", tmp_path / "a b")
    assert made.socket == tmp_path / "a b" / "engines" / "demo" / "engine.sock"
    assert made.options == {"max_model_len": "9"}
    assert made.url == f"unix://{quote(str(made.socket))}?{urlencode({'tokenizer': str(tmp_path), 'tool_parser': 'hermes'})}"
    (model,) = parse_models(f"demo={made.url}").values()
    assert isinstance(model.engine, SocketEngine)
    assert (model.engine.path, model.source) == (str(made.socket), str(tmp_path))


def test_adapters_go_to_the_worker_and_are_models_of_the_web_processes(tmp_path: Path) -> None:
    made = plan_socket(f"mine=vllm://{tmp_path}?lora.sql=/srv/sql", tmp_path)
    assert made.options == {"lora.sql": "/srv/sql"}
    served = parse_models(f"mine={made.url}")
    assert list(served) == ["mine", "sql"]
    assert isinstance(served["mine"].engine, SocketEngine)


@pytest.mark.parametrize(
    ("file", "start"),
    [("docs/operations/deploy.md", "http://:$engine@127.0.0.1:8001?"), ("compose.yaml", "http://engine:8000?")],
)
def test_documented_urls_of_workers_have_the_priority(file: str, start: str) -> None:
    (query,) = [line.partition(start)[2] for line in (ROOT / file).read_text().splitlines() if start in line]
    assert "priority=1" in re.split(r"[&\" ]", query), "the worker schedules by priority"
