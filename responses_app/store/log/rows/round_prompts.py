"""Prompts of the rounds of a response: from the events of a running or ended log, or from the rows that archival saved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from responses_app.models import Event, RoundPrompt, StoredRequest
from responses_app.store.log.rows.shared_prompts import read_prompt, shared_tokens
from responses_app.store.log.token_log import RoundEnd, RoundStart, decode_tokens, encode_tokens, unpack


@dataclass(frozen=True, slots=True)
class StoredRound:
    """Prompt of a round as token ids. In the prompt an image is a single token; `input_tokens` counts all tokens of the image.

    `input_tokens` and `cached_tokens` are None while the round generates, and for the last round, whose counts are the remainder of
    the usage of the response. A round with 0 `input_tokens` only ran tools: its prompt was not sent to the model.
    """

    prompt: Sequence[int]
    input_tokens: int | None = None
    cached_tokens: int | None = None


def load_rounds(pk: int) -> list[StoredRound]:
    """Load the rounds of a response, in order. Empty if the request was not stored."""
    stored = read_prompt(pk)
    if stored is None:
        return []
    first = decode_tokens(stored)
    # Events first: if the log is archived between the two queries, the second query finds all rounds.
    return _rounds_in_events(pk, first) or _saved_rounds(pk, first) or [StoredRound(first)]


def save_rounds(blobs: Mapping[int, Iterable[bytes]]) -> None:
    """Save the rounds of logs whose events are to be deleted. `blobs` are the packed starts and ends of rounds, by response.

    Nothing is saved for a response with a single round.
    """
    entries = {pk: unpacked for pk, packed in blobs.items() if (unpacked := _several_rounds(packed))}
    if not entries:
        return
    requests = StoredRequest.objects.filter(response_id__in=entries).values_list("response_id", "prompt_tokens")
    RoundPrompt.objects.bulk_create([row for pk, prompt in requests for row in _rows(pk, bytes(prompt), entries[pk])])


def read_round_entries(pk: int) -> list[bytes]:
    """Read the packed starts and ends of rounds of a log, in order."""
    # Entries other than tokens begin with the byte 1.
    events = Event.objects.filter(response_id=pk).extra(where=["get_byte(tokens, 0) = 1"]).order_by("number")
    return [bytes(blob or b"") for blob in events.values_list("tokens", flat=True)]


def shared_length(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the common prefix of two prompts in tokens."""
    return shared_tokens(encode_tokens(first), encode_tokens(second))


def _rows(pk: int, first: bytes, entries: Iterable[RoundStart | RoundEnd]) -> list[RoundPrompt]:
    rounds = list(_rounds(decode_tokens(first), entries))
    earlier = [rounds[0], *rounds[:-1]]
    return [_row(pk, number, *pair) for number, pair in enumerate(zip(earlier, rounds, strict=True))]


def _row(pk: int, number: int, before: StoredRound, current: StoredRound) -> RoundPrompt:
    shared = shared_length(before.prompt, current.prompt)
    return RoundPrompt(
        response_id=pk,
        number=number,
        shared_tokens=shared,
        prompt_tokens=encode_tokens(current.prompt[shared:]),
        input_tokens=current.input_tokens,
        cached_tokens=current.cached_tokens,
    )


def _saved_rounds(pk: int, first: Sequence[int]) -> list[StoredRound]:
    rounds, prompt = list[StoredRound](), list(first)
    for row in RoundPrompt.objects.filter(response_id=pk).order_by("number"):
        prompt = [*prompt[: row.shared_tokens], *decode_tokens(bytes(row.prompt_tokens))]
        rounds.append(StoredRound(prompt, row.input_tokens, row.cached_tokens))
    return rounds


def _rounds_in_events(pk: int, first: Sequence[int]) -> list[StoredRound]:
    entries = _several_rounds(read_round_entries(pk))
    return list(_rounds(first, entries)) if entries else []


def _several_rounds(blobs: Iterable[bytes]) -> list[RoundStart | RoundEnd]:
    """Unpack the starts and ends of rounds. Empty without a second round."""
    entries = [entry for blob in blobs for entry in unpack(blob) if isinstance(entry, RoundStart | RoundEnd)]
    return entries if any(isinstance(entry, RoundStart) for entry in entries) else []


def _rounds(first: Sequence[int], entries: Iterable[RoundStart | RoundEnd]) -> Iterator[StoredRound]:
    current = StoredRound(first)
    for entry in entries:
        if isinstance(entry, RoundStart):
            yield current
            current = StoredRound(entry.prompt)
        else:
            current = replace(current, input_tokens=entry.prompt, cached_tokens=entry.cached)
    yield current
