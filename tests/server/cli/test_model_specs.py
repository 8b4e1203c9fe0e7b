"""Models that --model and --engine mean."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.core.exceptions import ImproperlyConfigured

from responses_app.engines.adapters import AdapterEngine, adapter_options
from responses_app.runs.models import parse_models
from responses_app.server.cli.model_specs import (
    HARMONY,
    InvalidModelSpec,
    check_fit,
    check_tokenizers,
    local_source,
    models_setting,
    on_disk,
    with_adapters,
    with_engine_options,
    with_key,
    with_parsers,
)
from tests.support.http_server import SilentHandler, http_server, serving


def build(name: str) -> Path:
    return Path("/built") / name


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "my model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


class Models(SilentHandler):
    """The list of models of a `vllm serve`, as that answers."""

    def do_GET(self) -> None:
        adapter = {"id": "sql", "root": "/srv/sql", "parent": "big"}
        body = json.dumps({"data": [{"id": "big", "root": "/srv/big"}, {"id": "org/small", "root": None}, adapter]}).encode()
        self.send_response(200 if self.path == "/v1/models" else 404)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def remote() -> Iterator[str]:
    with serving(http_server(Models)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def test_nothing_asked_for_is_the_demo() -> None:
    assert models_setting((), None, build) == "demo-chat=vllm:///built/demo-chat"


def test_several_models_are_served_under_their_names(checkpoint: Path) -> None:
    path = quote(str(checkpoint))
    models = ("demo-harmony", str(checkpoint), f"mine={checkpoint}", "Qwen/Qwen3-0.6B", "best=Qwen/Qwen3-8B")
    assert models_setting(models, None, build).split() == [
        "demo-harmony=vllm:///built/demo-harmony",
        f"my-model=vllm://{path}",
        f"mine=vllm://{path}",
        "Qwen/Qwen3-0.6B=vllm:///Qwen/Qwen3-0.6B",
        "best=vllm:///Qwen/Qwen3-8B",
    ]


def test_a_source_may_be_an_engine_url_with_options() -> None:
    url = "vllm:///srv/big?max_model_len=4096"
    assert models_setting((f"big={url}",), None, build) == f"big={url}"
    assert models_setting((url,), None, build) == f"big={url}"
    assert models_setting(("http://gpu:8000?model=a/b&tokenizer=a/b",), None, build).startswith("a/b=http://gpu:8000")


def test_a_tape_alone_speaks_harmony() -> None:
    assert models_setting((), "script:///t/hello.jsonl?loop=1", build) == (
        f"hello=script:///t/hello.jsonl?loop=1&tokenizer={quote(str(HARMONY), safe='')}"
    )
    assert json.loads((HARMONY / "config.json").read_text())["model_type"] == "gpt_oss"


def test_a_model_beside_an_engine_says_where_the_tokenizer_is() -> None:
    assert (
        models_setting(("demo-chat",), "script:///t.jsonl", build)
        == "demo-chat=script:///t.jsonl?tokenizer=%2Fbuilt%2Fdemo-chat"
    )
    assert models_setting(("x=org/x",), "http://gpu:1/", build) == "x=http://gpu:1/?tokenizer=org%2Fx&model=x"
    assert models_setting(("x",), "vllm:///srv/big", build) == "x=vllm:///srv/big"


def test_an_engine_elsewhere_is_asked_for_its_models(remote: str) -> None:
    assert models_setting((), remote, build).split() == [
        f"big={remote}?model=big&tokenizer=%2Fsrv%2Fbig",
        f"org/small={remote}?model=org%2Fsmall&tokenizer=org%2Fsmall",
        f"sql={remote}?model=sql&tokenizer=%2Fsrv%2Fbig&parent=big",
    ]
    assert models_setting((), f"{remote}?model=sql", build) == f"sql={remote}?model=sql&tokenizer=%2Fsrv%2Fbig&parent=big"
    assert parse_models(models_setting((), remote, build))["sql"].parent == "big"
    assert models_setting((), f"{remote}?model=big", build) == f"big={remote}?model=big&tokenizer=%2Fsrv%2Fbig"


def test_the_settings_understand_every_lineup(checkpoint: Path, remote: str) -> None:
    served = parse_models(models_setting((f"mine={checkpoint}", f"far={remote}?model=big&tokenizer=a/b"), None, build))
    assert served["mine"].source == str(checkpoint)
    assert served["far"].source == "a/b"


@pytest.mark.parametrize(
    ("url", "addition"),
    [
        ("script:///tape.jsonl", "?tokenizer="),
        ("http://host?model=a", "&tokenizer="),
        ("unix:///a.sock?tokenizer=", "&tokenizer="),
    ],
)
def test_an_engine_url_without_a_tokenizer_is_refused(url: str, addition: str) -> None:
    check_tokenizers(f"a=vllm:///models/x b={url}{addition}folder")
    with pytest.raises(InvalidModelSpec, match=f"model b names no tokenizer: add {re.escape(addition)}FOLDER"):
        check_tokenizers(f"a=vllm:///models/x b={url}")


def test_the_hub_is_needed_for_what_is_not_on_disk(checkpoint: Path) -> None:
    here = models_setting((f"mine={checkpoint}",), None, build)
    assert on_disk(here)
    assert on_disk(models_setting((), "script:///t/hello.jsonl", build))
    assert not on_disk(models_setting((f"mine={checkpoint}", "Qwen/Qwen3-0.6B"), None, build))
    assert not on_disk(f"{here} far=http://gpu:8000?model=a/b&tokenizer=a/b")


@pytest.mark.parametrize(
    ("models", "engine", "reason"),
    [
        (("./none",), None, "there is no folder ./none"),
        (("x=/none/at/all",), None, "there is no folder /none/at/all"),
        (("demo-chat", "demo-chat"), None, "two models are called demo-chat"),
        (("a", "b"), "vllm:///srv/big", "holds one model"),
        ((), "http://127.0.0.1:9?start_wait=0.5", "is away"),
        ((), "http://127.0.0.1:9?start_wait=5s", "^start_wait in an engine URL must be a number of seconds, not '5s'"),
        ((), "http://127.0.0.1:9?start_wait=nan", "not 'nan'"),
        (("http://[::1",), None, r"^http://\[::1 must have a host"),
    ],
)
def test_invalid_model_specs_are_named(models: tuple[str, ...], engine: str | None, reason: str) -> None:
    with pytest.raises(InvalidModelSpec, match=reason):
        models_setting(models, engine, build)


def test_a_folder_without_a_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidModelSpec, match=r"holds no config\.json"):
        models_setting((str(tmp_path),), None, build)


@pytest.mark.parametrize(
    ("setting", "parsers", "expected"),
    [
        ("a=vllm:///srv/a", {}, "a=vllm:///srv/a"),
        ("a=vllm:///srv/a", {"tool_parser": "hermes"}, "a=vllm:///srv/a?tool_parser=hermes"),
        (
            "a=http://host:1?model=a&tool_parser=x",
            {"tool_parser": "hermes", "reasoning_parser": "none"},
            "a=http://host:1?model=a&tool_parser=hermes&reasoning_parser=none",
        ),
    ],
)
def test_named_parsers_are_added_to_the_engine_url(setting: str, parsers: dict[str, str], expected: str) -> None:
    assert with_parsers(setting, parsers) == expected


def test_named_parsers_are_refused_with_several_models() -> None:
    with pytest.raises(InvalidModelSpec, match="are for one model"):
        with_parsers("a=vllm:///a b=vllm:///b", {"tool_parser": "hermes"})


def test_files_and_folders_of_other_formats_are_named(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").touch()
    (tmp_path / "lora").mkdir()
    (tmp_path / "lora" / "adapter_config.json").write_text('{"base_model_name_or_path": "o/m"}')
    for name, problem in (
        ("model.gguf", "holds weights as GGUF"),
        ("", "holds weights as GGUF"),
        ("lora", "LoRA adapter of o/m"),
    ):
        with pytest.raises(InvalidModelSpec, match=problem):
            local_source(str(tmp_path / name), build)


def test_a_demo_model_without_the_packages_of_an_engine_is_refused() -> None:
    def build_without_numpy(_: str) -> Path:
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    with pytest.raises(InvalidModelSpec, match=r"^demo-chat needs the package numpy, which is not installed: .* --engine"):
        local_source("demo-chat", build_without_numpy)


def test_options_of_vllm_are_added_to_the_engine_url_of_the_only_model() -> None:
    words = ["--max-model-len", "4096"]
    read = {"max_model_len": "4096", "hf_overrides": '{"a": 1}'}
    setting = with_engine_options("a=vllm:///srv/a?seed=1", words, lambda *_: read)
    assert setting == "a=vllm:///srv/a?seed=1&max_model_len=4096&hf_overrides=%7B%22a%22%3A+1%7D"
    assert with_engine_options("a=x b=y", [], lambda *_: read) == "a=x b=y", "without options nothing is read"


@pytest.mark.parametrize(
    ("models", "problem"),
    [
        ("a=vllm:///a b=vllm:///b", "--max-model-len is for one model"),
        ("a=http://gpu:8000?model=a", "the engine of a runs elsewhere"),
    ],
)
def test_options_of_vllm_need_one_model_in_this_server(models: str, problem: str) -> None:
    with pytest.raises(InvalidModelSpec, match=problem):
        with_engine_options(models, ["--max-model-len", "4096"], lambda *_: {})


def test_adapters_are_models_that_share_the_engine(tmp_path: Path) -> None:
    adapter = tmp_path / "sql adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text('{"r": 12}')
    (adapter / "adapter_model.safetensors").touch()
    setting = with_adapters("base=vllm:///built/demo-chat?seed=1", [f"sql={adapter}", f"js={adapter}"])
    served = parse_models(setting)
    assert list(served) == ["base", "sql", "js"]
    assert served["sql"].base is served["base"]
    assert isinstance(served["sql"].engine, AdapterEngine)
    assert adapter_options({"sql": str(adapter)}, {"max_loras": "9"}) == {
        "enable_lora": "1",
        "max_lora_rank": "16",
        "max_cpu_loras": "2",
    }
    assert with_adapters("a=x b=y", []) == "a=x b=y"


@pytest.mark.parametrize(
    ("models", "adapter", "problem"),
    [
        ("a=vllm:///a b=vllm:///b", "x=/srv/x", "--lora is for one model"),
        ("a=http://gpu:8000?model=a", "x=/srv/x", "the engine of a runs elsewhere"),
        ("a=vllm:///a", "/srv/x", "must be NAME=FOLDER"),
        ("a=vllm:///a", "x=", "must be NAME=FOLDER"),
        ("a=vllm:///a", "a=/srv/x", "two models are called a"),
        ("a=vllm:///a", "x=/nowhere/x", "there is no folder /nowhere/x of the LoRA adapter x"),
        ("a=vllm:///a", "x=/usr", "holds no adapter_config.json"),
    ],
)
def test_adapters_are_refused_with_the_reason(models: str, adapter: str, problem: str) -> None:
    with pytest.raises(InvalidModelSpec, match=problem):
        with_adapters(models, [adapter])


def test_adapters_of_an_engine_elsewhere_are_not_named_in_its_url() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"keys lora\.NAME are for engines in this server"):
        parse_models("a=http://gpu:8000?model=a&lora.x=/srv/x")


@pytest.mark.parametrize(
    ("page", "model"),
    [
        ("https://huggingface.co/Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B"),
        ("https://huggingface.co/Qwen/Qwen3-0.6B/tree/v1", "Qwen/Qwen3-0.6B@v1"),
        ("hf.co/Qwen/Qwen3-0.6B:Q4_K_M", "Qwen/Qwen3-0.6B"),
        ("mine=http://hub.local/Qwen/Qwen3-0.6B?not-for-all-audiences", "Qwen/Qwen3-0.6B"),
    ],
)
def test_the_address_of_a_page_of_the_hub_leads_to_the_name(monkeypatch: pytest.MonkeyPatch, page: str, model: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.local/")
    with pytest.raises(InvalidModelSpec, match=f" is a page of the model hub; its model is {model}$"):
        models_setting((page,), None, build)


def test_the_last_slash_of_a_name_of_the_hub_is_dropped() -> None:
    assert models_setting(("Qwen/Qwen3-0.6B/",), None, build) == "Qwen/Qwen3-0.6B=vllm:///Qwen/Qwen3-0.6B"


def test_an_empty_name_is_no_folder() -> None:
    with pytest.raises(InvalidModelSpec, match="the name of the model is empty"):
        models_setting(("",), None, build)


def test_a_file_leads_to_its_folder(checkpoint: Path) -> None:
    with pytest.raises(InvalidModelSpec, match=f"is a file: give the folder with config.json, such as {checkpoint}$"):
        models_setting((str(checkpoint / "config.json"),), None, build)


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("http://gpu:8000", "http://:a%40b@gpu:8000"),
        ("https://gpu/v1?model=m&tokenizer=/t", "https://:a%40b@gpu/v1?model=m&tokenizer=/t"),
        ("http://one:1,http://two:2", "http://:a%40b@one:1,http://:a%40b@two:2"),
        ("http://:own@gpu:8000", "http://:own@gpu:8000"),
        ("vllm:///model", "vllm:///model"),
    ],
)
def test_key_of_the_environment_is_for_engines_without_a_key(engine: str, expected: str) -> None:
    assert with_key([engine], "a@b") == [expected]
    assert with_key([engine], "") == [engine]


@pytest.mark.parametrize("models", ["a=http://gpu:8000", "a=script:///tape.jsonl b=https://gpu"])
def test_fit_without_an_engine_in_this_server_is_refused(models: str) -> None:
    with pytest.raises(InvalidModelSpec, match=r"^--fit is for an engine in this server, and every engine runs elsewhere"):
        check_fit(models)
    check_fit(f"{models} c=vllm:///built/demo-chat")
