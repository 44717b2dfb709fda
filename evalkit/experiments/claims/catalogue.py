"""The claims of the two documents that the project comes from, and of the papers they cite.

Each in our own words, with what its experiment does and what would count as shown.
"""

from __future__ import annotations

from evalkit.experiments.claims import about_checking, about_continuing, about_stopping
from evalkit.experiments.claims.claim import Claim

#: Keys of docs/sources.md.
SIGNALS, EARLY_STOPS = "signals brief", "early-stops brief"

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "reports-end-runs",
        SIGNALS,
        "A progress report may end the turn, and a loop that takes each end of turn for the end of "
        "the task stops there.",
        "Populations of honest models that report; premature stops of a loop that ends at silence, "
        "and of one that ends by the checks.",
        "The first rate is above the second, by intervals that do not overlap, in both populations.",
        about_stopping.reports_end_the_run,
    ),
    Claim(
        "silence-is-no-decision",
        EARLY_STOPS,
        "Ending because no tool was asked for is the absence of a decision, and nobody notices what "
        "is missing.",
        "The family partial_completion; runs that ended as done with work left, without a word about it.",
        "Silence has more of them than the full gate.",
        about_stopping.absence,
    ),
    Claim(
        "thinking-goes-quiet",
        SIGNALS,
        "Narration in thinking blocks is a second way for a harness to go quiet, apart from the end "
        "of turn read as the end.",
        "Scenarios with turns of thinking alone; a client that reads the first block as text against "
        "a plain loop.",
        "Some scenario is wrong only for the client that reads the first block, and some for the loop too.",
        about_stopping.thinking_only,
    ),
    Claim(
        "pause-is-no-end",
        SIGNALS,
        "A paused turn is to be sent back as it is; read as an answer, or ignored, it ends work silently.",
        "The family pause_turn under each policy for pauses, everything else equal.",
        "Sending back is correct more often than every other treatment.",
        about_stopping.pauses,
    ),
    Claim(
        "cut-off-is-no-answer",
        SIGNALS,
        "A turn cut off by a limit is no conclusion; ask again with a higher limit, or have it continued.",
        "The family truncation under each policy for cut-off turns, everything else equal.",
        "A higher limit beats reading the turn as content and stopping; continuing beats stopping.",
        about_stopping.cut_offs,
    ),
    Claim(
        "refusal-to-another-model",
        SIGNALS,
        "A refusal is to be asked of a fallback model, but for reasoning_extraction.",
        "Scenarios with a refusal under each policy for refusals, everything else equal.",
        "The fallback is correct more often than each other policy, and reasoning_extraction is "
        "handed over at the first refusal.",
        about_stopping.refusals,
    ),
    Claim(
        "structure-beats-inference",
        "both briefs",
        "Harnesses that define the end by a structural fact hold up better than those that infer it "
        "from a turn without calls.",
        "The whole library: correct runs of structural presets and of silence; an ideal reader of "
        "words beside them.",
        "Each structural preset is correct on more scenarios than silence.",
        about_stopping.structural,
    ),
    Claim(
        "a-call-means-it-only",
        SIGNALS,
        "A submit call or valid output says that the model means to be done; only a check of the work"
        " says that it is.",
        "Scenarios with full checks: runs that ended as done on unfinished work.",
        "Finish tool and typed output have some, the acceptance checks none.",
        about_stopping.means_it,
    ),
    Claim(
        "keywords-are-brittle",
        SIGNALS,
        "A keyword is explicit but brittle: to case, to phrasing, to being mentioned.",
        "The families keyword_misfire and channel_misuse with the preset keyword.",
        "There are false stops as well as finished runs that were not closed.",
        about_stopping.keyword,
    ),
    Claim(
        "ceilings-do-not-judge",
        SIGNALS,
        "A step ceiling is no judgement of completion; without one a stuck run never ends.",
        "Runs that need more than ten turns under a ceiling of ten; stuck runs with and without a ceiling.",
        "Some honest run is cut off by the ceiling, and more stuck runs end with one than without.",
        about_stopping.ceiling,
    ),
    Claim(
        "one-cause-two-failures",
        EARLY_STOPS,
        "Stopping too early and not stopping at all have one cause: nothing defines done. A "
        "definition cures both.",
        "A population that reports and one that checks again and again; loops without a definition of"
        " done and with the checks as one.",
        "The checks lower both rates, by intervals that do not overlap.",
        about_stopping.no_stopping,
    ),
    Claim(
        "children-report-for-parents",
        "arXiv 2503.13657, cited by the signals brief",
        "In systems of several agents a run ends too early because one agent's word is taken for the whole.",
        "Scenarios in which a child agent reports to its parent; done on unfinished work by a reader "
        "of words and by the checks.",
        "The reader of words has more of them than the checks.",
        about_stopping.delegated,
    ),
    Claim(
        "self-stop-dominates",
        "arXiv 2606.05238 (DeployBench), cited by the signals brief",
        "Among failed runs the agent's own stop, and no limit, is the dominant ending.",
        "A scripted population stops because its script says so, with probabilities that are assumptions.",
        "None: how often models do it is a fact about models. evalkit counts it on recorded and live runs.",
    ),
    Claim(
        "closing-words-are-equal",
        SIGNALS,
        "A verifier that is shown only the closing message cannot tell a run that did the work from "
        "one that made it up.",
        "Twin pairs, with equal words over different worlds, and a population whose tools lie.",
        "The reader of words tells no pair apart, the checks some; on the population its false ends "
        "are above those of the checks.",
        about_checking.closing_message,
    ),
    Claim(
        "evidence-it-did-not-write",
        SIGNALS,
        "A verifier gains independence by seeing what the harness recorded.",
        "A population that reads failed calls as successes; done on unfinished work by a reader of "
        "words and by a reader of the record.",
        "The reader of words has more, by intervals that do not overlap.",
        about_checking.evidence_helps,
    ),
    Claim(
        "without-checks-a-self-report",
        SIGNALS,
        "Take the acceptance checks away and what is left catches early stops, but no confident "
        "report of work never done.",
        "The gate with and without its checks on fabricated and failed steps, and on a lying and an "
        "honest population.",
        "With checks there is no false end, without them some; without them the lying population has "
        "more than the honest one.",
        about_checking.record_is_not_enough,
    ),
    Claim(
        "checklists-catch-the-honest",
        SIGNALS,
        "A checklist catches a model that stops with items knowingly open; it does not catch one that"
        " ticks what it never did.",
        "Populations of an honest reporter and of a box-ticker with a checklist, and silence beside them.",
        "No false end of the honest one, where silence has some, and false ends of the box-ticker.",
        about_checking.checklist_limits,
    ),
    Claim(
        "lists-are-summarised-away",
        "both briefs",
        "A checklist that lives only in the conversation can be summarised away, and completion is "
        "then held against a copy.",
        "The family compaction; the same condition with the list kept by the loop and in the conversation.",
        "Some run ends as done on unfinished work only because the list was in the conversation.",
        about_checking.outside_the_context,
    ),
    Claim(
        "finish-is-validated-in-code",
        "both briefs",
        "A finishing tool is to be validated against the items the run began with, and not believed.",
        "The whole library; done on unfinished work with a finish call believed and validated.",
        "Validation has fewer.",
        about_checking.validated,
    ),
    Claim(
        "enumeration-comes-first",
        EARLY_STOPS,
        "Validation works only where the run has an explicit list of its items.",
        "Scenarios that the validated finish closes rightly, played again with a listing tool that "
        "always fails: once with the items given beforehand, once with no list at all.",
        "With the items given more than half of them are closed rightly again, and more than without.",
        about_checking.enumeration,
    ),
    Claim(
        "partial-is-told-apart",
        EARLY_STOPS,
        "With a validated finish, partial work can be told from complete work: what was skipped is in"
        " the report.",
        "Scenarios whose model skips items; what the closed runs say.",
        "Every closed run is complete or ended as partial.",
        about_checking.skips_visible,
    ),
    Claim(
        "certificates-end-unsupported-stops",
        "arXiv 2608.23623, cited by the signals brief",
        "Claims bound to evidence that replays end unsupported terminations, at comparable completion"
        " where completion is supported.",
        "A mixed population under a reader of the whole conversation and under certificates: false "
        "ends, and finished work of what can be finished.",
        "Certificates have no false end and fewer than the reader, and finish no smaller share, by "
        "intervals that overlap or lie above.",
        about_checking.certificates,
    ),
    Claim(
        "partial-signals-mislead",
        "arXiv 2508.07935 (SHIELDA), cited by the signals brief",
        "Stopping too early comes from judging completion by partial signals of success.",
        "Scenarios with full checks, played again with weak checks and with none; done on unfinished work.",
        "The weaker the checks, the more false ends.",
        about_checking.partial_signals,
    ),
    Claim(
        "verifiers-beside-checks",
        SIGNALS,
        "A verifier beside the checks catches claims that the recorded evidence does not support.",
        "Scenarios by their checks: done on unfinished work by the checks alone, and by checks and record.",
        "With weak checks and with none the record lowers the count.",
        about_checking.verifier_beside_checks,
    ),
    Claim(
        "guidance-for-unattended-runs",
        SIGNALS,
        "A checklist and a smaller model that reads along make unattended runs hold up where a plain loop "
        "stops.",
        "Four populations under silence and under the preset for unattended runs; a lying one beside them.",
        "The preset is correct more often in each of the four, by intervals that do not overlap.",
        about_checking.vendor_pattern,
    ),
    Claim(
        "no-checks-need-a-person",
        SIGNALS,
        "A task without a mechanical check should go to a person for its closure.",
        "Scenarios without checks under the gate, and with every run handed over.",
        "The gate closes some on unfinished work, handing over closes none.",
        about_checking.person_without_checks,
    ),
    Claim(
        "models-cannot-tell",
        SIGNALS,
        "The model does not reliably tell in the shape of its output whether it reports or has finished.",
        "A scripted model's output has the shape its script gives it.",
        "None: this is about models. `evalkit judge` reads it from recorded runs.",
    ),
    Claim(
        "verifiers-are-cheap",
        SIGNALS,
        "A small verifier model is cheap beside the worker turn that it checks.",
        "The shipped verifiers are functions without a price.",
        "None: prices and lengths are facts about live models.",
    ),
    Claim(
        "failure-categories",
        "arXiv 2503.13657, cited by the signals brief",
        "Systems of several agents fail in recurring categories, early termination among them.",
        "A scripted library holds the categories that its authors wrote into it.",
        "None: the categories are found in recorded runs, not in scripts.",
    ),
    Claim(
        "continue-but-bounded",
        SIGNALS,
        "Automatic continuation is to be capped at two or three; without a cap a stuck run goes on for ever.",
        "A population that gets stuck, under caps of one, two, three and none; beside it what the "
        "caps cost a reporting population.",
        "Without a cap runs go on too long more often than under each cap, and under a cap of three never.",
        about_continuing.bounded,
        "Up to three nudges in a row are no over-continuation by definition, and the population gets stuck "
        "because it is written so.",
    ),
    Claim(
        "three-are-enough",
        SIGNALS,
        "Two or three continuations are enough before a person is asked.",
        "The whole library under the checks with three nudges and with eight.",
        "No run that eight nudges finish is given up after three.",
        about_continuing.three_are_enough,
    ),
    Claim(
        "unbounded-cost",
        SIGNALS,
        "Without a ceiling a loop that nudges spends without end.",
        "The stuck population, without the limits of its scenario, under endless nudges and under the gate.",
        "Some runs never end without a cap, none under the gate, and they cost more tokens.",
        about_continuing.cost,
        "A loop that ends only when the work is done does not end where a population never does it.",
    ),
    Claim(
        "name-the-open-items",
        SIGNALS,
        "A continuation message should name what is open.",
        "A population of which some reports wait for an item's name; nudges with names and without.",
        "Without names it stops too early more often, by intervals that do not overlap.",
        about_continuing.naming,
        "The population waits for names by assumption; that names help live models is untested.",
    ),
    Claim(
        "hooks-need-a-guard",
        SIGNALS,
        "A Stop hook that would block again for the same reason has to let the stop through, or it loops.",
        "The stuck population under a checklist hook without other caps, with the guard and without it.",
        "Without the guard runs go on too long, with it none does.",
        about_continuing.hook_guard,
        "The guard lets the second stop in a row through, and the population gets stuck because it is "
        "written so; its price is what is measured.",
    ),
    Claim(
        "exhaustion-reports",
        "both briefs",
        "When the budget is spent the run ends with the same report as ever: what is outstanding, and why.",
        "Scenarios with full checks that the gate gives up on, or that a limit ends.",
        "Each that leaves work open names all of it.",
        about_continuing.honest_exhaustion,
    ),
    Claim(
        "keys-make-repeats-harmless",
        SIGNALS,
        "Effects that a resumed run may repeat need an idempotency key, so that a repetition does nothing.",
        "Scenarios in which the harness is killed, under the gate: one that resumes from its "
        "transcript, one that begins anew, and the durable worker with its keys.",
        "Where tools take a key one of the first two repeats effects or ruins the work in some "
        "scenario, and the worker in none.",
        about_continuing.repeated,
    ),
    Claim(
        "record-outlives-the-process",
        SIGNALS,
        "After a restart the record kept outside the conversation, and not the transcript, tells what"
        " is left.",
        "The same scenarios: harnesses that resume from their transcript, or begin anew, "
        "against the durable worker with its record.",
        "The worker is correct on more of them than either.",
        about_continuing.outlives,
    ),
    Claim(
        "continuations-repeat-work",
        SIGNALS,
        "A continuation without a memory of what was done repeats work, with real effects.",
        "The family resume_effects under conditions that know the work and under ones that can lose "
        "sight of it.",
        "A condition that loses sight of finished work causes more harm than the checks.",
        about_continuing.nudges_repeat,
    ),
    Claim(
        "stop-reasons-lead",
        SIGNALS,
        "Text-only stops with open items are a leading indicator of runs that end too early.",
        "Over the populations: premature stops under silence against such stops as counted under the gate.",
        "The rank correlation is above what fewer than 5 in 100 orders drawn by chance reach.",
        about_continuing.telemetry,
    ),
    Claim(
        "small-budgets-stop-early",
        SIGNALS,
        "A budget that is too small is itself a cause of partial stops.",
        "An honest population under the gate with four token limits.",
        "The larger the limit the fewer unfinished runs, the smallest and the largest apart by "
        "intervals that do not overlap.",
        about_continuing.small_budget,
        "A limit only cuts: a larger one cuts no more.",
    ),
    Claim(
        "budgets-cure-no-reports",
        SIGNALS,
        "A budget answers another problem than reports that end the run.",
        "A population that checks again and again under the keyword, with a token budget and without: what "
        "the budget is for. The reporting population under silence, with budgets that bind in every run, in "
        "some and in none, and under the checks without a budget.",
        "The budget lowers over-continuation of the first, by intervals that do not overlap; no budget makes "
        "the second finish more, and the checks do.",
        about_continuing.budget_is_another_problem,
    ),
    Claim(
        "budgets-make-models-finish-gracefully",
        SIGNALS,
        "An announced task budget helps a model to finish gracefully.",
        "A scripted model does not read its budget.",
        "None: this is about models.",
    ),
    Claim(
        "vendor-reports",
        SIGNALS,
        "A model release ends more turns with reports, moves its narration into thinking blocks, and "
        "two accounts of it agree.",
        "evalkit can play such turns; that a release makes them is not its to show.",
        "None: `evalkit run --model` and `evalkit judge` measure it on live and recorded runs.",
    ),
    Claim(
        "framework-defaults",
        SIGNALS,
        "Framework limits changed between versions, so that a default is no safe ceiling.",
        "A fact about published versions.",
        "None here: the harness folders pin versions, and their runs show what those do.",
    ),
    Claim(
        "silence-is-an-error",
        EARLY_STOPS,
        "Silence should be an error and no completion: a run that ends without its finish call is an "
        "anomaly one can detect.",
        "The populations with a validated finish: how often work is left in runs that ended without an "
        "accepted finish call, and in those that ended with one.",
        "More often without, by intervals that do not overlap, in every population that has both.",
        about_continuing.anomalies,
    ),
)
