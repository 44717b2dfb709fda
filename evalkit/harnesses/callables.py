"""A Python callable as a harness, in this process: for tests that bring their own."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from evalkit.harnesses.command import Deadline, Over
from evalkit.harnesses.endings import Finished, Then, is_over

#: Takes the variables of an episode; returns an ending: an object, a native signal, or None for done.
Function = Callable[[Mapping[str, str]], Any]


class CallableRunner:
    """Calls a function in a thread for each episode; one that hangs is left behind, since threads go on."""

    def __init__(self, function: Function, seconds: float = 60.0) -> None:
        self._function = function
        self._seconds = seconds
        self._stopped = threading.Event()

    def run(self, told: dict[str, str], over: Over, then: Then = is_over) -> Finished:
        box: list[Finished] = []
        thread = threading.Thread(target=self._call, args=(told, box), daemon=True)
        thread.start()
        deadline = Deadline(self._seconds, over, self._stopped)
        while thread.is_alive():
            passed = deadline.passed(0)
            if passed is not None:
                return passed
            thread.join(0.02)
            time.sleep(0)
        return box[0]

    def _call(self, told: dict[str, str], box: list[Finished]) -> None:
        try:
            ending = self._function(told)
        except BaseException as error:
            kind = type(error)
            native = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
            box.append(Finished({"native": native, "error": str(error)}, output=traceback.format_exc()))
            return
        if ending is None:
            box.append(Finished())
        else:
            box.append(Finished(ending if isinstance(ending, dict) else {"native": str(ending)}))

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        """Nothing is kept."""
