"""When what trials ask is handed over: as soon as so many go together, else once nobody asks any more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from orchestration.search.requests import Ask, Exchange


async def heard(exchange: Exchange, points: int, *, closed: bool = False) -> list[Ask] | None:
    """What is handed over while the driver listens and so many points ask, one after another."""
    driver = asyncio.create_task(exchange.asked())
    trials = set[asyncio.Task[Any]]()
    for number in range(points):
        trials.add(asyncio.create_task(exchange.ask(number, 0)))
        await asyncio.sleep(0.01)
    if closed:
        await exchange.close()
    asks = await driver
    await exchange.close()
    assert await asyncio.gather(*trials) == [None] * points
    return asks


def within(seconds: float, act: Coroutine[Any, Any, list[Ask] | None]) -> list[Ask] | None:
    return asyncio.run(asyncio.wait_for(act, seconds))


def test_as_many_as_go_together_wait_for_nobody() -> None:
    assert within(10.0, heard(Exchange(3, patience=60.0), 3)) == [(1, 0, 0), (2, 1, 0), (3, 2, 0)]
    assert within(10.0, heard(Exchange(), 1)) == [(1, 0, 0)]


def test_fewer_are_handed_over_once_no_other_comes() -> None:
    assert within(10.0, heard(Exchange(3, patience=0.2), 2)) == [(1, 0, 0), (2, 1, 0)]


def test_who_waits_for_others_hears_of_the_end() -> None:
    assert within(10.0, heard(Exchange(3, patience=60.0), 2, closed=True)) is None


def test_a_run_that_ends_after_the_search_is_answered_to_nobody() -> None:
    """As when Ctrl-C ends a search: its running run is saved, while its trial was told of the end."""

    async def late(exchange: Exchange) -> list[Ask] | None:
        trial = asyncio.create_task(exchange.ask(0, 0))
        asks = await exchange.asked()
        await exchange.close()
        await exchange.answer(1, {"objective": 0.5})
        assert await trial is None
        return asks

    assert within(10.0, late(Exchange())) == [(1, 0, 0)]
