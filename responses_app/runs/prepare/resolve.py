"""Stage `resolve`: fetches and decodes bytes, and is the only stage that does: images, files, pictures; also converts grammars."""

from __future__ import annotations

from dataclasses import replace

from responses_app.dialects.content import ImageReference
from responses_app.errors import RateLimited
from responses_app.images.decode_pool import DecoderBusy
from responses_app.runs.prepare.grammars import convert_grammars
from responses_app.runs.prepare.media import images
from responses_app.runs.prepare.media.images import decode_images
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.tools.functions.as_functions import custom_tool_formats
from responses_app.tools.outputs.output_limit import PromptPictures, choose_pictures


async def resolve(context: PromptContext) -> PromptContext:
    """Fetch and decode what the items of the prompt show. Raises ApiError."""
    context = await _with_media(context)
    request, pictures = context.create_request, await _choose_pictures(context)
    references = [*context.references, *(ImageReference(item, "", url) for item, url in pictures.images)]
    formats = custom_tool_formats(request.tools, context.items)
    # Most requests are texts: a copy of the context costs more than these looks.
    if not (references or formats or context.pictures.shown):
        return context
    return replace(
        context,
        pictures=pictures,
        decoded=await decode_images(request.project, references, {**context.images, **pictures.images}, context.decoded),
        grammars=await convert_grammars(request.project, formats),
    )


async def _with_media(context: PromptContext) -> PromptContext:
    """Return the context with the images and the texts of files that `load` has found; a further round has them already."""
    media, project = context.media, context.create_request.project
    if media is None:
        return context
    new = {} if media.new is None else await images.resolve_new(project, media.new)
    past = await images.resolve_past(media)
    to_store = images.fetched({**images.images_of(media.unsaved, past), **new})
    return replace(context, media=None, images={**past, **new}, fetched=to_store)


async def _choose_pictures(context: PromptContext) -> PromptPictures:
    """Choose the pictures in outputs of server tools that the prompt shows; none for a model without vision. Raises RateLimited."""
    if not context.dialect.supports_images:
        return PromptPictures()
    try:
        return await choose_pictures(context.create_request.project, context.items)
    except DecoderBusy as error:
        raise RateLimited(str(error)) from error
