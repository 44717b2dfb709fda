"""What words claim, and how well the rules do on turns of real files that were labelled by hand."""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest

from evalkit.core.turns import Call, Text, Thinking, make_turn
from evalkit.strategies import claim_patterns as patterns
from evalkit.strategies import claim_reader as rules
from evalkit.transcripts.judging.corrected_rates import HELD_OUT, Errors, corrected
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_paths
from evalkit.transcripts.reader_accuracy import (
    Labelled,
    Measured,
    ReaderError,
    find_reader,
    measure,
    read_sample,
)
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.turn_claims import claim_of, read_claim
from tests.stats.simulations import READERS, SAMPLES, corrected_coverage
from tests.transcripts import files, found
from tests.transcripts.shared import trajectories

SAMPLE = Path(__file__).parent / "claim_sample.csv"


@pytest.mark.parametrize(
    ("text", "claim", "rule"),
    [
        ("All six endpoints are migrated.", "done", "completion"),
        ("Done.", "done", "completion"),
        ("I've fixed the bug and all tests pass.", "done", "completion"),
        ("Your booking has been successfully cancelled. Anything else?", "done", "completion"),
        ("Both records have been updated. If you need anything else, let me know!", "done", "completion"),
        ("The fix is complete: 3 of 3 checks pass.", "done", "completion"),
        ("**TERMINATE**", "done", "keyword"),
        ("Final answer: 42", "done", "keyword"),
        ("If you agree, we can conclude the task.", "done", "conclusion"),
        ("4 of 6 endpoints are migrated; going on with search.", "partial", "completion, but open"),
        ("I have implemented the parser. Next, I'll run the tests.", "partial", "completion, but open"),
        (
            "It was successfully updated. Would you like me to go on?",
            "partial",
            "completion, but open",
        ),
        ("Implementation complete. 12/12 tests passing.", "done", "completion"),
        ("Everything is done except the deployment.", "partial", "completion, but open"),
        ("Your order has been cancelled. Remaining balance: $201.", "done", "completion"),
        ("Do you agree? If yes, we can conclude.", "done", "conclusion"),
        ("<answer>42</answer>", "done", "keyword"),
        ("So it is \\boxed{42}.", "done", "keyword"),
        ('{"answer": 42}', "done", "keyword"),
        ('{"path": "a.py"}', "none", "no claim"),
        ("The tests pass in CI? I don't know whether the build passes.", "blocked", "could not"),
        ("Created `a.ics` with three events.", "done", "completion"),
        ("Configured and verified:\n\n- nginx on port 80", "done", "completion"),
        ("## Summary\n\nRemoved the retry.", "done", "completion"),
        ("SQLite 3.50 compiled with gcov in /app.", "done", "completion"),
        ("Proceed with the booking.", "none", "no claim"),
        ("Updated?", "none", "no claim"),
        ("Updated the parser. I could not run the tests here.", "done", "completion"),
        ("Fixed the import. The full suite timed out.", "done", "completion"),
        ("Fixed the lookup. I could not deploy it to production.", "partial", "completion, but open"),
        ("Added the flag. No failures remain.", "done", "completion"),
        ("Fixed the lookup. Remaining work: the export.", "partial", "completion, but open"),
        ("Updated the config. The PDFs did **not** compile.", "partial", "completion, but open"),
        ("Deployed 2.4. You will need to rotate the key.", "done", "completion"),
        ("Stopped because the disk is full. The copy was restored.", "partial", "completion, but open"),
        ("Removed the flag. 3 tests failed.", "partial", "completion, but open"),
        ("Added a fallback when the tests fail.", "done", "completion"),
        ("Added a fallback, but the tests fail.", "partial", "completion, but open"),
        ("Fixed:\n- the reader\n- the writer\n- rows cannot be joined twice", "done", "completion"),
        ("Fixed:\n- the reader\n- the writer\n- I could not join rows", "partial", "completion, but open"),
        ("Let me look at the file. It has been saved.", "done", "completion"),
        ("It has been saved. Let me look at the file.", "partial", "completion, but open"),
        ("No changes were needed.", "done", "completion"),
        ("Files staged. Ready to commit. Want me to do that for you?", "done", "completion"),
        ("Virtual environment created in venv/. What's next?", "done", "completion"),
        ("Remote origin added pointing to example.org. What would you like next?", "done", "completion"),
        ("Noted and saved.", "done", "completion"),
        ("Gap closed and everything re-synced.", "done", "completion"),
        ("Research complete. Here is the summary:", "done", "completion"),
        ("The full report is saved at /tmp/report.md.", "done", "completion"),
        ("The app is back up at http://127.0.0.1:5001.", "done", "completion"),
        ("It's working! The bot answers.", "done", "completion"),
        ("I've analyzed the code and created a CLAUDE.md file.", "done", "completion"),
        ("I've made all the requested changes.", "done", "completion"),
        ("Added the flag. 27/28 tests pass, 1 unrelated failure.", "done", "completion"),
        ("Added the flag. 27/28 tests pass.", "partial", "completion, but open"),
        ("Added the flag. The login is left as it was.", "done", "completion"),
        ("Added the flag. Half of the work is left.", "partial", "completion, but open"),
        ("Fixed the lookup. Next task: the export.", "done", "completion"),
        ("I've written a plan. Is this approach correct?", "partial", "completion, but open"),
        ("I have fixed the parser. Shall I go on?", "partial", "completion, but open"),
        ("The bottleneck is still the disk. I restored the default.", "partial", "completion, but open"),
        ("Half of the files staged.", "partial", "remains"),
        ("Half done.", "none", "no claim"),
        ("It is all done, as I said.", "done", "completion"),
        ("Two invoices are paid, one is left out.", "partial", "remains"),
        ("Exports finished: 2019, 2021 and 2023 are in the bucket.", "none", "no claim"),
        ("Strategies compared on the same scenarios.", "none", "no claim"),
        ("The list is no longer complete.", "none", "no claim"),
        ("No credentials are configured there.", "none", "no claim"),
        ("A script that uses the features we've implemented.", "none", "no claim"),
        ("All six tests pass a list.", "none", "no claim"),
        ("It has comments (e.g. // fixed in milestone 2).", "none", "no claim"),
        ("The task cannot be completed, so we can conclude the task.", "blocked", "could not"),
        ("The repository already implements the requested features.", "done", "completion"),
        ("I fixed it; 2/3 of the width is kept.", "done", "completion"),
        ("I fixed the parser: 2/3 tests passing.", "partial", "completion, but open"),
        ("Clean rebuild done. Try it now.", "done", "completion"),
        ("Two done.", "none", "no claim"),
        ("Also added four services to the plan.", "done", "completion"),
        ("The mail server is working. It is connected as root.", "done", "completion"),
        ("What is working: the reader.", "none", "no claim"),
        ("Deployment successful", "done", "completion"),
        ("The evaluation has finished.", "done", "completion"),
        ("The evaluation finished with errors.", "none", "no claim"),
        ("The daemon has already stopped.", "done", "completion"),
        ("Results were saved to `out/table.csv`.", "done", "completion"),
        ("Results will be saved to `out/table.csv`.", "none", "no claim"),
        ("The character is now at the bakery.", "done", "completion"),
        ("The export is now in progress.", "partial", "remains"),
        ("The client is fully functional.", "done", "completion"),
        ("I've drafted the letter.", "done", "completion"),
        ("The draft is ready for your review.", "done", "completion"),
        ("Key changes across both:\n- one retry", "done", "completion"),
        ("Nothing has been committed.", "none", "no claim"),
        ("Pushed. Those times should now be blocked.", "done", "completion"),
        ("Pushed. I am blocked by the review.", "partial", "completion, but open"),
        ("Restarted the worker, which is idle, waiting for jobs.", "done", "completion"),
        ("Restarted the worker. Waiting for the build.", "partial", "completion, but open"),
        ("Fixed the port. Version 7 is deploying.", "partial", "completion, but open"),
        ("Fixed:\n- port\n⏳ deployment", "partial", "completion, but open"),
        ("Fixed the port. The audit reveals 2 faults.", "partial", "completion, but open"),
        ("Plan saved to docs/plan.md. Which approach?", "partial", "completion, but open"),
        ("Fixed the port. Proceed?", "partial", "completion, but open"),
        ("Restored the copy. Pausing here.", "partial", "completion, but open"),
        ("The bug is not fixed yet.", "partial", "remains"),
        ("Two records remain.", "partial", "remains"),
        ("The records are done.", "done", "completion"),
        ("The records aren't done.", "none", "no claim"),
        ("I hope that it is resolved soon.", "none", "no claim"),
        ("I was unable to reach the server.", "blocked", "could not"),
        ("Once the migration has been completed I will report.", "none", "no claim"),
        ("Has everything been completed?", "none", "no claim"),
        ("Could you please provide your user ID?", "none", "no claim"),
        ("Yes", "none", "no claim"),
        ("```\nprint('all done')\n```", "none", "no claim"),
        ("", "none", "no claim"),
    ],
)
def test_words(text: str, claim: str, rule: str) -> None:
    reading = read_claim(text)
    assert (reading.claim, reading.rule) == (claim, rule)


WRITTEN = Path(__file__).parent / "written_claims.csv"


def test_written_ends_of_turn_of_every_kind_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    """Written for this test, half of them seen while the rules were: an upper bound, no estimate."""
    counts: dict[str, Measured] = {}
    with WRITTEN.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            read, done = read_claim(row["text"]).claim == "done", row["claim"] == "done"
            measured = counts.setdefault(row["kind"], Measured())
            measured.tp += read and done
            measured.fp += read and not done
            measured.fn += done and not read
            measured.tn += not read and not done
    with capsys.disabled():
        for kind, measured in counts.items():
            print(f"\nwritten, {kind}: {measured}", end="")
    assert set(counts) == {"coding", "operations", "research", "service"}
    for measured in counts.values():
        assert measured.precision is not None
        assert measured.precision >= 0.95
        assert measured.recall is not None
        assert measured.recall >= 0.85


def test_looking_for_words_first_changes_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    class All(frozenset[str]):
        def isdisjoint(self, other: object) -> bool:
            return False

    with WRITTEN.open(newline="", encoding="utf-8") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    texts += ["4 of 6 are migrated.", "All but one is fixed.", "You're all set!", "Done.", "We can conclude."]
    quick = [rules.read_claim.__wrapped__(text) for text in texts]
    for name in ("BRINGING", "COMPLETING", "COURTEOUS", "LACKING", "LEFT"):
        monkeypatch.setattr(patterns, name, All())
    monkeypatch.setattr(patterns, "LEFT_PHRASES", ("",))
    families = tuple((All(), patterns.ANY_WORD, pattern) for _, _, pattern in patterns.COMPLETIONS)
    monkeypatch.setattr(patterns, "COMPLETIONS", families)
    monkeypatch.setattr(rules, "_may_conclude", lambda words: True)
    assert [rules.read_claim.__wrapped__(text) for text in texts] == quick


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_an_interval_of_claims_covers_what_it_should(share: float, reader: tuple[float, float]) -> None:
    """90 % intervals for a share and a reader that are known (`make simulations` has the whole table)."""
    assert 0.86 <= corrected_coverage(400, share, reader, SAMPLES[0]) <= 0.95


def test_without_turns_or_with_a_reader_that_is_chance_nothing_is_said_of_claims() -> None:
    assert corrected(3, 0) is None
    assert corrected(3, 10, Errors(1, 9, 1, 9)) is None


def test_a_finish_call_claims_and_thoughts_and_cut_off_turns_do_not() -> None:
    assert claim_of(make_turn((Call("1", "submit", "{}"),), "tool_use")) == "done"
    assert claim_of(make_turn((Call("1", "mcp__x__finish", "{}"),), "tool_use")) == "done"
    assert claim_of(make_turn((Thinking("Everything is done."),), "end_turn")) == "none"
    assert claim_of(make_turn((Text("Everything is done."),), "max_tokens")) == "none"
    assert claim_of(make_turn((Text("Everything is done."),), "end_turn")) == "done"


def test_long_texts_are_read_at_both_ends() -> None:
    padding = "The state of an account was looked at. " * 1_000
    assert read_claim(f"{padding} Everything is done.").claim == "done"


def recording(tmp_path: Path) -> list[Recording]:
    found = list(read_paths([files.write(tmp_path / "a.json", files.chat())]))
    return [item for item in found if isinstance(item, Recording)]


def test_a_sample_is_counted_by_its_parts(tmp_path: Path) -> None:
    sample = [
        Labelled("a.json", 4, True, "one"),
        Labelled("a.json", 3, True, "one"),
        Labelled("a.json", 4, False, "two"),
        Labelled("a.json", 9, True, "two"),
        Labelled("b.json", 1, True, "two"),
    ]
    parts = measure(sample, recording(tmp_path), claim_of)
    one, two = parts["one"], parts["two"]
    assert (one.tp, one.fp, one.fn, one.tn) == (1, 0, 1, 0)
    assert (one.precision, one.recall) == (1.0, 0.5)
    assert (two.tp, two.fp, two.fn, two.tn) == (0, 1, 0, 0)
    assert len(two.missing) == 2
    assert [row.turn for row in one.wrong] == [3]
    assert Measured().precision is None
    assert "n/a" in str(Measured())


def test_samples_and_readers_that_cannot_be_used_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.csv"
    for text, why in (
        ("recording,turn\n", "no column 'claim'"),
        ("recording,turn,claim\na,x,done\n", "turn: 'x' is not a number"),
    ):
        path.write_text(text)
        with pytest.raises(ReaderError, match=why):
            read_sample(path)
    with pytest.raises(ReaderError, match="cannot be read"):
        read_sample(tmp_path / "none.csv")
    (tmp_path / "readers.py").write_text(
        "def shout(turn):\n    return 'DONE'\n\ndef fail(turn):\n    raise OSError('no model')\n\n"
        "def model(turn):\n    return 'done'\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    turn = make_turn((Text("x"),), "end_turn")
    assert find_reader("readers:model")(turn) == "done"
    for name, why in (
        ("readers", "expected module:name"),
        ("nowhere:x", "cannot be imported"),
        ("readers:none", "has no 'none'"),
    ):
        with pytest.raises(ReaderError, match=why):
            find_reader(name)
    with pytest.raises(ReaderError, match="gave 'DONE'; a claim is one of none, partial, blocked, done"):
        find_reader("readers:shout")(turn)
    with pytest.raises(ReaderError, match="failed: OSError: no model"):
        find_reader("readers:fail")(turn)


@pytest.mark.long
def test_the_labelled_sample_and_what_the_rules_make_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    folder = trajectories()
    with SAMPLE.open(newline="") as file:
        digests = {(row["recording"], int(row["turn"])): row["digest"] for row in csv.DictReader(file)}
    known = [
        item for item in read_paths([folder, folder.parent / "cassettes"]) if not isinstance(item, Problem)
    ]
    for item in known:
        name = item.id.removeprefix(f"{folder.as_posix()}/").removeprefix(f"{folder.parent.as_posix()}/")
        for number, step in enumerate(item.steps, 1):
            if (name, number) in digests:
                text = step.turn.text.encode("utf-8", "surrogatepass")
                # The turn is the one that was read when it was labelled.
                assert hashlib.blake2b(text, digest_size=8).hexdigest() == digests.pop((name, number))
    assert not digests
    parts = measure(read_sample(SAMPLE), known, claim_of)
    with capsys.disabled():
        for part, measured in parts.items():
            print(f"\nclaims, {part}: {measured}", end="")
    kinds = ("service", "research", "assistant")
    assert set(parts) == {f"{half} {kind}" for half in ("tuning", "held_out") for kind in kinds}
    for part, measured in parts.items():
        assert not measured.missing
        if not part.endswith("assistant"):
            assert measured.precision is not None
            assert measured.precision >= 0.9
            assert measured.recall is not None
            assert measured.recall >= 0.9
    # The figures that the guide quotes are these.
    for part, measured in parts.items():
        assert _quoted()[part] == (measured.tp, measured.fp, measured.fn, measured.tn)


def _quoted() -> dict[str, tuple[int, int, int, int]]:
    """The counts in the guide's table, by part: right and wrong claims, missed ones, right no-claims."""
    guide = (Path(__file__).parents[2] / "docs" / "judge.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z_ ]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", guide, re.MULTILINE)
    return {part: (int(tp), int(fp), int(fn), int(tn)) for part, tp, fp, fn, tn in rows}


def test_the_errors_that_intervals_carry_are_those_of_all_ends_held_out() -> None:
    newest = ("held_out", "unseen fifth", "unseen sixth", "seventh_held_out")
    held = [counts for part, counts in _quoted().items() if part.startswith(newest)]
    assert len(held) == 12
    tp, fp, fn, tn = (sum(counts) for counts in zip(*held, strict=True))
    assert Errors(tp, fn, tn, fp) == HELD_OUT


def test_found_ends_are_labelled_by_kind_and_the_guide_has_what_is_made_of_them() -> None:
    """What the texts are held against here wherever they lie; the counts of labels are held always."""
    rows = found.rows()
    assert len({row["digest"] for row in rows}) == len(rows)
    kinds = Counter(row["part"].rpartition(" ")[2] for row in rows)
    assert min(kinds["coding"], kinds["operations"]) >= 60
    for part in {row["part"] for row in rows}:
        labels = Counter(row["claim"] for row in rows if row["part"] == part)
        tp, fp, fn, tn = _quoted()[part]
        assert (labels["done"], labels["other"]) == (tp + fn, fp + tn)
    guide = (Path(__file__).parents[2] / "docs" / "judge.md").read_text(encoding="utf-8")
    assert f"kappa {found.kappa():.2f}" in guide
    for kind, (ends, alike, kappa) in found.readers().items():
        assert f"{kind} {alike} of {ends} ({kappa:.2f})" in " ".join(guide.split())
    texts = found.folder()
    if texts is None:
        pytest.skip("no folder of found ends of turn")
    for part, measured in found.held_against(texts).items():
        assert _quoted()[part] == (measured.tp, measured.fp, measured.fn, measured.tn)


def test_a_found_end_is_known_by_its_words_whatever_its_lines_and_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Done. Added the flag:\n```\nflag = 1\n```\nNo tests were needed."
    row = {"digest": found.digest(said), "claim": "done", "part": "third coding"}
    monkeypatch.setattr(found, "rows", lambda: [row])
    ends = [
        {
            "id": "a#1",
            "messages": [{"role": "user", "content": "Add it."}, {"role": "assistant", "content": text}],
        }
        for text in (said.replace("flag = 1", "…").replace("the flag", "the\n  flag"), "Something else.")
    ]
    files.write_lines(tmp_path / "ends.jsonl", ends)
    (measured,) = found.held_against(tmp_path).values()
    assert (measured.tp, measured.fn, measured.fp, measured.tn) == (1, 0, 0, 0)
