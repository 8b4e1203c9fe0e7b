"""Output chain: the parser of a generation, and the filters that each change the deltas of the link before."""

from __future__ import annotations

from functools import partial

from responses_app.dialects.base import OutputParser
from responses_app.dialects.citations.filter import CitationFilter
from responses_app.dialects.stop_sequences import with_stop_sequences
from responses_app.runs.prepare import long_work
from responses_app.runs.prepare.convert import ConvertedTurn
from responses_app.runs.prepare.items.summary import CompactionParser
from responses_app.runs.prepare.long_work import WorkSize
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.runs.server_tools.call_parser import ServerCallParser
from responses_app.tools.base import CitingOffer
from responses_app.tools.functions.as_functions import map_tool_calls
from responses_app.tools.functions.unknown_tools import UnknownToolFilter


async def compose(context: PromptContext, converted: ConvertedTurn) -> OutputParser:
    """Compose the output chain of a generation, from the tokens of the model to the deltas of the response."""
    request, offer, turn = context.create_request, context.offer, converted.turn
    # The parser of the model's format turns tokens into deltas. Some parsers read the end of the prompt, which can be long.
    make_parser = partial(context.dialect.parser_for, turn)
    parser = await long_work.apart(request.project, converted.size is WorkSize.LONG, make_parser)
    # A call of a function that the turn does not have stays a call, and is reported as an output problem. Tools of the server that
    # the model is not offered any more are no unknown tools.
    names = {str(tool.get("name")) for tool in (*turn.tools, *(offer.functions if offer is not None else ()))}
    parser = UnknownToolFilter(parser, frozenset(names))
    # A function call becomes a call of the declared tool behind the function: a custom tool, one of a namespace, a client tool.
    parser = map_tool_calls(parser, converted.origins)
    # The text ends before the first stop sequence.
    parser = with_stop_sequences(parser, request.stop)
    # Where the request is for a compaction, the whole text becomes the encrypted summary of a compaction item.
    if request.compacts:
        parser = CompactionParser(parser, request.project)
    if offer is None:
        return parser
    # Marks of citations in the text become annotations with the sources that the model has read.
    sources = offer.sources if isinstance(offer, CitingOffer) else None
    if sources is not None:
        parser = CitationFilter(parser, sources)
    # A call of a server tool becomes an item of the tool's own family; behind the limit of calls it becomes an output problem.
    return ServerCallParser(parser, offer, context.calls_left)
