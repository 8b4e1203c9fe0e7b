"""Output chain: the parser of a generation, and the links that each change the deltas of the link before."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from responses_app.dialects.base import OutputParser
from responses_app.dialects.citations.filter import CitationFilter
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.dialects.stop_sequences import with_stop_sequences
from responses_app.protocol.deltas import Call, Delta, OutputProblem
from responses_app.protocol.output_problems import UNKNOWN_TOOL
from responses_app.runs.prepare import long_work
from responses_app.runs.prepare.convert import ConvertedTurn
from responses_app.runs.prepare.items.summary import CompactionParser
from responses_app.runs.prepare.long_work import WorkSize
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.runs.server_tools.call_parser import ServerCallParser
from responses_app.tools.base import CitingOffer
from responses_app.tools.functions.as_functions import map_tool_calls


async def compose(context: PromptContext, converted: ConvertedTurn, size: WorkSize) -> OutputParser:
    """Compose the output chain of a generation with a prompt of `size`. Each link gets the deltas of the link before."""
    request, offer = context.create_request, context.offer
    # The parser of the model's format turns tokens into deltas. Some parsers read the end of the prompt, which can be long.
    make_parser = partial(context.dialect.parser_for, converted.turn)
    parser = await long_work.apart(request.project, size is WorkSize.LONG, make_parser)
    # Report each call of a function that no tool has; a tool of the server that the round withholds is not unknown.
    functions = (*converted.turn.tools, *(() if offer is None else offer.functions))
    parser = UnknownToolFilter(parser, frozenset(str(tool.get("name")) for tool in functions))
    # Turn function calls into calls of the declared tools: custom tools, those of a namespace, those of the protocol.
    parser = map_tool_calls(parser, converted.origins)
    # End the text before the first stop sequence of the request or of the model.
    parser = with_stop_sequences(parser, (*request.stop, *context.served.defaults.stop_strings))
    # Turn the whole text into the summary of a compaction item, if the response is only a compaction.
    if request.compacts:
        parser = CompactionParser(parser, request.project)
    # Turn marks of citations in the text into annotations, with the sources that the model has read.
    if isinstance(offer, CitingOffer) and (sources := offer.sources) is not None:
        parser = CitationFilter(parser, sources)
    # Turn calls of server tools into items of the families of the tools, and those behind the limit into output problems.
    return parser if offer is None else ServerCallParser(parser, offer, context.calls_left)


class UnknownToolFilter(ParserFilter):
    """Parser that reports calls of tools other than `names`. The calls stay calls: the client can answer with an error."""

    def __init__(self, parser: OutputParser, names: Collection[str]) -> None:
        super().__init__(parser)
        self._names = names

    def _passes(self, delta: Delta) -> bool:
        return delta.__class__ is not Call

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        return [reported for delta in deltas for reported in self._report(delta)]

    def _report(self, delta: Delta) -> list[Delta]:
        is_unknown = isinstance(delta, Call) and delta.name not in self._names
        return [OutputProblem(UNKNOWN_TOOL, item="next"), delta] if is_unknown else [delta]
