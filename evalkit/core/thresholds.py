"""From where on going on is for nothing, and giving up is not too early: D3.3 and D3.5 of the definitions.

Read as ``thresholds.NAME``, so that one is changed for all who judge by it.
"""

from __future__ import annotations

# Over-continuation: more than so many.

#: Model turns after the first decision at which the oracle held.
TURNS_AFTER_COMPLETION = 3
#: Model turns for which the oracle held, without any decision.
TURNS_HELD_UNDECIDED = 12
#: Consecutive nudges without progress. The ideal harness escalates after so many.
FRUITLESS_NUDGES = 3
#: Consecutive turns without progress since a decision.
TURNS_SINCE_DECISION = 12
#: Consecutive turns without progress and without any decision.
TURNS_UNDECIDED = 40
#: Consecutive turns without progress whose calls only repeat what was answered the same.
REPEATING_TURNS = 12
#: Consecutive resends of paused turns.
RESENDS = 30

#: The names of all of these, in the order in which a trace measures them (``Stretches``).
GOING_ON = (
    "TURNS_AFTER_COMPLETION",
    "TURNS_HELD_UNDECIDED",
    "FRUITLESS_NUDGES",
    "TURNS_SINCE_DECISION",
    "TURNS_UNDECIDED",
    "REPEATING_TURNS",
    "RESENDS",
)

# The ideal driver gives up.

#: Consecutive nudges without progress.
DRIVER_NUDGES = 8
#: Consecutive turns, pauses not counted, in which nothing was settled and the script came no nearer.
DRIVER_TURNS = 25
#: The same however near the script came: a finite script may be longer than anybody waits.
DRIVER_LONGEST = 200

#: Model turns at which evalkit itself ends a run: this, or twice the ideal harness's, whichever is more.
TURN_CAP = 60
