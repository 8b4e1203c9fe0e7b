"""Writes a Qwen3 checkpoint of real proportions with few layers: 100,000 tokens, 8,192 positions, ChatML, random weights."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.engines import large_vocabulary

MAX_MODEL_LEN = 8192
# As in published checkpoints, the matrices have rows for ids that no token has.
ROWS = 100_352
# Default of requests: an answer has some hundred tokens.
TEMPERATURE = 0.5
# ChatML with tools in the form of Hermes, and an empty reasoning where `enable_thinking` is false.
TEMPLATE = r"""
{%- set first = messages[0] -%}
{%- set system = first.content if first.role == 'system' else '' -%}
{%- if system or tools -%}
    {{- '<|im_start|>system\n' + system -}}
    {%- if tools -%}
        {{- ('\n\n' if system else '') + '# Tools\n\nFunction signatures are within <tools></tools> XML tags:\n<tools>' -}}
        {%- for tool in tools -%}{{- '\n' + (tool | tojson) -}}{%- endfor -%}
        {{- '\n</tools>\n\nFor each call, return a json object within <tool_call></tool_call> XML tags:\n' -}}
        {{- '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>' -}}
    {%- endif -%}
    {{- '<|im_end|>\n' -}}
{%- endif -%}
{%- set ns = namespace(last_query=0) -%}
{%- for message in messages -%}{%- if message.role == 'user' -%}{%- set ns.last_query = loop.index0 -%}{%- endif -%}{%- endfor -%}
{%- for message in messages -%}
    {%- set content = message.content if message.content is string else '' -%}
    {%- if message.role == 'assistant' -%}
        {{- '<|im_start|>assistant\n' -}}
        {%- if message.reasoning_content and loop.index0 > ns.last_query -%}
            {{- '<think>\n' + message.reasoning_content.strip('\n') + '\n</think>\n\n' -}}
        {%- endif -%}
        {{- content -}}
        {%- for call in message.tool_calls or [] -%}
            {{- '\n' if content or not loop.first -}}
            {{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' -}}
            {{- (call.function.arguments if call.function.arguments is string else call.function.arguments | tojson) -}}
            {{- '}\n</tool_call>' -}}
        {%- endfor -%}
        {{- '<|im_end|>\n' -}}
    {%- elif message.role == 'tool' -%}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{- '<|im_start|>user' -}}{%- endif -%}
        {{- '\n<tool_response>\n' + content + '\n</tool_response>' -}}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{- '<|im_end|>\n' -}}{%- endif -%}
    {%- elif message.role == 'user' or not loop.first -%}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\n' -}}
    {%- if enable_thinking is defined and enable_thinking is false -%}{{- '<think>\n\n</think>\n\n' -}}{%- endif -%}
{%- endif -%}
"""


def write(into: Path) -> Path:
    """Write a checkpoint directory of 80 MB. With weights in float32 a greedy answer is the same in any batch."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokens = large_vocabulary.tokenizer()
    tokens.chat_template = TEMPLATE
    tokens.save_pretrained(into)
    torch.manual_seed(27)
    config = Qwen3Config(
        vocab_size=ROWS,
        hidden_size=96,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=MAX_MODEL_LEN,
        eos_token_id=tokens.eos_token_id,
        tie_word_embeddings=False,
        initializer_range=0.2,
        dtype="float32",
    )
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        # Otherwise few answers would end before the window.
        model.lm_head.weight[tokens.eos_token_id] *= 2
    model.save_pretrained(into)
    (into / "generation_config.json").write_text(json.dumps({"eos_token_id": tokens.eos_token_id, "temperature": TEMPERATURE}))
    return into
