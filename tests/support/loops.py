"""Coroutines run where no other event loop can be in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def run_apart(make: Callable[[], Awaitable[T]]) -> T:
    """What a coroutine returns that is made and run in a thread of its own."""

    async def made() -> T:
        return await make()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(made())).result()
