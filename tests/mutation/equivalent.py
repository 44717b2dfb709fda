"""Mutants that do the same as the original, each with the reason.

One that survives counts as equivalent only when it stands here and, where episodes pass through its place,
random scenarios from outside of the library gave equal episodes. It is known by its scope, what stood there
and what stands there.
"""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("evalkit.stats.signflip.sign_flip", "min(len(sizes), 60)", "max(len(sizes), 60)"): (
        "It estimates the work, as below: the choice between two ways to the same p-value."
    ),
    **{
        ("evalkit.stats.signflip._WHOLE_STEPS", "_WHOLE_STEPS = 2000000", f"_WHOLE_STEPS = {number}"): (
            "So much work is done in whole numbers; beyond it doubles give the same p-value."
        )
        for number in (2000001, 1999999)
    },
    (
        "evalkit.stage.conversation.Conversation._go_back",
        "if self.compactor is not None: self.compactor.look_away()",
        "pass",
    ): (
        "The next delivery looks away as well before it looks ahead. Until then one that the script comes to "
        "is due once, whether it was foreseen or not."
    ),
    (
        "evalkit.core.trace.Trace._reached",
        "0.0 in usd = 0.0 if self.limits.usd is None else self._usd(spent, written)",
        "1.0",
    ): "Without a limit in dollars none is compared with what was spent.",
    ("evalkit.scenarios.program.Play.emit", "step + 1 == self._steps", "step + 1 != self._steps"): (
        "Part of the key of a memory: either way it tells the last delivery from the others."
    ),
    ("evalkit.core.trace.Trace._compare", "name != call.id", "True"): (
        "An answer is looked for among those to other calls once it is not in what was shown, so that it is "
        "among them itself changes nothing."
    ),
    (
        "evalkit.loop.transitions._with_turn",
        "turn.calls and loop.offered.finish",
        "turn.calls",
    ): "A shorter way: without a finish tool on offer, and nothing told in words, no turn has a finish.",
    (
        "evalkit.core.trace.Trace.resolved",
        "not (request.again or whole) and (calls or results or turn.kind == 'pause')",
        "not (request.again or whole)",
    ): "A shorter way: no rule is about words that are answered by words.",
    ("evalkit.core.trace.Trace.no_turn", "turn.native or ''", "turn.native"): (
        "A fault without a native label can pass, and then none is kept."
    ),
    (
        "evalkit.core.trace.Trace.resolved",
        "not (request.again or whole) and (calls or results or turn.kind == 'pause')",
        "calls or results or turn.kind == 'pause'",
    ): (
        "A shorter way: what is sent back whole breaks no rule, and where a request is made again its turn "
        "is resolved already."
    ),
    ("evalkit.worlds.base.World.had", "tool.item or ''", "tool.item"): (
        "A call has no argument of the name '' and none of the name None."
    ),
    (
        "evalkit.stage.events.Events._foresee_crash",
        "not state.waits or self.player.listens(state)",
        "self.player.listens(state)",
    ): "Within a move nothing else is upcoming; what waits for ever has itself before it, which is no crash.",
    ("evalkit.stage.stage.Stage.key", "0 in shown = self._shown if self.player.reads else 0", "1"): (
        "It is in each key of a player that does not look, or in none: the same are the same."
    ),
    (
        "evalkit.core.trace.Trace.delivered",
        "if actions: self.calls_for(actions)",
        "self.calls_for(actions)",
    ): ("A shorter way: of no actions none is counted."),
    ("evalkit.loop.state.acting_tools", "not tool.read_only", "True"): (
        "Tools that only read are never looked up in it: what they answer is no success of an acting tool. "
        "With them in it the others have other places in the line, and what stands there is the same."
    ),
    (
        "evalkit.stage.events.Events._compaction_landed",
        "if self.trace is not None: self._forgotten = dict(self.trace.called)",
        "self._forgotten = dict(self.trace.called)",
    ): "Only the stage of a program compacts so, and that one has an observer. The rest is for the type.",
    ("evalkit.stage.events.Events.crash_answered", "return False", "return None"): (
        "It is asked as a condition everywhere, and None is as little one as False."
    ),
    (
        "evalkit.stats.causes.told_once",
        '0 in same[0] if len(same) == 1 else f"{move}, {len(same)} times{_from_to(same[0], sam',
        "-1",
    ): "Of a list of one the first is the last. (The first of several is told by a test.)",
    ("evalkit.stats.distributions._fraction", "abs(c) > _TINY", "abs(c) >= _TINY"): (
        "As for d below: it differs where a sum of terms near 1 is -1e-300 or 1e-300 to the last bit."
    ),
    (
        "evalkit.stats.intervals.intraclass_correlation",
        "1.0 in return min(1.0, max(0.0, (between - within) / scale)) if scale > 0 else 0.0",
        "2.0",
    ): (
        "The mean size is at least 1, so the divisor is at least what is divided and the share at most 1: "
        "the bound is there for a last bit."
    ),
    (
        "evalkit.stats.power.pilot_variance",
        "True in squares = sum((value - mean) ** 2 for values, mean in zip(filled, means, strict=",
        "False",
    ): "There is a mean of each line, so the two are always of one length.",
    (
        "evalkit.stats.ranking.share_played",
        '1 in return float(row[rate]["scenario_count"]) / (row["scenarios"] or 1)',
        "2",
    ): "Where no scenario was played nothing is counted, and none by 1 is none by 2.",
    (
        "evalkit.stats.run_comparison._differences",
        "True in differences = [b - a for a, b in zip(old, new, strict=True)]",
        "False",
    ): "Both are shares of the same pairs, so the two are always of one length.",
    (
        "evalkit.stats.signflip.sign_flip",
        "1 in states = min(2 * sum(sizes) + 1, 1 << min(len(sizes), 60))",
        "2",
    ): "It estimates the work, as below: the choice between two ways to the same p-value.",
    (
        "evalkit.worlds.base.World.had",
        '0 in item = self.vocabulary.get(str(arguments.get(tool.item or "")), 0)',
        "-1",
    ): "A call for what is no item of the world has no effect, so none of its action was ever counted.",
    ("evalkit.worlds.base.World.barred", "1 in self.walls += 1", "2"): (
        "It is only asked whether there are more than before."
    ),
    (
        "evalkit.worlds.ledger.LedgerWorld.had",
        '0 in return bool(self.done & self.vocabulary.get(str(arguments.get("payment")), 0))',
        "-1",
    ): (
        "A posting of what is no payment is answered by the world, from the record or not, in the same words "
        "and without an effect."
    ),
    ("evalkit.stats.scenario_results._placed", "if seeds == list(range(len(seeds))): return marks", "pass"): (
        "A shorter way: where the seeds are 0 to n - 1 in order, the loop below puts each mark at its own "
        "place of a line of n, which is the line of marks again."
    ),
    ("evalkit.scoring.twins.twin_problem", "return ''", "return None"): (
        "Its only caller asks whether there is a problem, and None is as little one as no words."
    ),
    (
        "evalkit.stage.stage.Stage._noted",
        "if self.remembers: self._answered.append(Answered(self.state, self.previous, parent, self.",
        "self._answered.append(Answered(self.state, self.previous, parent, self._met, emitted.actio",
    ): (
        "What is remembered of answers is read where a request stands at an earlier turn or at none. Only a "
        "stage at the end of a wire, which remembers, is asked from there."
    ),
    ("evalkit.stage.events.Events._through_events", "said or event in found", "event in found"): (
        "Whether words were said is asked together with whether any wait. Words that come after some were "
        "said always wait, unless the user is gone, and then all that come later are dropped."
    ),
    (
        "evalkit.stage.events.Events.crash_answered",
        "not self._crash_answered or turn is None",
        "not self._crash_answered",
    ): (
        "A kill for when the calls are answered is made ready by the delivery of a turn. Before the stage "
        "can be put back to where there is none, the next request crashes. The rest is for the type."
    ),
    ("evalkit.scenarios.emissions.Script._channel", "return 'text'", "return None"): (
        "A claim asks for the finish tool, the keyword and the output by name; whatever else a channel is is "
        "text, also none."
    ),
    (
        "evalkit.loop.policies._on_refusal",
        '0 in allowed = {"fallback": 1, "retry": REFUSALS_IN_A_ROW}.get(policy, 0)',
        "-1",
    ): (
        "Refusals in a row are held against how many are allowed, and there are never fewer than none: at "
        "least -1 says as much as at least 0."
    ),
    ("evalkit.loop.transitions._with_success", "item & item - 1", "item | item - 1"): (
        "For a call about one item a bit in a table says whether it had its effect before; else a set of "
        "logical actions does. Without the table all go by the set, which says the same of each."
    ),
    (
        "evalkit.loop.decisions.decide",
        "if not decision and (not loop.asks_each_turn): return end(loop, state, view, 'limit', limi",
        "pass",
    ): (
        "It is there where calls have run and a limit is reached. What follows asks done_when once, ends "
        "done where it is met, else by the limit, with the same report, as the branch does."
    ),
    ("evalkit.scoring.ideal.IdealMind.__init__", "1 in self._best = -1", "2"): (
        "Before anything is seen the best is below every count of settled items, and -2 is as -1 is."
    ),
    ("evalkit.core.trace.Trace.__init__", '0 in self._ended_on = (0, "")', "-1"): (
        "The number of turns is asked about together with the kind of what came, and without one it is none."
    ),
    **{
        ("evalkit.scoring.ideal.IdealMind.__init__", f"0 in self.{name} = 0", after): (
            "The first turn that is judged has more settled than the best so far, which is -1, and that sets "
            "the count to 0."
        )
        for name in ("_nudges", "_turns", "_unsettling")
        for after in ("1", "-1")
    },
    (
        "evalkit.scoring.arena.Arena.task",
        "self._task if seed == self._task.seed else msgspec.structs.replace(self._task, seed=seed)",
        "msgspec.structs.replace(self._task, seed=seed)",
    ): ("A task with its own seed put into it is an equal task."),
    (
        "evalkit.scoring.episode._find",
        "open_ or truth != 'complete'",
        "truth != 'complete'",
    ): ("With something open the oracle does not hold, and then the truth is not complete."),
    ("evalkit.worlds.base.World.__init__", "0 in self.changes = 0", "1"): (
        "It is only held against itself, and a trace's own count begins below both."
    ),
    (
        "evalkit.worlds.base.World.asked",
        "tuple((name for name in every if self.all & self.vocabulary[name])) if self.spec.later els",
        "tuple((name for name in every if self.all & self.vocabulary[name]))",
    ): (
        "A shorter way: without items that come later all are asked for from the start, and none is ever "
        "taken back, so the names that are kept are all of them in the same order."
    ),
    **{
        ("evalkit.stats.distributions.beta_cdf", f"{before} in if x < (a + 1) / (a + b + 2):", after): (
            "On either side of that bound the value is the same, by I_x(a, b) = 1 - I_(1-x)(b, a); it only "
            "says which of the two fractions ends sooner. At 4,000 random points they are 2e-12 apart."
        )
        for before, after in (("1", "2"), ("2", "1"), ("2", "3"))
    },
    ("evalkit.stats.distributions._fraction", "abs(d) > _TINY", "abs(d) >= _TINY"): (
        "It differs where a sum of terms near 1 is -1e-300 to the last bit, and then by the sign of a value "
        "that stands for zero."
    ),
    **{
        ("evalkit.stats.distributions._STEPS", "_STEPS = 20000", f"_STEPS = {number}"): (
            "The fraction comes to its precision, and ends, in half as many steps for 10^8 episodes."
        )
        for number in (20001, 19999)
    },
    ("evalkit.stats.distributions._bisect", "200 in for _ in range(200):", "199"): (
        "Halves of 0 to 1 come to neighbouring doubles in 60 steps, where the search ends; only a quantile "
        "below 2^-147 takes more, and of it the last bit."
    ),
    **{
        (
            "evalkit.stats.signflip.sign_flip",
            f"{before} in states = min(2 * sum(sizes) + 1, 1 << min(len(sizes), 60))",
            after,
        ): (
            "It estimates the work, to choose between whole numbers and doubles, which give the same p-value "
            "(test_in_doubles_as_in_whole_numbers)."
        )
        for before, after in (("2", "3"), ("60", "61"))
    },
    (
        "evalkit.stats.strategy_comparison.adjust",
        'True in for row, p in zip(rows, adjusted([(row["p"], row["note"]) for row in rows]), str',
        "False",
    ): "Holm's adjustment gives as many as it is given, so the two are always of one length.",
    (
        "evalkit.stats.summary._cost",
        '0 in tokens, output = total.get("tokens", 0), total.get("output_tokens", 0)',
        "1",
    ): (
        "A sum lacks its tokens where it has no episode at all; then nothing is correct either, and each "
        "figure that they go into is None."
    ),
}
