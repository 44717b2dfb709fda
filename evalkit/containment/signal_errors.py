"""What a signal raises is not lost where Python would only say that it was ignored."""

from __future__ import annotations

import signal
import sys

#: Seconds until it is raised again, somewhere else by then.
_AGAIN = 0.02


def raise_again(kind: type[BaseException]) -> None:
    """From now on an exception of this kind is raised again after one that nobody could take.

    A signal's exception comes between any two instructions of the main thread, in finalizers and in what C
    calls as well. There it ends nothing, and is printed.
    """
    before = sys.unraisablehook

    def hook(told: sys.UnraisableHookArgs) -> None:
        error = told.exc_value
        if not isinstance(error, kind):
            before(told)
            return

        def again(*_: object) -> None:
            raise error.with_traceback(None)

        signal.signal(signal.SIGALRM, again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)

    sys.unraisablehook = hook
