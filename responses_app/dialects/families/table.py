"""Table of model families: evidence in a checkpoint, and vLLM's parsers for the output.

To add a family, add a row. `detection` reads the table from top to bottom, so a row with more precise markers comes first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """Row of the table. A parser of None means that the family has no such output.

    `markers` must all be in the chat template, or all among the added tokens; none of `without` may be there.
    `reasoning_markers`: the template must contain one of these for `reasoning_parser`; empty for families that always reason.
    `model_types` and `names` are regular expressions for the whole `model_type`, and for a part of the lower-case name.
    `type_and_markers`: the row applies to no other model types; it is tested before all rows without this flag.
    `template_only`: the markers are not evidence as added tokens, because other families have these tokens too.
    `files` of the checkpoint are evidence where nothing else is.
    """

    name: str
    tool_parser: str | None
    reasoning_parser: str | None = None
    markers: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    reasoning_markers: tuple[str, ...] = ()
    model_types: str = ""
    names: str = ""
    type_and_markers: bool = False
    template_only: bool = False
    files: tuple[str, ...] = ()
    remark: str = ""


_THINK = ("<think>",)
_ENABLE_THINKING = "enable_thinking switches the reasoning."
_ALWAYS_REASONS = "The model always reasons."
_TOOL_TEMPLATE = "The chat template must be one for tools."

FAMILIES: tuple[Family, ...] = (
    # Families whose templates do not distinguish them from others.
    Family("gpt-oss", "openai", "openai_gptoss", model_types="gpt_oss", type_and_markers=True, remark="Harmony format."),
    Family(
        "R1 distill",
        "deepseek_v3",
        "deepseek_r1",
        markers=("<｜Assistant｜>", "</think>"),
        model_types="qwen2|qwen3|llama",
        type_and_markers=True,
        remark=_ALWAYS_REASONS,
    ),
    Family("QwQ", "hermes", "deepseek_r1", markers=("<tool_call>", "<think>"), model_types="qwen2", type_and_markers=True),
    Family("GLM-4.7", "glm47", "glm45", model_types="glm4_moe_lite|glm_moe_dsa|glm5_next", type_and_markers=True),
    Family("Ling 3", "ling3", "ling3", markers=("<arg_key>",), model_types="bailing_(moe|hybrid).*", type_and_markers=True),
    Family("DeepSeek V3.2", "deepseek_v32", "deepseek_v3", model_types="deepseek_v32", type_and_markers=True),
    Family("DeepSeek V4", "deepseek_v4", "deepseek_v4", model_types="deepseek_v4", type_and_markers=True),
    Family("DeepSeek V4.1", "deepseek_v41", "deepseek_v41", model_types="deepseek_v41", type_and_markers=True),
    Family("Laguna", "poolside_v1", "poolside_v1", model_types="laguna", type_and_markers=True),
    Family("Hunyuan Hy4", "hy_v4", "hy_v4", model_types="hy_v4", type_and_markers=True),
    Family("Hunyuan Hy3", "hy_v3", "hy_v3", model_types="hy_v3", type_and_markers=True),
    Family(
        "Hunyuan",
        "hunyuan_a13b",
        "hunyuan_a13b",
        reasoning_markers=_THINK,
        model_types="hunyuan_v1_(moe|dense)",
        type_and_markers=True,
        remark=_ENABLE_THINKING,
    ),
    Family("Step 5", "step5", "step5", model_types="step5", type_and_markers=True),
    Family("Step 3.5", "step3p5", "step3p5", model_types="step3p[57]", type_and_markers=True),
    Family(
        "Nemotron 3",
        "qwen3_coder",
        "nemotron_v3",
        markers=("<function=",),
        reasoning_markers=_THINK,
        model_types="nemotron_h.*",
        type_and_markers=True,
        remark=_ENABLE_THINKING,
    ),
    Family(
        "Trinity",
        "qwen3_coder",
        "deepseek_r1",
        markers=("<function=",),
        reasoning_markers=_THINK,
        model_types="afmoe",
        type_and_markers=True,
    ),
    Family(
        "Granite 4.2",
        "qwen3_coder",
        "granite_thinking_parser",
        markers=("<function=", "<think>"),
        model_types="granite.*",
        type_and_markers=True,
        remark=_ENABLE_THINKING,
    ),
    Family("MiMo V2-Flash", "qwen3_xml", "qwen3", model_types="mimo_v2_flash", type_and_markers=True),
    Family("MiMo V2.5", "mimo", "mimo", markers=("<function=",), model_types="mimo.*", type_and_markers=True),
    Family("MiniCPM-V", "qwen3_coder", "minicpmv", markers=("<function=",), model_types="minicpmv.*", type_and_markers=True),
    Family(
        "ERNIE 4.5",
        "ernie45",
        "ernie45",
        markers=("<tool_call>",),
        reasoning_markers=_THINK,
        model_types="ernie4_5.*",
        type_and_markers=True,
    ),
    Family("MiMo", "hermes", "qwen3", markers=("<tool_call>",), model_types="mimo|mimo_vl", type_and_markers=True),
    # The chat templates show the reasoning and no calls.
    Family(
        "Hermes calls",
        "hermes",
        "qwen3",
        markers=_THINK,
        without=("<tool_call>", "<function="),
        model_types="qwen2|qwen3|qwen3_moe|smollm3|exaone4.*|exaone_moe",
        type_and_markers=True,
    ),
    Family("Jamba", "jamba", markers=("<tool_calls>",), model_types="jamba", type_and_markers=True),
    # Families with markers of their own.
    Family(
        "GigaChat 3.5",
        "gigachat35",
        "qwen3",
        markers=("｜GCML｜",),
        reasoning_markers=_THINK,
        names=r"gigachat-?3\.5",
    ),
    Family(
        "Solar Open 2",
        "solar_open2",
        "solar_open2",
        markers=("<|tool_call:start|>",),
        reasoning_markers=("<|think:start|>",),
        model_types="solar_open2",
        names="solar-(open-?2|pro-?4)",
    ),
    Family(
        "Solar Open",
        "solar_open",
        "solar_open",
        markers=("<|tool_call:begin|>",),
        reasoning_markers=("<|think|>",),
        model_types="solar_open",
        names="solar-open",
    ),
    Family(
        "IQuest",
        "iquest_q1",
        "iquest_q1",
        markers=("<iquest_tool_call>",),
        reasoning_markers=_THINK,
        model_types="iquest.*",
        names="iquest",
    ),
    Family(
        "openPangu 2",
        "openpangu",
        "qwen3",
        markers=("<|tool_call_start|>",),
        without=("<|tool_list_start|>",),
        reasoning_markers=_THINK,
        model_types="openpangu_v2.*|pangu_v2.*",
        type_and_markers=True,
    ),
    Family("CWM", "cwm", "qwen3", markers=("<tool:", "</tool>"), reasoning_markers=_THINK, model_types="cwm", names=r"\bcwm\b"),
    Family("RWKV", "rwkv", "qwen3", markers=("**Tool Call:**",), reasoning_markers=_THINK, model_types="rwkv.*", names="rwkv"),
    Family("Functionary 3.2", "functionary_v32", markers=(">>>all\\n",), names=r"functionary-.*v3\.2"),
    Family("Functionary 3.2", "functionary_v32", markers=(">>>${recipient}",)),
    Family(
        "Apriel 1.6",
        "hunyuan_a13b",
        "apriel",
        markers=("[BEGIN FINAL RESPONSE]", "<tool_calls>"),
        names=r"apriel-1\.6",
        remark=_ALWAYS_REASONS,
    ),
    Family("Apriel", None, "apriel", markers=("[BEGIN FINAL RESPONSE]",), remark=_ALWAYS_REASONS),
    Family(
        "MiniMax-M3", "minimax_m3", "minimax_m3", markers=("]<]minimax[>[",), model_types="minimax_m3.*", names="minimax-m3"
    ),
    Family("MiniMax-M3", "minimax_m3", "minimax_m3", markers=("<mm:think",)),
    Family(
        "MiniMax-M2",
        "minimax_m2",
        "minimax_m2",
        markers=("<minimax:tool_call>",),
        model_types="minimax_m2",
        names="minimax-m2",
        remark=_ALWAYS_REASONS,
    ),
    Family(
        "Seed-OSS",
        "seed_oss",
        "seed_oss",
        markers=("<seed:tool_call>",),
        reasoning_markers=("<seed:think>",),
        model_types="seed_oss",
        names="seed-oss",
        remark="thinking_budget limits the reasoning.",
    ),
    Family(
        "Kimi-K2",
        "kimi_k2",
        "kimi_k2",
        markers=("<|tool_calls_section_begin|>",),
        reasoning_markers=_THINK,
        model_types="kimi_k2|kimi_k25",
        names="kimi-k2",
    ),
    Family("Kimi-K2", "kimi_k2", "kimi_k2", markers=("<|im_middle|>", "tool_declare"), reasoning_markers=_THINK),
    Family("Hunyuan Hy3", "hy_v3", "hy_v3", markers=("<｜hy_", "<tool_sep")),
    Family("Kimi-K3", "kimi_k3", "kimi_k3", markers=("<|open|>", "<|sep|>"), model_types="kimi_k3", names="kimi-k3"),
    Family("DeepSeek V4.1", "deepseek_v41", "deepseek_v41", markers=("｜DSML｜ calls",), names=r"deepseek-v4\.1"),
    Family("DeepSeek V3.2", "deepseek_v32", "deepseek_v3", markers=("｜DSML｜", "function_calls"), names=r"deepseek-v3\.2"),
    Family(
        "DeepSeek V4",
        "deepseek_v4",
        "deepseek_v4",
        markers=("｜DSML｜", "tool_calls"),
        names="deepseek-v4",
        remark="thinking switches the reasoning.",
    ),
    Family(
        "DeepSeek R1",
        "deepseek_v3",
        "deepseek_r1",
        markers=("<｜tool▁sep｜>", "```json", "</think>"),
        names="deepseek-r1",
        remark=_ALWAYS_REASONS,
    ),
    Family("DeepSeek V3", "deepseek_v3", markers=("<｜tool▁sep｜>", "```json"), names="deepseek-v3$|deepseek-v3-"),
    Family(
        "DeepSeek V3.1",
        "deepseek_v31",
        "deepseek_v3",
        markers=("<｜tool▁sep｜>",),
        template_only=True,
        reasoning_markers=("<think>", "</think>"),
        names=r"deepseek-v3\.1",
        remark="thinking switches the reasoning.",
    ),
    Family(
        "Step 3", "step3", "step3", markers=("<｜tool_calls_begin｜>",), model_types="step3_vl|step3_text", names="step-?3$"
    ),
    Family(
        "Gemma 4",
        "gemma4",
        "gemma4",
        markers=("<|tool_call>",),
        reasoning_markers=("<|channel>",),
        model_types="gemma4.*",
        names="gemma-4",
        remark=_ENABLE_THINKING,
    ),
    Family("FunctionGemma", "functiongemma", markers=("<start_function_call>",), names="functiongemma"),
    Family("Apertus", "apertus", markers=("<|tools_prefix|>",), model_types="apertus", names="apertus"),
    Family(
        "Command 4",
        "cohere_command4",
        "cohere_command4",
        markers=("<|START_ACTION|>", "<|START_TEXT|>"),
        reasoning_markers=("<|START_THINKING|>",),
        model_types="cohere2_moe|cohere_compass",
    ),
    Family(
        "Command A",
        "cohere_command3",
        "cohere_command3",
        markers=("<|START_ACTION|>",),
        reasoning_markers=("<|START_THINKING|>",),
        model_types="cohere2|cohere2_vision",
        names="command-(a|r7b)",
    ),
    Family("InternLM", "internlm", markers=("<|action_start|>",), model_types="internlm[23].*", names="internlm"),
    Family(
        "LFM2",
        "lfm2",
        "qwen3",
        markers=("<|tool_list_start|>",),
        reasoning_markers=_THINK,
        model_types="lfm2.*",
        names="lfm2",
    ),
    Family("LFM2", "lfm2", "qwen3", markers=("<|tool_call_start|>",), reasoning_markers=_THINK),
    Family(
        "Mistral",
        "mistral",
        "mistral",
        markers=("[TOOL_CALLS]",),
        reasoning_markers=("[THINK]",),
        model_types="mistral3|mistral4|ministral3|mistral_large4|pixtral|voxtral",
        names="mistral-(small|medium|large)|ministral|magistral|devstral|mixtral",
        files=("tekken.json",),
    ),
    Family("Phi-4-mini", "phi4_mini_json", markers=("functools",), model_types="phi4_multimodal", names="phi-4-m"),
    Family("Phi-4-mini", "phi4_mini_json", markers=("<|tool|>", "<|/tool|>"), remark=_TOOL_TEMPLATE),
    Family(
        "Granite 3",
        "granite",
        "granite",
        markers=("<|tool_call|>",),
        template_only=True,
        reasoning_markers=("thought process", "thinking"),
        names=r"granite-3",
        remark="thinking switches the reasoning.",
    ),
    Family("Granite 20B function calling", "granite-20b-fc", markers=("<function_call>",), names="granite-20b-func"),
    Family("xLAM", "xlam", markers=('[{"name": "tool_call_name"',), names="xlam"),
    Family("Dots", "dots", markers=("<dots_function_call>",), names=r"dots\d"),
    Family("GigaChat 3", "gigachat3", markers=("<|function_call|>",), names="gigachat-?3"),
    Family("GigaChat 3", "gigachat3", markers=("<|role_sep|>", "function call"), template_only=True),
    Family(
        "LongCat",
        "longcat",
        "longcat",
        markers=("<longcat_tool_call>",),
        reasoning_markers=("<longcat_think>",),
        model_types="longcat_flash.*",
        names="longcat",
    ),
    Family(
        "Muse Glimmer",
        "muse_glimmer",
        "muse_glimmer",
        markers=("<atem:function_calls>",),
        model_types="muse_glimmer.*",
        names="muse-?glimmer",
    ),
    Family("Muse Spark", "muse", "muse", model_types="muse_spark.*", names="muse-?spark"),
    Family(
        "Inkling",
        "inkling",
        "inkling",
        markers=("<|content_invoke_tool_json|>",),
        model_types="inkling.*",
        names="inkling",
    ),
    Family("PLaMo 3", "plamo3", "plamo3", markers=("<|plamo:",), model_types="plamo3", names="plamo-3"),
    Family("K2-Horizon", "k2_horizon", "k2_horizon", markers=("<ifm|tool_call",), model_types="k2_horizon", names="k2-horizon"),
    Family(
        "OLMo 3",
        "olmo3",
        "olmo3",
        markers=("<function_calls>",),
        reasoning_markers=_THINK,
        model_types="olmo3|olmo_hybrid",
        names="olmo-3",
    ),
    Family("MiniCPM 5", "minicpm5", "qwen3", markers=("<function name=", "<param name="), reasoning_markers=_THINK),
    Family(
        "Llama 4",
        "llama4_json",
        markers=("<|header_start|>", '"parameters": dictionary of argument name'),
        without=("[func_name1(",),
        remark=_TOOL_TEMPLATE,
    ),
    Family("Llama 4", "llama4_pythonic", markers=("<|header_start|>",), model_types="llama4.*", names="llama-4"),
    Family("Pythonic calls", "pythonic", markers=("[func_name1(",), remark="The template describes calls as Python."),
    Family(
        "Functionary 3.1",
        "functionary_v31",
        markers=("<function=example_function_name>",),
        without=("<parameter=",),
        names=r"functionary-.*v3\.1",
        remark="One call at a time.",
    ),
    Family(
        "Llama 3",
        "llama3_json",
        markers=('"parameters": dictionary of argument name',),
        names=r"llama-3\.[1-3]",
        remark="One call at a time.",
    ),
    Family(
        "MiniMax-M1",
        "minimax_m1",
        "qwen3",
        markers=("<beginning_of_sentence>", "<tool_calls>"),
        model_types="minimax_m1|minimax_text_01",
        names="minimax-m1",
        remark=_ALWAYS_REASONS,
    ),
    Family("Lists of calls", "hunyuan_a13b", "qwen3", markers=("<tool_calls>",), reasoning_markers=_THINK, names="hunyuan"),
    Family(
        "Nemotron v2",
        "nemotron_nano_v2",
        "qwen3",
        markers=("<TOOLCALL>",),
        reasoning_markers=_THINK,
    ),
    Family("GLM-4.7", "glm47", "glm45", markers=("<arg_key>", "{function-name}<arg_key>"), names=r"glm-(4\.7|5)"),
    Family(
        "GLM-4.5",
        "glm45",
        "glm45",
        markers=("<arg_key>",),
        model_types="glm4_moe|glm4v_moe",
        names=r"glm-4\.[56]",
        remark=_ENABLE_THINKING,
    ),
    Family(
        "Qwen3.5",
        "qwen3_coder",
        "qwen3",
        markers=("<function=", "<parameter=", "<think>"),
        model_types="qwen3_5.*|qwen4.*",
        names=r"qwen3\.[5-9]",
        remark=_ENABLE_THINKING,
    ),
    Family("Qwen3-Coder", "qwen3_coder", markers=("<function=", "<parameter="), names="qwen3-coder"),
    # Formats that many families share.
    Family(
        "Hermes calls",
        "hermes",
        "qwen3",
        markers=("<tool_call>",),
        reasoning_markers=_THINK,
        model_types="qwen3.*|exaone4.*|exaone_moe|smollm3|granitemoehybrid|afmoe|mimo.*",
        names="qwen3|hermes|smollm3|granite-4|exaone",
        remark=_ENABLE_THINKING,
    ),
    Family("Hermes calls", "hermes", model_types="qwen2.*", names=r"qwen2"),
    Family(
        "Think tags", None, "qwen3", markers=_THINK, template_only=True, remark="The chat template shows no format of calls."
    ),
    Family("Gemma", None, model_types="gemma|gemma2|gemma3.*", names="gemma-?[23]", remark="The model has no format of calls."),
    Family("Phi", None, model_types="phi|phi3|phimoe", names="phi-[34]", remark="The model has no format of calls."),
)
