"""Detection of model families: evidence of real checkpoints, and the parsers that vLLM documents for these."""

from __future__ import annotations

import pytest

from responses_app.dialects.families.detection import Evidence, detect
from responses_app.dialects.families.parser_names import REASONING_PARSERS, TOOL_PARSERS
from responses_app.dialects.families.table import FAMILIES
from responses_app.dialects.families.typed_table import TYPED_FAMILIES

_HERMES = 'return a json object within <tool_call></tool_call>: {"name": <function-name>, "arguments": <args-json-object>}'
_QWEN_XML = "<tool_call>\n<function=example>\n<parameter=a>\nvalue\n</parameter>\n</function>\n</tool_call>"
_SWITCH = "{% if enable_thinking is false %}<think>\n\n</think>{% endif %}"
_GLM = "[gMASK]<sop> <tool_call>{function-name}\n<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value></tool_call>"
_GLM_47 = "[gMASK]<sop> <tool_call>{function-name}<arg_key>{key}</arg_key><arg_value>{value}</arg_value></tool_call>"
_DEEPSEEK_JSON = "<｜Assistant｜><｜tool▁calls▁begin｜>function<｜tool▁sep｜>name\n```json\n{}\n```<｜tool▁call▁end｜>"
_DEEPSEEK = "<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
_LLAMA_JSON = 'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.'
_PYTHONIC = "[func_name1(params_name1=params_value1), func_name2(params)]"
_KIMI = "<|tool_calls_section_begin|><|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>"
_SPLIT = "{{ content.split('</think>')[-1] }}"
_COMMAND = "<|START_ACTION|>[]<|END_ACTION|><|START_THINKING|>"

# Name, model_type, chat template, reasoning parser, tool parser.
CASES: list[tuple[str, str, str, str | None, str | None]] = [
    ("Qwen3-8B", "qwen3", _HERMES + _SWITCH, "qwen3", "hermes"),
    ("Qwen3-30B-A3B-Instruct-2507", "qwen3_moe", _HERMES, None, "hermes"),
    ("Qwen3-Next-80B-A3B-Instruct", "qwen3_next", _HERMES, None, "hermes"),
    ("Qwen3-VL-8B-Instruct", "qwen3_vl", _HERMES, None, "hermes"),
    ("Qwen2.5-7B-Instruct", "qwen2", _HERMES, None, "hermes"),
    ("QwQ-32B", "qwen2", _HERMES + "assistant\n<think>\n", "deepseek_r1", "hermes"),
    ("Qwen3-Coder-30B-A3B-Instruct", "qwen3_moe", _QWEN_XML, None, "qwen3_coder"),
    ("Qwen3-Coder-Next", "qwen3_next", _QWEN_XML, None, "qwen3_coder"),
    ("Qwen3.5-4B", "qwen3_5", _QWEN_XML + _SWITCH, "qwen3", "qwen3_coder"),
    ("DeepSeek-R1-Distill-Qwen-32B", "qwen2", _DEEPSEEK_JSON + _SPLIT + "<think>", "deepseek_r1", "deepseek_v3"),
    ("DeepSeek-R1-Distill-Llama-8B", "llama", _DEEPSEEK_JSON + _SPLIT + "<think>", "deepseek_r1", "deepseek_v3"),
    ("DeepSeek-R1-0528-Qwen3-8B", "qwen3", _DEEPSEEK_JSON + _SPLIT, "deepseek_r1", "deepseek_v3"),
    ("DeepSeek-R1-0528", "deepseek_v3", _DEEPSEEK_JSON + _SPLIT, "deepseek_r1", "deepseek_v3"),
    ("DeepSeek-V3-0324", "deepseek_v3", _DEEPSEEK_JSON, None, "deepseek_v3"),
    ("DeepSeek-V3.1", "deepseek_v3", _DEEPSEEK + "</think><think>", "deepseek_v3", "deepseek_v31"),
    ("DeepSeek-V3.2", "deepseek_v32", "｜DSML｜ <{{ dsml }}function_calls> <think>", "deepseek_v3", "deepseek_v32"),
    ("DeepSeek-V4", "deepseek_v4", "", "deepseek_v4", "deepseek_v4"),
    ("DeepSeek-V4.1", "deepseek_v41", "", "deepseek_v41", "deepseek_v41"),
    ("GLM-4.6", "glm4_moe", _GLM + "<think></think>", "glm45", "glm45"),
    ("GLM-4.7", "glm4_moe", _GLM_47 + "<think></think>", "glm45", "glm47"),
    ("GLM-4.7-Flash", "glm4_moe_lite", _GLM + "<think></think>", "glm45", "glm47"),
    ("GLM-5.3", "glm_moe_dsa", _GLM_47, "glm45", "glm47"),
    ("Kimi-K2-Instruct", "kimi_k2", _KIMI, None, "kimi_k2"),
    ("Kimi-K2-Thinking", "kimi_k2", _KIMI + "<think></think>", "kimi_k2", "kimi_k2"),
    ("Kimi-K2.5", "kimi_k25", _KIMI + "<think></think>", "kimi_k2", "kimi_k2"),
    ("Kimi-K3", "kimi_k3", "<|open|>tools<|sep|>", "kimi_k3", "kimi_k3"),
    ("MiniMax-M2", "minimax_m2", '<minimax:tool_call><invoke name="x"><think>', "minimax_m2", "minimax_m2"),
    ("MiniMax-M3", "minimax_m3_vl", "]<]minimax[>[<tool_call>", "minimax_m3", "minimax_m3"),
    ("Meta-Llama-3.1-8B-Instruct", "llama", _LLAMA_JSON + "<|python_tag|>", None, "llama3_json"),
    ("Llama-3.2-3B-Instruct", "llama", _LLAMA_JSON, None, "llama3_json"),
    (
        "functionary-medium-v3.1",
        "llama",
        '<function=example_function_name>{"example_name": "example_value"}</function>',
        None,
        "functionary_v31",
    ),
    ("Llama-3.2-1B-pythonic", "llama", _PYTHONIC, None, "pythonic"),
    ("Llama-3.3-70B-Instruct", "llama", _LLAMA_JSON, None, "llama3_json"),
    ("Llama-4-Scout-17B-16E-Instruct", "llama4", "<|header_start|>" + _PYTHONIC + _LLAMA_JSON, None, "llama4_pythonic"),
    ("Mistral-Nemo-Instruct-2407", "mistral", '[TOOL_CALLS] [{"name"', None, "mistral"),
    ("Mistral-Small-3.2-24B-Instruct-2506", "mistral3", "[TOOL_CALLS]name[CALL_ID]id[ARGS]", None, "mistral"),
    ("Devstral-Small-2507", "mistral", "[TOOL_CALLS]name[ARGS]", None, "mistral"),
    ("Ministral-3-14B-Reasoning-2512", "mistral3", "[THINK][/THINK][TOOL_CALLS]name[ARGS]", "mistral", "mistral"),
    ("Mistral-Large-3-675B", "mistral_large4", "", "mistral", "mistral"),
    ("gemma-2-9b-it", "gemma2", "<start_of_turn>", None, None),
    ("gemma-3-4b-it", "gemma3", "<start_of_turn>", None, None),
    ("gemma-3-pythonic", "gemma3", "<start_of_turn>" + _PYTHONIC, None, "pythonic"),
    ("gemma-4-31B-it", "gemma4", "<|turn><|tool_call>call:x{}<tool_call|><|channel>thought", "gemma4", "gemma4"),
    ("functiongemma-270m-it", "gemma3_text", "<start_function_call>call:x{}<end_function_call>", None, "functiongemma"),
    ("granite-3.3-8b-instruct", "granite", "<|tool_call|> thinking thought process", "granite", "granite"),
    ("granite-4.0-h-tiny", "granitemoehybrid", _HERMES, None, "hermes"),
    ("granite-4.2", "granitemoehybrid", _QWEN_XML + _SWITCH, "granite_thinking_parser", "qwen3_coder"),
    ("Hermes-2-Pro-Mistral-7B", "mistral", _HERMES, None, "hermes"),
    ("Hermes-3-Llama-3.1-8B", "llama", _HERMES, None, "hermes"),
    ("NVIDIA-Nemotron-Nano-9B-v2", "nemotron_h", "<TOOLCALL>[]</TOOLCALL><think>", "qwen3", "nemotron_nano_v2"),
    ("NVIDIA-Nemotron-3-Nano-30B-A3B", "nemotron_h", _QWEN_XML + _SWITCH, "nemotron_v3", "qwen3_coder"),
    ("Phi-4-mini-instruct", "phi3", 'functools[{"name"', None, "phi4_mini_json"),
    ("Phi-4-mini-instruct-own", "phi3", "<|tool|>{}<|/tool|>", None, "phi4_mini_json"),
    ("Phi-3.5-mini-instruct", "phi3", "<|user|>", None, None),
    ("Seed-OSS-36B-Instruct", "seed_oss", "<seed:tool_call><function=x><parameter=y><seed:think>", "seed_oss", "seed_oss"),
    ("c4ai-command-r7b-12-2024", "cohere2", _COMMAND, "cohere_command3", "cohere_command3"),
    ("command-4", "cohere2_moe", _COMMAND + "<|START_TEXT|>", "cohere_command4", "cohere_command4"),
    ("Apertus-8B-Instruct-2509", "apertus", "<|tools_prefix|>[]<|tools_suffix|>", None, "apertus"),
    ("LFM2-8B-A1B", "lfm2_moe", "<|tool_list_start|>[]<|tool_list_end|>", None, "lfm2"),
    ("LFM2.5-8B-A1B", "lfm2_moe", "<|tool_call_start|>[]<|tool_call_end|><think>", "qwen3", "lfm2"),
    ("Step-3.5-Flash", "step3p5", _QWEN_XML + "<think>", "step3p5", "step3p5"),
    ("Step-5", "step5", _QWEN_XML + "<think>", "step5", "step5"),
    ("SmolLM3-3B", "smollm3", _HERMES + _SWITCH, "qwen3", "hermes"),
    ("Hunyuan-A13B-Instruct", "hunyuan_v1_moe", "<tool_calls>[]</tool_calls><think>", "hunyuan_a13b", "hunyuan_a13b"),
    ("Hy3", "hy_v3", "<tool_calls><tool_call>x<tool_sep><arg_key>", "hy_v3", "hy_v3"),
    ("Hy4", "hy_v4", "<tool_calls><tool_call>x<arg_key>", "hy_v4", "hy_v4"),
    ("internlm2_5-7b-chat", "internlm2", "<|action_start|><|plugin|>", None, "internlm"),
    ("Ling-3", "bailing_moe", "<tool_call>x<arg_key><think>", "ling3", "ling3"),
    ("Ling-mini-2.0", "bailing_moe", _HERMES, None, "hermes"),
    ("Laguna", "laguna", "<tool_call>x<arg_key><think>", "poolside_v1", "poolside_v1"),
    ("Inkling", "inkling_mm_model", "<|content_invoke_tool_json|>", "inkling", "inkling"),
    ("Trinity-Large", "afmoe", _QWEN_XML + "<think>", "deepseek_r1", "qwen3_coder"),
    ("MiMo-7B-RL", "mimo", _HERMES + _SWITCH, "qwen3", "hermes"),
    ("MiMo-V2-Flash", "mimo_v2_flash", _QWEN_XML + _SWITCH, "qwen3", "qwen3_xml"),
    ("MiMo-V2.5", "mimo_v2", _QWEN_XML + _SWITCH, "mimo", "mimo"),
    ("ERNIE-4.5-21B-A3B-Thinking", "ernie4_5_moe", _HERMES + "<think><response>", "ernie45", "ernie45"),
    ("OLMo-3-7B-Think", "olmo3", "<functions></functions><function_calls></function_calls><think>", "olmo3", "olmo3"),
    ("Muse-Glimmer", "muse_glimmer", "<atem:function_calls><atem:invoke", "muse_glimmer", "muse_glimmer"),
    ("Muse-Spark", "muse_spark", "", "muse", "muse"),
    ("K2-Horizon", "k2_horizon", "<ifm|tool_calls><ifm|tool_call>", "k2_horizon", "k2_horizon"),
    ("PLaMo-3", "plamo3", "<|plamo:begin_tool_request:plamo|>", "plamo3", "plamo3"),
    ("Step-3", "step3_vl", "<｜tool_calls_begin｜><｜tool_sep｜><steptml", "step3", "step3"),
    ("dots2", "dots2", "<dots_function_call><invoke name=", None, "dots"),
    ("GigaChat3-10B-A1.8B", "deepseek_v3", "'function call' '<|role_sep|>\n'", None, "gigachat3"),
    ("GigaChat3.5", "deepseek_v3", "<｜GCML｜tool_calls><|role_sep|><think>", "qwen3", "gigachat35"),
    ("Solar-Open-100B", "solar_open", "<|tool_calls|><|tool_call:begin|><|think|>", "solar_open", "solar_open"),
    ("Solar-Open-2", "solar_open2", "<|think:start|><|tool_call:start|>", "solar_open2", "solar_open2"),
    ("IQuest-Q1", "iquest_q1", "<think><iquest_tool_call>x<arg_key>", "iquest_q1", "iquest_q1"),
    ("openPangu-2", "openpangu_v2", "<think><|tool_call_start|>[]", "qwen3", "openpangu"),
    ("cwm", "cwm", "<think><tool: name>\n</tool>", "qwen3", "cwm"),
    (
        "HyperCLOVAX-SEED-Think-14B",
        "hyperclovax",
        "<|im_start|>assistant -> tool/function_call\n[ assistant/think\n",
        "hyperclovax_seed_think_14b",
        "hyperclovax_seed_think_14b",
    ),
    ("RWKV7-G1", "rwkv7", "**Tool Call:**", None, "rwkv"),
    ("functionary-medium-v3.2", "llama", "Respond in this format:\\n>>>${recipient}\\n${content}", None, "functionary_v32"),
    ("Apriel-1.6-15b-Thinker", "pixtral", "<tool_calls>[]</tool_calls>[BEGIN FINAL RESPONSE]", "apriel", "hunyuan_a13b"),
    ("Kimi-K2-Instruct-first", "kimi_k2", "tool_declare<|im_middle|>", None, "kimi_k2"),
    ("Apriel-1.5-15b-Thinker", "pixtral", "within <tool_call></tool_call> <tool_calls>[]</tool_calls>", None, "hunyuan_a13b"),
    ("Llama-3_3-Nemotron-Super-49B-v1_5", "llama", "<TOOLCALL>[]</TOOLCALL><think>", "qwen3", "nemotron_nano_v2"),
    ("LongCat-Flash-Chat", "longcat_flash", "<longcat_tool_call>", None, "longcat"),
    ("AI21-Jamba-Large-1.7", "jamba", "<tool_calls>[]</tool_calls>", None, "jamba"),
    ("MiniCPM5", "minicpm", '<function name="x"><param name="y">', None, "minicpm5"),
    ("checkpoint", "qwen3_moe", _QWEN_XML + "<function=example_function_name>", None, "qwen3_coder"),
    ("SmolLM3-without-calls", "smollm3", "<think></think>{{ xml_tools }}", "qwen3", "hermes"),
    ("MiMo-VL-7B-RL", "mimo_vl", _HERMES, "qwen3", "hermes"),
    ("Llama-4-json", "llama4", "<|header_start|>" + _LLAMA_JSON, None, "llama4_json"),
    ("MiniMax-M1", "minimax_m1", "<beginning_of_sentence>ai name=assistant<tool_calls>", "qwen3", "minimax_m1"),
    ("checkpoint", "llama", 'as a list: [{"name": "tool_call_name", "arguments": {}}]', None, "xlam"),
    ("checkpoint", "", "<｜hy_User{}｜><tool_sep{}>", "hy_v3", "hy_v3"),
    ("gpt-oss-20b", "gpt_oss", "<|channel|>analysis", "openai_gptoss", "openai"),
]


@pytest.mark.parametrize(("name", "model_type", "template", "reasoning", "tool"), CASES, ids=[case[0] for case in CASES])
def test_detection_chooses_the_documented_parsers(
    name: str, model_type: str, template: str, reasoning: str | None, tool: str | None
) -> None:
    detection = detect(Evidence(name=name, model_type=model_type, templates=[template] if template else []))
    assert (detection.reasoning_parser, detection.tool_parser) == (reasoning, tool)
    assert detection.evidence


@pytest.mark.parametrize(
    ("evidence", "parsers", "chosen_by"),
    [
        (Evidence(tool_parser="jamba", reasoning_parser="qwen3", templates=[_HERMES]), ("qwen3", "jamba"), "setting"),
        (Evidence(tool_parser="jamba", templates=[_HERMES + _SWITCH]), ("qwen3", "jamba"), "setting and chat template"),
        (Evidence(reasoning_parser="none", templates=[_HERMES + _SWITCH]), (None, "hermes"), "setting and chat template"),
        (Evidence(model_type="glm4_moe_lite", templates=[_GLM]), ("glm45", "glm47"), "model_type"),
        (Evidence(model_type="nemotron_h", templates=[_QWEN_XML]), (None, "qwen3_coder"), "model_type and chat template"),
        (Evidence(model_type="llama", templates=["<|im_start|>", _HERMES]), (None, "hermes"), "chat template"),
        (Evidence(added_tokens={"[TOOL_CALLS]"}, templates=["[INST]"]), (None, "mistral"), "added tokens"),
        (Evidence(added_tokens={"<|action_start|>"}, templates=["<|im_start|>"]), (None, "internlm"), "added tokens"),
        (Evidence(added_tokens={"<｜tool▁sep｜>"}, model_type="deepseek_v32"), ("deepseek_v3", "deepseek_v32"), "model_type"),
        (Evidence(model_type="seed_oss"), ("seed_oss", "seed_oss"), "model_type"),
        (Evidence(architectures=["Glm4MoeForCausalLM"]), ("glm45", "glm45"), "architecture"),
        (Evidence(model_type="mistral", files=["tekken.json"]), ("mistral", "mistral"), "files"),
        (Evidence(name="Kimi-K2_Instruct"), ("kimi_k2", "kimi_k2"), "name"),
        (Evidence(model_type="llama", templates=["<|user|>"]), (None, None), "default"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_detection_follows_the_order_of_evidence(
    evidence: Evidence, parsers: tuple[str | None, str | None], chosen_by: str
) -> None:
    detection = detect(evidence)
    assert (detection.reasoning_parser, detection.tool_parser) == parsers
    assert detection.chosen_by == chosen_by


def test_detection_warns_of_an_unknown_family() -> None:
    (warning,) = detect(Evidence(model_type="llama", templates=["<|user|>"])).warnings
    assert "not recognised (model_type 'llama')" in warning
    assert "tool_parser" in warning


def test_detection_has_no_warning_when_both_parsers_are_named() -> None:
    assert detect(Evidence(model_type="llama", reasoning_parser="none", tool_parser="llama3_json")).warnings == ()


@pytest.mark.parametrize("key", ["reasoning_parser", "tool_parser"])
@pytest.mark.parametrize("name", ["nonsense", ""])
def test_a_named_parser_that_is_not_declared_is_refused_with_the_allowed_names(key: str, name: str) -> None:
    allowed = {"reasoning_parser": REASONING_PARSERS, "tool_parser": TOOL_PARSERS}[key]
    with pytest.raises(ValueError, match=f"^{key}={name} is unknown. Allowed: none, ") as refused:
        detect(Evidence(model_type="qwen3", **{key: name}))
    assert str(refused.value).rstrip(".").partition("none, ")[2].split(", ") == sorted(allowed)


@pytest.mark.parametrize(
    ("reasoning", "tools", "parsers"),
    [
        ("minimax_m2_append_think", "minimax_m2", ("minimax_m2", "minimax_m2")),
        ("musespark1x", "musespark1x", ("muse", "muse")),
        ("hf", "beam", ("response_template", "response_template")),
    ],
)
def test_other_names_of_a_form_in_vllm_stand_for_its_usual_name(reasoning: str, tools: str, parsers: tuple[str, str]) -> None:
    detection = detect(Evidence(reasoning_parser=reasoning, tool_parser=tools))
    assert (detection.reasoning_parser, detection.tool_parser) == parsers
    assert detection.evidence == (f"reasoning_parser={reasoning}", f"tool_parser={tools}")


@pytest.mark.parametrize(("reasoning", "tools"), [("minimax_m3", "minimax_m3"), ("openai_gptoss", "openai"), ("none", "xlam")])
def test_detection_does_not_warn_of_named_formats(reasoning: str, tools: str) -> None:
    assert detect(Evidence(reasoning_parser=reasoning, tool_parser=tools)).warnings == ()


def test_every_family_names_declared_formats() -> None:
    assert {row.reasoning_parser for row in (*TYPED_FAMILIES, *FAMILIES)} <= {None, *REASONING_PARSERS}
    assert {row.tool_parser for row in (*TYPED_FAMILIES, *FAMILIES)} <= {None, *TOOL_PARSERS}
