"""Stage `load`: reads rows, and is the only stage that does: items, approvals, outputs of tools, records of images and files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from asgiref.sync import sync_to_async

from responses_app.dialects import content
from responses_app.errors import InvalidRequest
from responses_app.models import Response
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.ids import is_id
from responses_app.runs.prepare import long_work
from responses_app.runs.prepare.items import selection
from responses_app.runs.prepare.items.selection import SelectedItems
from responses_app.runs.prepare.media import load_new, load_past
from responses_app.runs.prepare.prompt_context import PromptContext, client_path
from responses_app.runs.server_tools.approvals import already_answered
from responses_app.store.content import approvals, history, tool_outputs
from responses_app.store.content.history import ConversationContext
from responses_app.tools.registry import SERVER_TOOLS


async def check_resources(create_request: CreateRequest) -> None:
    """Check that the original of a rerun, containers and files of the request exist. Raises InvalidRequest, NotFound."""
    project, original, tools = create_request.project, create_request.rerun_of, create_request.tools
    if original is not None and not (
        is_id(original) and await Response.objects.filter(project=project, uid=original).aexists()
    ):
        raise InvalidRequest(f"Response with id '{original}' not found.", param="rerun.of", code="response_not_found")
    for tool in SERVER_TOOLS:
        declared = tool.find(tools)
        if declared is not None:
            await tool.check(project, declared, f"tools[{tools.index(declared)}]")


async def load(
    context: PromptContext, before: ConversationContext, input_context: ConversationContext | None = None
) -> PromptContext:
    """Load all that the request refers to, and the server tools of the first round. Raises ApiError.

    `before` is the context that the request continues. `input_context` has the input items of a stored response; what was checked
    before the first start is then not checked again: the response itself has used its approvals.
    """
    request, new_media, stored = context.create_request, None, before
    if input_context is None:
        selected = await _select_new(context, before)
        new_media = await load_new(request.project, request.input, selected.input_items)
    else:
        selected = selection.select(request, before.items, input_context.items)
        stored = replace(before, keys=[*before.keys, *input_context.keys], items=[*before.items, *input_context.items])
    images, data_urls = (stored.images, ()) if stored.images is not None else await load_past(stored.keys, stored.items)
    items = await tool_outputs.with_outputs(request.project, selected.items, before.tool_outputs)
    # Engines that cache prefixes get one session for all turns of a chain. A `prompt_cache_key` comes before the chain: the prefix
    # cache is separate for each key, and other chains with the key may share a prefix.
    by_key = request.cache_key and request.conversation is None
    loaded = replace(
        context,
        create_request=selected.create_request,
        before=before,
        input_items=selected.input_items,
        items=items,
        references=selected.references,
        images=images,
        data_urls=data_urls,
        new_media=new_media,
        session=(request.cache_salt if by_key else before.thread) or context.uid,
    )
    tools = context.tools
    if tools is None:
        return loaded
    await tools.prepare(items)
    offer, openings = tools.offer(items), tools.openings(items)
    return replace(loaded, offer=offer, openings=openings, calls_left=selected.create_request.max_server_calls)


async def _select_new(context: PromptContext, before: ConversationContext) -> SelectedItems:
    """Select the items of the prompt. Raises NotFound, InvalidRequest also for answered approvals and for images without vision.

    A stored item counts, as at OpenAI: reasoning of which a client sends the id alone is not lost. An item with `encrypted_content`
    stays as the client sent it.
    """
    request = context.create_request
    named = [item["id"] for item in request.input if "id" in item and "encrypted_content" not in item]
    ids = [uid for uid in named if is_id(uid)]
    stored = await history.find(request.project, ids) if ids else {}
    is_large = long_work.has_many([*before.items, *request.input])
    selected = await long_work.apart(request.project, is_large, partial(selection.select_new, request, before.items, stored))
    used = await sync_to_async(approvals.used)(request.project, selected.answered) if selected.answered else set()
    if used:
        raise already_answered(min(used))
    with context.map_errors(selected.items):
        if selected.references and not context.served.supports_images:
            raise _no_vision(selected)
    return selected


def _no_vision(selected: SelectedItems) -> InvalidRequest:
    """Return the error for images in a prompt of a model without vision, with the path of the newest image."""
    path, uids = selected.references[-1].path, [item["id"] for item in selected.input_items]
    where = client_path(path, selected.create_request, selected.items, uids) or "input"
    error = content.no_vision(where)
    message = str(error) if where.startswith("input") else f"What '{where}' continues has images, and {content.TEXT_ONLY}."
    return InvalidRequest(message, param=where, code=error.code)
