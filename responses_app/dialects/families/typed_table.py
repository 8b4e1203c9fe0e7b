"""Table of model families whose templates do not distinguish them from others.

A row needs its model type and all its markers. `detection` tests these rows before those of `table`.
"""

from __future__ import annotations

from responses_app.dialects.families.family import ALWAYS_REASONS, ENABLE_THINKING, THINK, Family

TYPED_FAMILIES: tuple[Family, ...] = (
    Family("gpt-oss", "openai", "openai_gptoss", model_types="gpt_oss", remark="Harmony format."),
    Family(
        "R1 distill",
        "deepseek_v3",
        "deepseek_r1",
        markers=("<｜Assistant｜>", "</think>"),
        model_types="qwen2|qwen3|llama",
        remark=ALWAYS_REASONS,
    ),
    Family("QwQ", "hermes", "deepseek_r1", markers=("<tool_call>", "<think>"), model_types="qwen2"),
    Family("GLM-4.7", "glm47", "glm45", model_types="glm4_moe_lite|glm_moe_dsa|glm5_next"),
    Family("Ling 3", "ling3", "ling3", markers=("<arg_key>",), model_types="bailing_(moe|hybrid).*"),
    Family("DeepSeek V3.2", "deepseek_v32", "deepseek_v3", model_types="deepseek_v32"),
    Family("DeepSeek V4", "deepseek_v4", "deepseek_v4", model_types="deepseek_v4"),
    Family("DeepSeek V4.1", "deepseek_v41", "deepseek_v41", model_types="deepseek_v41"),
    Family("Laguna", "poolside_v1", "poolside_v1", model_types="laguna"),
    Family("Hunyuan Hy4", "hy_v4", "hy_v4", model_types="hy_v4"),
    Family("Hunyuan Hy3", "hy_v3", "hy_v3", model_types="hy_v3"),
    Family(
        "Hunyuan",
        "hunyuan_a13b",
        "hunyuan_a13b",
        reasoning_markers=THINK,
        model_types="hunyuan_v1_(moe|dense)",
        remark=ENABLE_THINKING,
    ),
    Family("Step 5", "step5", "step5", model_types="step5"),
    Family("Step 3.5", "step3p5", "step3p5", model_types="step3p[57]"),
    Family(
        "Nemotron 3",
        "qwen3_coder",
        "nemotron_v3",
        markers=("<function=",),
        reasoning_markers=THINK,
        model_types="nemotron_h.*",
        remark=ENABLE_THINKING,
    ),
    Family("Trinity", "qwen3_coder", "deepseek_r1", markers=("<function=",), reasoning_markers=THINK, model_types="afmoe"),
    Family(
        "Granite 4.2",
        "qwen3_coder",
        "granite_thinking_parser",
        markers=("<function=", "<think>"),
        model_types="granite.*",
        remark=ENABLE_THINKING,
    ),
    Family("MiMo V2-Flash", "qwen3_xml", "qwen3", model_types="mimo_v2_flash"),
    Family("MiMo V2.5", "mimo", "mimo", markers=("<function=",), model_types="mimo.*"),
    Family("MiniCPM-V", "qwen3_coder", "minicpmv", markers=("<function=",), model_types="minicpmv.*"),
    Family("ERNIE 4.5", "ernie45", "ernie45", markers=("<tool_call>",), reasoning_markers=THINK, model_types="ernie4_5.*"),
    Family("MiMo", "hermes", "qwen3", markers=("<tool_call>",), model_types="mimo|mimo_vl"),
    # The chat templates show the reasoning and no calls.
    Family(
        "Hermes calls",
        "hermes",
        "qwen3",
        markers=THINK,
        without=("<tool_call>", "<function="),
        model_types="qwen2|qwen3|qwen3_moe|smollm3|exaone4.*|exaone_moe",
    ),
    Family("Jamba", "jamba", markers=("<tool_calls>",), model_types="jamba"),
    Family(
        "openPangu 2",
        "openpangu",
        "qwen3",
        markers=("<|tool_call_start|>",),
        without=("<|tool_list_start|>",),
        reasoning_markers=THINK,
        model_types="openpangu_v2.*|pangu_v2.*",
    ),
)
