"""A strategy that takes its process with it at seed 3."""

from __future__ import annotations

import os
import signal

from evalkit import Strategy
from evalkit import conditions as c
from evalkit.strategies.view import View


def _deadly(view: View) -> bool:
    if view.task.seed == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return True


deadly = Strategy(done_when=c.when(_deadly, "deadly"), name="deadly")
