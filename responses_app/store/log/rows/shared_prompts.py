"""Prompts that share tokens: each turn of a conversation repeats the prompt of the turn before, so the archive keeps the new tokens.

The prompt of a response may begin with tokens of an earlier one, its base, which may have a base too (`base` and `shared_tokens` of
`StoredRequest`). A trigger of the database passes the tokens on when a base is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from responses_app.store.cluster.leases import OLD_VERSION_TIMEOUT_S
from responses_app.store.db import execute_prepared

# Bytes of a prompt that is worth it: 1,024 tokens. Prompts whose first 256 tokens are the same are compared.
MIN_BYTES: Final = 4096
OPENING_BYTES: Final = 1024
# The latest prompts with the same opening that are compared: as many conversations with the same tools may take turns.
CANDIDATES: Final = 3
# Prompts that are read for one prompt, at most. The next one is stored whole.
MAX_PARTS: Final = 32
TOKEN_BYTES: Final = 4
# Processes of the version before read whole prompts only.
LONG_SQL: Final = """
SELECT request.response_id, earlier.id FROM responses_app_storedrequest AS request
JOIN responses_app_response AS response ON response.id = request.response_id
LEFT JOIN responses_app_response AS earlier ON earlier.uid = response.previous_uid AND earlier.id < response.id
WHERE request.response_id = ANY($1) AND octet_length(request.prompt_tokens) >= $2 AND request.base IS NULL AND NOT EXISTS (
  SELECT FROM responses_app_worker WHERE NOT reads_shared AND heartbeat_at > clock_timestamp() - make_interval(secs => $3)
) ORDER BY request.response_id
"""
# A prompt that is deleted meanwhile is left out. The lock keeps the others until the end of the transaction.
CANDIDATES_SQL: Final = """
SELECT response_id FROM responses_app_storedrequest WHERE response_id = $1 OR response_id = ANY(ARRAY(
  SELECT response_id FROM responses_app_storedrequest WHERE opening = $2 AND response_id < $3 ORDER BY response_id DESC LIMIT $4
)) FOR KEY SHARE SKIP LOCKED
"""
PARTS_SQL: Final = """
WITH RECURSIVE part AS (
  SELECT response_id AS key, base, shared_tokens, prompt_tokens, 1 AS place FROM responses_app_storedrequest
  WHERE response_id = ANY($1)
  UNION ALL
  SELECT part.key, request.base, request.shared_tokens, request.prompt_tokens, place + 1
  FROM part JOIN responses_app_storedrequest AS request ON request.response_id = part.base
) SELECT key, shared_tokens, prompt_tokens FROM part ORDER BY key, place DESC
"""
SHARE_SQL: Final = """
UPDATE responses_app_storedrequest SET base = $2, shared_tokens = $3, prompt_tokens = $4, opening = $5 WHERE response_id = $1
"""
# Does not write the prompt again.
WHOLE_SQL: Final = "UPDATE responses_app_storedrequest SET opening = $2 WHERE response_id = $1"
LENGTH_SQL: Final = """
SELECT COALESCE(shared_tokens, 0) + octet_length(prompt_tokens) / 4 FROM responses_app_storedrequest WHERE response_id = $1
"""


class EarlierPrompt(NamedTuple):
    """Prompt of the response `key`, in bytes, read from `parts` rows."""

    key: int
    prompt: bytes
    parts: int


def read_prompt(pk: int) -> bytes | None:
    """Return the encoded prompt of a stored request; None without one."""
    prompts = _read([pk])
    return prompts[0].prompt if prompts else None


def read_length(pk: int) -> int:
    """Return the length of the prompt of a stored request in tokens; 0 without one."""
    rows = execute_prepared(LENGTH_SQL, [pk])
    return int(rows[0][0]) if rows else 0


def share_prompts(keys: Sequence[int]) -> None:
    """Keep of the long prompts of some responses only the tokens that an earlier prompt does not have. In a transaction."""
    for key, previous in execute_prepared(LONG_SQL, [list(keys), MIN_BYTES, OLD_VERSION_TIMEOUT_S]):
        prompt = _read([key])[0].prompt
        opening = int.from_bytes(blake2b(prompt[:OPENING_BYTES], digest_size=8).digest(), "big", signed=True)
        candidates = execute_prepared(CANDIDATES_SQL, [previous, opening, key, CANDIDATES])
        base, shared = _choose(prompt, _read([candidate for (candidate,) in candidates]))
        if base is None:
            execute_prepared(WHOLE_SQL, [key, opening])
        else:
            execute_prepared(SHARE_SQL, [key, base, shared, prompt[TOKEN_BYTES * shared :], opening])


def _choose(prompt: bytes, candidates: Iterable[EarlierPrompt]) -> tuple[int | None, int]:
    """Return the prompt that shares the most tokens, and their number; None and 0 if that saves less than half."""
    shallow = [one for one in candidates if one.parts < MAX_PARTS]
    shared, key = max(((shared_tokens(one.prompt, prompt), one.key) for one in shallow), default=(0, 0))
    return (key, shared) if 2 * TOKEN_BYTES * shared >= len(prompt) else (None, 0)


def shared_tokens(first: bytes, second: bytes) -> int:
    """Return the length of the common prefix of two encoded prompts in tokens. Comparing slices is faster than each token."""
    low, high = 0, min(len(first), len(second)) // TOKEN_BYTES
    while low < high:
        middle = (low + high + 1) // 2
        if first[TOKEN_BYTES * low : TOKEN_BYTES * middle] == second[TOKEN_BYTES * low : TOKEN_BYTES * middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _read(keys: Sequence[int]) -> list[EarlierPrompt]:
    """Read whole prompts, those of bases first."""
    prompts = []
    for key, parts in groupby(execute_prepared(PARTS_SQL, [list(keys)]) if keys else (), itemgetter(0)):
        prompt, count = b"", 0
        for _, shared, tokens in parts:
            prompt, count = prompt[: TOKEN_BYTES * (shared or 0)] + tokens, count + 1
        prompts.append(EarlierPrompt(key, prompt, count))
    return prompts
