"""Notice for a response that failed, was cancelled or is incomplete: title, message and code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from responses_app.models import Response, Status
from responses_app.web.render.sanitize import visible
from responses_app.web.responses.failures import last_snapshots, reason_of

TITLES: Final = {
    Status.FAILED: "Response failed",
    Status.INCOMPLETE: "Response incomplete",
    Status.CANCELLED: "Response cancelled",
}
REASONS: Final = {
    "max_output_tokens": "Stopped at the output token limit of {limit}. Ask the model to continue, or raise max_output_tokens.",
    "content_filter": "Stopped by the content filter. Ask in other words.",
    "max_messages": "Stopped at the message limit.",
    "max_run_seconds": "Stopped at the limit of the running time. Ask the model to continue; the key or the server sets the limit.",
    "steered": "Stopped because the client sent new input. A later response continues from here.",
}
# Of a response that names the limit, which those of earlier versions do not.
LIMITS: Final = {
    "request": "the max_output_tokens of the request",
    "key_default": "the default of this key",
    "key_maximum": "the maximum of this key",
    "model_default": "the default of the model",
    "model_maximum": "the maximum of the model",
}
AT_LIMIT: Final = "Stopped at {value:,} {unit}: {limit}. Ask the model to continue{more}."
MORE: Final = {
    "request": ", or raise that number",
    "key_default": ", or set max_output_tokens",
    "model_default": ", or set max_output_tokens",
}
AT_CONTEXT: Final = "Stopped at the end of the context of {value:,} tokens. Shorten the input, or begin a new conversation."
UNITS: Final = {"max_output_tokens": "output tokens", "max_run_seconds": "s of running time"}
CONTEXT_FULL: Final = (
    "Stopped at the end of the context, or at the model’s own limit of output. Shorten the input, or begin a new conversation."
)
# Remedy of an error by its code. The message about a full engine includes one.
REMEDIES: Final = {
    "server_error": "Send the request again. If it fails again, the log of the server has the cause.",
    "invalid_prompt": "Change the input, and send the request again.",
}
NO_TEXT_TITLE: Final = "No text"
NO_TEXT: Final = "The model returned no text."
NO_MESSAGE: Final = "The server recorded no error message."
UNFINISHED: Final = "The response ended before it was finished."
CANCELLED: Final = "It was stopped before it was finished. The output up to that point is kept."
MAX_MESSAGE_CHARS: Final = 4_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """Notice of a response without status `completed`, or without text. Invisible characters in the texts are shown by name.

    `remedy` is the sentence behind a message of an error that has none.
    """

    title: str
    message: str
    code: str
    failed: bool
    remedy: str = ""


def outcome(row: Response, snapshot: Mapping[str, Any]) -> Outcome | None:
    """Return the notice, None for a running response, and for a completed response with text or calls."""
    if row.status == Status.COMPLETED and "output" in snapshot and not any(map(_has_content, snapshot["output"])):
        return Outcome(NO_TEXT_TITLE, NO_TEXT, "", failed=False)
    title = TITLES.get(Status(row.status))
    if title is None:
        return None
    failed = row.status == Status.FAILED
    if failed:
        error = snapshot.get("error") or {}
        message, code = str(error.get("message") or NO_MESSAGE), str(error.get("code") or row.error_code)
    elif row.status == Status.CANCELLED:
        message, code = CANCELLED, ""
    else:
        code, message = reason_of(snapshot), ending(snapshot)
    return Outcome(title, visible(message[:MAX_MESSAGE_CHARS]), visible(code), failed, REMEDIES.get(code, "") if failed else "")


def ending_of(row: Response) -> str:
    """Return the reason of a stored incomplete response and the remedy, in a sentence; nothing for another response."""
    return ending(last_snapshots([row.pk]).get(row.pk, {})) if row.status == Status.INCOMPLETE else ""


def ending(snapshot: Mapping[str, Any]) -> str:
    """Return the reason of an incomplete response and the remedy, in a sentence, from the last snapshot."""
    reason, details = reason_of(snapshot), snapshot.get("incomplete_details") or {}
    name = str(details.get("limit"))
    if name == "context_window":
        return AT_CONTEXT.format(value=details["value"])
    if name in LIMITS and reason in UNITS:
        return AT_LIMIT.format(value=details["value"], unit=UNITS[reason], limit=LIMITS[name], more=MORE.get(name, ""))
    limit, used = snapshot.get("max_output_tokens"), (snapshot.get("usage") or {}).get("output_tokens", 0)
    if reason == "max_output_tokens" and (limit is None or used < limit):
        # The API has one reason for both.
        return CONTEXT_FULL
    return REASONS.get(reason, UNFINISHED).format(limit=limit)


def _has_content(item: Mapping[str, Any]) -> bool:
    """Return whether a person sees a text, a refusal or a call in `item`."""
    if item["type"] == "message":
        return any((part.get("text") or part.get("refusal") or "").strip() for part in item.get("content") or ())
    return bool(item["type"] != "reasoning")
