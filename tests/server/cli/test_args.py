"""The command line of serve."""

from __future__ import annotations

import subprocess
import sys

import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.server.cli.args import Options, parse, redacted_command


def test_nothing_given_means_the_defaults_of_the_readme() -> None:
    options = parse([])
    assert options == Options("127.0.0.1", 8000, (), (), 10.0)
    assert options.address == "http://127.0.0.1:8000"


def test_models_may_be_given_more_than_once() -> None:
    assert parse(["--model", "a", "--model", "b=./c"]).models == ("a", "b=./c")


def test_engines_may_be_given_more_than_once() -> None:
    assert parse(["--engine", "http://a", "--engine", "http://b"]).engines == ("http://a", "http://b")


def test_named_parsers_are_query_keys_of_an_engine_url() -> None:
    assert parse([]).parsers == {}
    assert parse(["--reasoning-parser", "none", "--tool-parser", "hermes", "--chat-template", "a.jinja"]).parsers == {
        "reasoning_parser": "none",
        "tool_parser": "hermes",
        "chat_template": "a.jinja",
    }


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("0.0.0.0", "http://127.0.0.1:80"),  # noqa: S104
        ("::", "http://[::1]:80"),
        ("::1", "http://[::1]:80"),
        ("gpu.lan", "http://gpu.lan:80"),
    ],
)
def test_the_address_is_one_that_a_client_can_use(host: str, address: str) -> None:
    assert parse(["--host", host, "--port", "80"]).address == address


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--host", ""], "argument --host: the address is empty"),
        (["--host", " "], "argument --host: the address is empty"),
        (["--port", "0"], "'0' is not a port"),
        (["--port", "http"], "'http' is not a port"),
        (["--engine", "localhost:8001"], "it begins with http://"),
        (["--engine", "ftp://x"], "it begins with http://"),
        (["--modle", "x"], "--modle"),
        (["--web", "0"], "'0' is not a number from 1 to 64"),
        (["--drain", "nan"], "'nan' is not a number of seconds from 0 on"),
        (["--drain=-5"], "'-5' is not a number of seconds from 0 on"),
    ],
)
def test_invalid_arguments_are_refused_with_the_reason(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err


def test_more_than_one_web_process_means_workers() -> None:
    assert not parse([]).is_supervised
    assert parse(["--worker"]).is_supervised
    assert parse(["--web", "3"]).web == 3
    assert parse(["--web", "3"]).is_supervised
    assert not parse(["--web", "1"]).is_supervised


def test_the_engine_worker_has_help_too() -> None:
    command = [sys.executable, "manage.py", "engine", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert all(option in done.stdout for option in ("--model", "--name", "--host", "--port", "--key", "RESPONSES_ENGINE_KEY"))


@pytest.mark.parametrize("command", [["bin/serve"], [sys.executable, "manage.py", "serve"]])
def test_help_names_every_option_and_starts_nothing(command: list[str]) -> None:
    done = subprocess.run([*command, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert all(
        option in done.stdout
        for option in ("--host", "--port", "--model", "--engine", "--drain", "--web", "--worker", "USR1", "DATABASE_URL")
    )
    assert done.stderr == ""


def test_the_command_is_shown_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESPONSES_PROG", "bin/serve")
    assert redacted_command(["--engine", "http://:sk-key@a:1,http://b", "--model", "my model"]) == (
        "bin/serve --engine http://a:1,http://b --model 'my model'"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ()),
        (["--max-model-len", "4096", "--port", "80"], ("--max-model-len", "4096")),
        (["--web", "2", "-tp", "2", "--enforce-eager"], ("-tp", "2", "--enforce-eager")),
        (["--model", "a", "--", "--port", "1"], ("--port", "1")),
        (["--dtype=float32", "--", "--seed", "1"], ("--dtype=float32", "--seed", "1")),
    ],
)
def test_unknown_options_and_those_behind_two_hyphens_are_for_vllm(arguments: list[str], words: tuple[str, ...]) -> None:
    assert parse(arguments).engine_options == words


@pytest.mark.parametrize("arguments", [["model"], ["--model", "a", "b"], ["--modle=x"]])
def test_words_without_an_option_are_no_options_of_vllm(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        assert parse(arguments).engine_options
    assert "unrecognized arguments" in capsys.readouterr().err
