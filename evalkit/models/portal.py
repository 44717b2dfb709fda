"""An event loop in a thread of its own, for episodes that wait for the SDKs' async clients side by side."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(BaseException):
    """The run ends: what was waited for does not come, and nothing else is to be asked."""


class Portal:
    """Runs coroutines for other threads, from ``with`` to its end."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="evalkit portal")

    def __enter__(self) -> Portal:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel what is under way; whoever waits for it gets Stopped."""
        asyncio.run_coroutine_threadsafe(_cancelled(), self._loop).result(timeout=5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._loop.close()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, or what it raises. Stopped when the portal is closed."""
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
        except (concurrent.futures.CancelledError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not self._loop.is_closed():
                raise
            coroutine.close()
            raise Stopped from None


async def _cancelled() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
