"""Whether a scenario is sound: its declarations hold together, and the ideal harness is the best on it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evalkit.core.tasks import Offered
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, ideal_episode, run_episode
from evalkit.scoring.static_facts import contradictions, remarks
from evalkit.scoring.synopsis import Told
from evalkit.scoring.twins import twin_problem, words_tell
from evalkit.strategies.presets import PRESETS, all_offered


class Finding(msgspec.Struct, frozen=True):
    """Something about a scenario; ``fails`` or only a warning."""

    scenario: str
    message: str
    fails: bool = True


class Checked(msgspec.Struct, frozen=True):
    """All findings on one scenario, and how the ideal run went: its turns in a line, its ending and truth."""

    findings: tuple[Finding, ...]
    ideal: str

    @property
    def sound(self) -> bool:
        """Whether nothing keeps it from being used."""
        return not any(finding.fails for finding in self.findings)


def check_scenario(scenario: Scenario, known: Mapping[str, Scenario], seeds: int = 3) -> list[Finding]:
    """All findings on one scenario; see :func:`examine`."""
    return list(examine(scenario, known, seeds).findings)


def examine(scenario: Scenario, known: Mapping[str, Scenario], seeds: int = 3) -> Checked:
    """All findings on one scenario; ``known`` are the scenarios it may name as its twin.

    The ideal harness and the presets play it with each set of channels that a preset offers, and with
    ``seeds`` seeds where the script has choices.
    """
    findings = [Finding(scenario.name, message) for message in contradictions(scenario)]
    findings += [Finding(scenario.name, message, fails=False) for message in remarks(scenario)]
    arenas = {offered: Arena(scenario, offered) for offered in all_offered()}
    runs = range(seeds if scenario.random else 1)
    ideal = ""
    # A crash is left out of the script of a harness that cannot be killed, as the ideal one.
    for offered, arena in arenas.items():
        for seed in runs:
            told = Told()
            episode = ideal_episode(arena, seed, told)
            line = told.line(episode.ending, episode.native, episode.truth, episode.turns)
            ideal = ideal or line
            if not episode.correct:
                problem = episode.why
                message = f"the ideal harness is not correct on it{_said(offered, seed)}: {problem}"
                return Checked((*findings, Finding(scenario.name, message)), line)
    findings += [Finding(scenario.name, message) for message in _presets(scenario, arenas, runs)]
    if scenario.twin is not None:
        findings += [Finding(scenario.name, message) for message in _check_twin(scenario, known)]
    return Checked(tuple(findings), ideal)


def _said(offered: Offered, seed: int) -> str:
    channels = [name for name in ("finish", "checklist", "keyword", "output") if getattr(offered, name)]
    return f" (channels: {', '.join(channels) or 'text only'}; seed {seed})"


# Presets


def _presets(scenario: Scenario, arenas: Mapping[Offered, Arena], seeds: range) -> list[str]:
    """What the presets' runs say against it: one gets where the driver does not, or a contract is broken."""
    correct: dict[str, bool] = {}
    found: list[str] = []
    for name, preset in PRESETS.items():
        arena = arenas[preset.strategy.offers]
        correct[name] = True
        for seed in seeds:
            episode = run_episode(arena, preset.strategy, seed)
            correct[name] = correct[name] and episode.correct
            if _clean(episode) and not found and not arena.reachable_from_start(seed):
                found.append(
                    f"{name} completes it ({episode.outcome} after {episode.turns} turns) and the ideal "
                    f"driver does not{_said(arena.offered, seed)}"
                )
    expect = scenario.expect
    if expect is not None:
        for named, wanted in ((expect.fails, False), (expect.passes, True)):
            if named is not None and named not in correct:
                found.append(f"expect: no preset {named!r}; known: {', '.join(PRESETS)}")
            elif named is not None and correct[named] != wanted:
                found.append(f"expect: {named} {'fails' if wanted else 'passes'} it")
    return found


def _clean(episode: Episode) -> bool:
    """Whether a run completed the work, and by no means that the ideal driver may not use."""
    return episode.truth == "complete" and not (
        episode.spoiled or episode.duplicate_effects or episode.ran_cut_off_call or episode.protocol_faults
    )


# Twins


def _check_twin(scenario: Scenario, known: Mapping[str, Scenario]) -> list[str]:
    twin = known.get(scenario.twin or "")
    if twin is None:
        return [f"twin: no scenario {scenario.twin!r}"]
    if twin.twin != scenario.name:
        return [f"twin: {twin.name!r} does not name this scenario as its twin"]
    for offered in all_offered():
        problem = twin_problem(Arena(scenario, offered), Arena(twin, offered))
        if problem:
            return [f"twin {twin.name!r}: {problem}{_said(offered, 0)}"]
    if words_tell(scenario, twin):
        return [f"twin {twin.name!r}: a reader of words alone tells the two apart"]
    return []
