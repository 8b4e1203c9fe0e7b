"""Chat dialect: prompts by the model's chat template, `<think>` reasoning, Hermes tool calls."""
