"""One episode, turn by turn: what the model did, what was decided and why, where the truth changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from evalkit.core.decisions import Action, End, Reissue, Reject, Resend, RunTools, Send, Verdict
from evalkit.core.events import Approves, Compacts, Event
from evalkit.core.requests import Result
from evalkit.core.tasks import Task
from evalkit.core.turns import Turn
from evalkit.harnesses.episode_record import Exchange, Observed, shown_block
from evalkit.media.players import Recorded
from evalkit.reports.foreign_transcript import episode_figures, short, truth_change_line
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.scoring.episode_fields import Episode
from evalkit.stage.stage import Stage
from evalkit.strategies.strategy import Strategy


class Step(msgspec.Struct, frozen=True):
    """One delivered turn, or an answer that was none, and what came of it.

    ``settled`` counts the settled items when the turn's calls had run; ``held`` is the oracle then.
    ``number`` is 0 for an answer that is no turn. ``before`` is what happened from outside before it.
    """

    number: int
    stop: str
    native: str | None
    claim: str
    blocks: tuple[dict[str, Any], ...]
    results: tuple[dict[str, Any], ...]
    action: str
    says: str
    verdict: str
    met: bool | None
    settled: int
    held: bool
    before: tuple[str, ...] = ()


class Transcript(msgspec.Struct, frozen=True):
    """An episode and its steps. ``complete_at`` is the first turn after which the oracle held, 0 for none."""

    scenario: str
    strategy: str
    seed: int
    items: int
    steps: tuple[Step, ...]
    episode: Episode
    complete_at: int


def replay(
    scenario: Scenario,
    strategy: Strategy,
    seed: int,
    arena: Arena | None = None,
    recorded: Recorded | None = None,
) -> Transcript:
    """Play a scripted or recorded episode again and keep every step: it is the same each time.

    ``recorded`` plays the recordings of a live run. ``arena``, one of the scenario and the strategy's
    channels, shares what it knows between episodes.
    """
    arena = arena or Arena(scenario, strategy.offers)
    recorder = Recorder()
    if recorded is None:
        episode = run_episode(arena, strategy, seed, recorder, on_stage=recorder.attach)
    else:
        episode = recorded(arena, strategy, seed, recorder, recorder.attach)
    complete = next((step.number for step in recorder.steps if step.held), 0)
    return Transcript(
        scenario.name,
        strategy.name,
        seed,
        len(scenario.world.items),
        tuple(recorder.steps),
        episode,
        complete,
    )


def observe_worker(
    scenario: Scenario, strategy: Strategy, seed: int, arena: Arena | None = None
) -> tuple[list[Exchange], Episode]:
    """An episode of the durable worker run again, with its exchanges.

    Seen from outside, like a foreign harness: what it decided shows in what it asked next.
    """
    from evalkit.scoring.worker_episode import run_worker_episode

    arena = arena or Arena(scenario, strategy.offers)
    stages: list[Observed] = []

    def watch(stage: Stage) -> Stage:
        stages.append(Observed.of(stage))
        return stages[0]

    def crashed() -> None:
        # Called between two attempts: what the killed one had left unread is read by the next.
        world, exchanges = stages[0].world, stages[0].exchanges
        if exchanges and not exchanges[-1].action:
            exchanges[-1].settled, exchanges[-1].held = world.settled().bit_count(), world.holds()
        words = "The worker is killed; another goes on from its record."
        exchanges.append(Exchange(0, "crash", None, "none", [{"kind": "text", "text": words}]))

    episode = run_worker_episode(arena, strategy, seed, watch=watch, on_crash=crashed)
    (stage,) = stages
    stage.close()
    if stage.exchanges:
        native = f" ({episode.native})" if episode.native else ""
        stage.exchanges[-1].action = f"ended {episode.ending}{native}"
    for turns, event in stage.happened:
        after = next((step for step in stage.exchanges if step.number > turns), None)
        if after is not None:
            after.before = [*after.before, _event(event, stage.task)]
    return stage.exchanges, episode


class Recorder:
    """Keeps what happens in an episode as steps; ``attach`` tells it of the stage."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.turns = 0
        self.stage: Any = None
        self._told = 0

    def attach(self, stage: Any) -> None:
        self.stage = stage

    def __call__(
        self, turn: Turn, action: Action, verdict: Verdict | None, results: tuple[Result, ...]
    ) -> None:
        if isinstance(action, RunTools):
            return
        real = not turn.is_no_turn
        self.turns += real
        world = self.stage.world
        # A live stage has no script, so no events of one.
        happened = getattr(self.stage, "happened", ())
        told, self._told = self._told, len(happened)
        self.steps.append(
            Step(
                number=self.turns if real else 0,
                stop=turn.stop,
                native=turn.native,
                claim=turn.claim,
                blocks=tuple(shown_block(block) for block in turn.content),
                results=tuple({"text": result.text, "error": result.error} for result in results if real),
                action=_action(action),
                says=_words_of(action),
                verdict=verdict.reason if verdict is not None else "",
                met=verdict.met if verdict is not None else None,
                settled=world.settled().bit_count(),
                held=world.holds(),
                before=tuple(_event(event, self.stage.task) for _, event in happened[told:]),
            )
        )


def _event(event: Event, task: Task) -> str:
    if isinstance(event, Approves):
        return f"approved: {', '.join(task.names(event.items))}" if event.items else "approval refused"
    if isinstance(event, Compacts):
        return "the conversation is compacted"
    return f"the user writes{' and leaves' if event.closes else ''}: {event.text}"


def _action(action: Action) -> str:
    match action:
        case End():
            native = f" ({action.ending.native})" if action.ending.native else ""
            return f"ended {action.ending.kind}{native}"
        case Send():
            return "nudged" if action.text else "went on"
        case Resend():
            return "sent the paused turn back"
        case Reject():
            return "rejected the finish"
        case Reissue():
            names = {
                "retry": "asked the same again",
                "poll": "asked for the pending answer",
                "limit": "asked again with a larger limit",
                "model": "asked the fallback model",
                "shorten": "asked again with a shortened history",
            }
            return names[action.why]
    return type(action).__name__


def _words_of(action: Action) -> str:
    if isinstance(action, Send | Reject):
        return action.text or ""
    return ""


def transcript_text(transcript: Transcript) -> str:
    """The transcript for a terminal."""
    lines = [f"{transcript.scenario} × {transcript.strategy}, seed {transcript.seed}"]
    complete = False
    for step in transcript.steps:
        lines.extend(step_lines(step, transcript.items))
        if step.held != complete:
            complete = step.held
            lines.append(truth_change_line(complete))
    episode = transcript.episode
    if episode.truth == "complete" and not complete:
        lines.append("       *** the work is complete once what was accepted has settled")
    if episode.open_items:
        lines.append(f"not settled: {', '.join(episode.open_items)}")
    lines.append(episode_figures(episode))
    return "\n".join(lines) + "\n"


def step_lines(step: Step, items: int) -> Iterator[str]:
    """One step in a world of so many items, as lines for a terminal."""
    label = step.stop if step.native in (None, step.stop) else f"{step.stop} (label {step.native})"
    head = f"{step.number:>3}" if step.number else "  –"
    bar = "■" * step.settled + "□" * (items - step.settled)
    shown = bar if items <= 40 else f"{step.settled} of {items}"
    for event in step.before:
        yield f"     * {short(event)}"
    yield f"{head}  {label:<24} {shown}"
    for block in step.blocks:
        yield f"       {block['kind']}: {short(block['text'])}"
    for result in step.results:
        yield f"       {'error' if result['error'] else 'result'}: {short(result['text'])}"
    if step.met is not None:
        yield f"       done? {'yes' if step.met else 'no'}: {step.verdict}"
    if step.action != "went on":
        yield f"     → {step.action}" + (f": {short(step.says)}" if step.says else "")
