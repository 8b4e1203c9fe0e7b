"""HTTP engine behind a router: the session header determines the server, and a closed generation closes the way through."""

from __future__ import annotations

import asyncio

from responses_app.engines import open_engine
from responses_app.engines.pool.rendezvous import ranking
from tests.support.engines.faulty_http_server import GENERATE, serve, stream, token
from tests.support.engines.generate import collect, make_request, tokens
from tests.support.engines.reverse_proxy import proxying
from tests.support.waiting import LIMIT_S

WHOLE = stream(token(1), token(2, "length"), b"[DONE]")
HEADER = "X-Sticky"


def test_router_sends_all_turns_of_a_session_to_one_server() -> None:
    async def main() -> None:
        async with serve(WHOLE) as one, serve(WHOLE) as other, proxying([one.url, other.url], HEADER) as url:
            engine = open_engine(f"{url}?model=m&session_header={HEADER}")
            await engine.start()
            # The ports decide which server a session prefers: of so many, both have some.
            sessions = [f"resp_{number}" for number in range(30)]
            for session in sessions * 2:
                assert tokens(await collect(engine, make_request(session=session))) == [1, 2]
            preferred = [ranking(session, [one.url, other.url])[0] for session in sessions]
            assert set(preferred) == {one.url, other.url}
            assert [server.count(GENERATE) for server in (one, other)] == [
                2 * preferred.count(server.url) for server in (one, other)
            ]
            await engine.close()

    asyncio.run(main())


def test_closed_generation_closes_the_connection_behind_the_router() -> None:
    async def main() -> None:
        async with serve(stream(token(1), hang=True)) as server, proxying([server.url], HEADER) as url:
            engine = open_engine(f"{url}?model=m")
            await engine.start()
            chunks = engine.generate(make_request())
            await anext(chunks)
            await chunks.aclose()
            await asyncio.wait_for(server.hung_up.wait(), LIMIT_S)
            await engine.close()

    asyncio.run(main())
