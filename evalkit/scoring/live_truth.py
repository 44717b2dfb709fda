"""The truth of live and recorded runs: complete or not, and what a probe may add."""

from __future__ import annotations

from contextlib import suppress

from evalkit.drivers.in_process import drive
from evalkit.drivers.live import LiveStage
from evalkit.models.spending import LimitReached
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.ideal import FAILED, IdealMind
from evalkit.scoring.reasons import accepted_outcomes
from evalkit.stage.stage import NeverEnds


class RecordedJudge:
    """Judges live runs. They have no fork of the model, so truth is ``complete`` or ``incomplete``.

    ``probe`` turns: a copy of the conversation on a forked world, continued by the ideal driver, says
    ``reachable`` or ``not_reached_in_K``. Without a probe premature_stop has no base.
    """

    def __init__(self, scenario: Scenario, probe: int = 0) -> None:
        self.scenario = scenario
        self.probe = probe

    def truth(self, stage: LiveStage, seed: int) -> str:
        """The truth of a run that has ended."""
        if stage.world.holds():
            return "complete"
        if not self.probe:
            return "incomplete"
        if stage.purse is not None:
            stage.purse.purpose = "probe"
        twin = stage.fork()
        twin.cap = twin.turns + self.probe
        try:
            with suppress(NeverEnds):
                drive(IdealMind(twin, None), twin, pending=FAILED if twin.faulted else twin.previous.turn)
            reached = twin.world.holds()
        except LimitReached:
            # Nobody knows: the episode is kept, and out of the base of premature stops.
            return "incomplete"
        finally:
            twin.world.close()
        return "reachable" if reached else f"not_reached_in_{self.probe}"

    def completes(self, seed: int, truth: str) -> bool | None:
        """With a probe: whether the work was, or could be, completed; else nobody can say."""
        return truth in ("complete", "reachable") if self.probe and truth != "incomplete" else None

    def accepts(self, seed: int, ending: str, truth: str, honest: bool | None, nudges: int) -> bool:
        """``done/complete``, what the scenario accepts, and without checks a closure by a person."""
        outcome = f"{ending}/{truth}"
        if outcome in (self.scenario.accept or ("done/complete",)):
            return True
        closed_by_person = self.scenario.task.checks == "none" and outcome == "escalated/complete"
        return self.scenario.accept is None and closed_by_person and honest is not False

    def accepted(self, seed: int, honest: bool | None, nudges: int) -> tuple[str, ...]:
        """The outcomes that the scenario accepts of such a run, for saying so."""
        return tuple(self.scenario.accept or accepted_outcomes(self, seed, honest, nudges))
