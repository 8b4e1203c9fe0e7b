"""The two profiles of one log: OpenAI's names below /v1, those of Open Responses below /openresponses/v1 (decision F5).

What differs is the name of the events of raw reasoning, and that a key without a value is left out of items instead of null; our items
never have one. The log holds OpenAI's form; the other is made on the way out, so that one response can be read in either.
"""

from __future__ import annotations

from django.http import HttpRequest

from responses_app.store.records import Frame

OPEN = "/openresponses/"
OURS, THEIRS = "response.reasoning_text.", "response.reasoning."
_BEGINS = b'{"type":"'


def is_open(request: HttpRequest) -> bool:
    """Whether the client speaks to the address of Open Responses."""
    return request.path.startswith(OPEN)


def renamed(frame: Frame) -> Frame:
    """The frame under the name that Open Responses has for it."""
    if not frame.type.startswith(OURS):
        return frame
    name = THEIRS + frame.type.removeprefix(OURS)
    return Frame(frame.number, name, _BEGINS + name.encode() + frame.data[len(_BEGINS) + len(frame.type) :])
