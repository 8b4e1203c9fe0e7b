"""Schema of `POST /v1/chat/completions`. docs/api/chat-completions.md lists each field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from responses_app.schemas.options import Cacheable
from responses_app.schemas.tools import Name
from responses_app.validation.base import ARRAY_LIMIT, Array, Effort, Objects, StrictModel
from responses_app.validation.errors import WrongType

# Fields that are refused unless they are empty, with the reason.
REFUSED: Mapping[str, str] = {
    "audio": "models of this server write no audio",
    "function_call": "use 'tool_choice'",
    "functions": "use 'tools'",
    "moderation": "moderation is not supported by this server",
}


class ChatStreamOptions(StrictModel):
    """`stream_options`."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class FunctionDefinition(Cacheable):
    """`function` of a tool."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ChatFunctionTool(Cacheable):
    """Function that the client runs. Clients that know Anthropic's API mark tools for the cache, which has no effect."""

    type: Literal["function"]
    function: FunctionDefinition


class ChatGrammarFormat(StrictModel):
    """`format` of a custom tool with a grammar."""

    type: Literal["grammar"]
    grammar: dict[str, Any]


class CustomDefinition(StrictModel):
    """`custom` of a tool. A grammar is below the key `grammar` of the format."""

    name: Name
    description: str | None = None
    format: dict[str, Any] | None = None


class ChatCustomTool(StrictModel):
    """Custom tool: the client runs a tool on free text."""

    type: Literal["custom"]
    custom: CustomDefinition


class ChosenName(StrictModel):
    """Name of a chosen tool."""

    name: str


class FunctionChoice(StrictModel):
    """Function that `tool_choice` names."""

    type: Literal["function"]
    function: ChosenName


class CustomChoice(StrictModel):
    """Custom tool that `tool_choice` names."""

    type: Literal["custom"]
    custom: ChosenName


class AllowedChatTools(StrictModel):
    """`allowed_tools` of `tool_choice`."""

    mode: Literal["auto", "required", "none"] | None = None
    tools: Annotated[Objects, Field(min_length=1, max_length=128)]


class AllowedChoice(StrictModel):
    """`tool_choice` among some of the tools."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedChatTools


class ChatJsonSchema(StrictModel):
    """`json_schema` of a response format."""

    name: Name
    description: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


class ChatResponseFormat(StrictModel):
    """`response_format`."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: ChatJsonSchema | None = None


class ChatLocation(StrictModel):
    """`user_location` of a web search."""

    type: Literal["approximate"] | None = None
    approximate: dict[str, Any]


class ChatSearchOptions(StrictModel):
    """`web_search_options`: the server searches the web where the model asks for a search."""

    search_context_size: Literal["low", "medium", "high"] | None = None
    user_location: dict[str, Any] | None = None


class ChatPrediction(StrictModel):
    """`prediction`, which has no effect: the answer is the same without a prediction."""

    type: Literal["content"]
    content: Any

    @field_validator("content")
    @classmethod
    def _check_content(cls, raw: object) -> object:
        """Check the type here: the path of an error in a union has the name of a type as its last step."""
        if not isinstance(raw, str) and not (isinstance(raw, list) and all(isinstance(part, dict) for part in raw)):
            raise WrongType("a string or an array of objects")
        return raw


class TemplateOptions(StrictModel):
    """`chat_template_kwargs` of vLLM: the options that switch the reasoning, of which templates have either."""

    enable_thinking: bool | None = None
    thinking: bool | None = None


class ChatCompletionRequest(StrictModel):
    """Schema of the body; `messages` are validated one by one, and values that mean the same in Responses are validated there."""

    other_names: ClassVar[Mapping[str, str]] = {
        "input": "messages",
        "instructions": "messages",
        "reasoning": "reasoning_effort",
        "text": "response_format",
    }
    messages: Annotated[list[Any], Field(min_length=1, max_length=ARRAY_LIMIT)]
    model: str | None = None
    stream: bool | None = None
    stream_options: ChatStreamOptions | None = None
    store: bool | None = None
    metadata: Any = None
    n: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    tools: Array[dict[str, Any]] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    response_format: ChatResponseFormat | None = None
    reasoning_effort: Effort | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: Any = None
    logit_bias: Any = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    modalities: Array[Literal["text"]] | None = None
    prediction: ChatPrediction | None = None
    web_search_options: ChatSearchOptions | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    service_tier: str | None = None
    # Not in OpenAI's API, but in those of other servers.
    top_k: Annotated[int, Field(ge=0)] | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    ignore_eos: bool | None = None
    chat_template_kwargs: TemplateOptions | None = None
