"""What words claim, read by rules: the stand-in for an ideal reader, for live and recorded runs.

The rules, in order (``docs/judge.md`` says how well they do on hand-labelled samples, by kind of agent):

1. ``channel``: a call of the run's own finish tool claims done (:mod:`evalkit.transcripts.turn_claims`).
2. ``keyword``: the agreed word on a line of its own, or "final answer:", claims done; so does an answer in a
   channel that prompts agree: ``<answer>`` tags, ``\\boxed{}``, a line "ANSWER: …", a JSON object alone.
3. ``conclusion``: "we can conclude the task" claims done, whoever is to agree, unless the task "cannot be
   completed".
4. Otherwise sentences are read one by one. Courtesies ("if you need anything else") and conditions ("once
   it is done") say nothing. A *completion* ("has been updated", "I fixed", "12/12 tests pass", "no changes
   were needed", "is running again", a line on the whole: "Clean rebuild done.", or a report that opens with
   what was done: "Configured and verified:", "Files staged.", "Ready.") claims done unless another
   sentence, or an exception in its own ("all but the deployment"), is *open*: announces a step, asks for
   leave or for information, names what remains, fails or is under way ("is deploying"), or says what could
   not be done. Then the claim is partial. "No failures remain" leaves nothing open, nor does a check that
   could not be run, the case that something was done for ("a fallback when the pull fails"), a thing that
   cannot in a report that lists what was done, what fails and is unrelated, "let me look" before what is
   done then, or an offer behind a report ("What would you like next?", "Want me to push it?").
5. Without a completion: ``blocked`` where something could not be done, ``partial`` where something remains.

A bare answer ("Yes") claims nothing, whatever the task was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from evalkit.core.tasks import occurs_whole
from evalkit.core.turns import Claim, Finish, parse_arguments
from evalkit.strategies import claim_patterns as patterns


class Reading(msgspec.Struct, frozen=True):
    """A claim, the rule that read it, and the words that it found, in lower case."""

    claim: Claim
    rule: str
    words: str = ""


#: Words of a turn that are read; of a longer one its beginning and its end.
_READ = 6_000


@lru_cache(maxsize=8192)
def read_claim(text: str) -> Reading:
    """What a text claims, and the rule that says so."""
    if len(text) > 2 * _READ:
        text = f"{text[:_READ]}\n{text[-_READ:]}"
    found = patterns.KEYWORD_LINE.search(text) if "TERMINATE" in text or "TASK" in text else None
    if found is not None:
        return Reading("done", "keyword", _shown(found))
    words = without_code(text).replace("’", "'").lower()
    found = patterns.FINAL_ANSWER.search(words) if "answer" in words or "boxed" in words else None
    if found is not None:
        return Reading("done", "keyword", _shown(found))
    if text.lstrip()[:1] == "{" and _is_answer(text):
        return Reading("done", "keyword", "a JSON answer")
    found = patterns.CONCLUSION.search(words) if _may_conclude(words) else None
    if found is not None and not patterns.UNDOABLE.search(words):
        return Reading("done", "conclusion", _shown(found))
    return _by_sentences(words)


def without_code(text: str) -> str:
    """A text without the code that it quotes: claims are read in words alone."""
    return patterns.CODE.sub("\n", text) if "```" in text else text


def read_skips(text: str, names: Iterable[str]) -> Finish | None:
    """What words say of skipped items: None where they name none.

    A sentence that says "skipped" or "skipping", and is no negation, question or possibility, skips the ids
    that stand whole in it. The reason stands in brackets, behind a dash, behind a colon that follows an id,
    or behind "because", "since", "due to" and the like; where one gives one, skips without do not count.
    """
    found: list[tuple[tuple[str, ...], str]] = []
    for sentence in patterns.SENTENCE_ENDS.split(text):
        words = sentence.lower()
        if (
            not patterns.SKIPPING.search(words)
            or patterns.NO_SKIP.search(words)
            or words.rstrip().endswith("?")
        ):
            continue
        ids = tuple(name for name in names if occurs_whole(name, sentence))
        if not ids:
            continue
        behind = max(sentence.rfind(name) + len(name) for name in ids)
        reason = patterns.REASON.search(sentence) or patterns.COLON.match(sentence, behind)
        found.append((ids, next(filter(None, reason.groups()), "").strip() if reason else ""))
    reasons = [reason for _, reason in found if reason]
    told = [name for ids, reason in found if reason or not reasons for name in ids]
    return Finish(skipped=tuple(dict.fromkeys(told)), reason="; ".join(reasons)) if told else None


def _by_sentences(words: str) -> Reading:
    told = set(patterns.WORDS.findall(words))
    may_complete = not patterns.COMPLETING.isdisjoint(told)
    could_not = not patterns.LACKING.isdisjoint(told)
    remains = not patterns.LEFT.isdisjoint(told) or any(phrase in words for phrase in patterns.LEFT_PHRASES)
    counted = " of " in words or "/" in words
    completed = _opening(patterns.SENTENCES.split(words, patterns.HEADLINES))
    if not (completed or may_complete or could_not or remains or counted):
        return Reading("none", "no claim")
    sentences = patterns.SENTENCES.split(words)
    if not patterns.COURTEOUS.isdisjoint(told):
        sentences = [sentence for sentence in sentences if not patterns.COURTESY.search(sentence)]
    place = 0
    if completed is None and may_complete:
        place, completed = next(_completions(sentences), (0, None))
    lacking = list(filter(patterns.COULD_NOT.search, sentences)) if could_not else []
    if completed is None and lacking:
        return Reading("blocked", "could not")
    left = filter(patterns.REMAINS.search, sentences) if remains else ()
    open_ = not all(map(patterns.NOTHING_LEFT.search, left)) or (counted and _counts_open(words))
    open_ = open_ or patterns.UNDER_WAY_MARK in words
    if completed is None:
        return Reading("partial", "remains") if open_ else Reading("none", "no claim")
    lacking = [one for one in lacking if not (patterns.OPENING.match(one) and patterns.CASE.search(one))]
    lacking = [one for one in lacking if not patterns.BESIDE.search(one)]
    if len(patterns.LISTED.findall(words)) >= patterns.REPORT_LINES:
        lacking = list(filter(patterns.OWN_LACK.search, lacking))
    open_ = open_ or not all(map(patterns.UNCHECKED.search, lacking))
    if not open_:
        asked = filter(patterns.ASKING.search, sentences)
        reported = place < patterns.HEADLINES
        open_ = any(map(patterns.STEP.search, sentences)) or any(
            not (reported and patterns.OFFER.search(one)) for one in asked
        )
    if not open_ and "let me" in words:
        last = max((place for place, _ in _completions(sentences)), default=0)
        open_ = any(map(patterns.LET_ME.search, sentences[last:]))
    said = _shown(completed)
    return Reading("partial", "completion, but open", said) if open_ else Reading("done", "completion", said)


def _may_conclude(words: str) -> bool:
    return any(stem in words for stem in patterns.CONCLUDING) and any(
        noun in words for noun in patterns.CONCLUDED
    )


def _opening(sentences: list[str]) -> re.Match[str] | None:
    """The words by which a report opens that says what was done, headlines passed over."""
    for sentence in sentences:
        told = patterns.WORDS.findall(sentence)
        found = patterns.OPENING.match(sentence) or (
            None if patterns.BRINGING.isdisjoint(told[1:]) else patterns.BROUGHT.match(sentence)
        )
        if found is not None:
            return None if sentence.endswith("?") or patterns.NEGATED.search(sentence) else found
        if len(told) > patterns.HEADLINE_WORDS:
            return None
    return None


def _completions(sentences: list[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """The sentences that say that something is done, by their places."""
    for place, sentence in enumerate(sentences):
        if sentence.endswith("?"):
            continue
        told = patterns.WORDS.findall(sentence)
        matches = (
            pattern.search(sentence)
            for gate, besides, pattern in patterns.COMPLETIONS
            if not gate.isdisjoint(told) and not (besides and besides.isdisjoint(told))
        )
        found = min(filter(None, matches), key=re.Match.start, default=None)
        if found is None or patterns.CONDITION.match(sentence) or patterns.NEGATED.search(sentence):
            continue
        if found.re is patterns.BY_US and patterns.RELATIVE.search(sentence, max(0, found.start() - 30)):
            continue
        yield place, found


def _is_answer(text: str) -> bool:
    """Whether a text is an object of JSON alone that says that it is the answer."""
    plain = text.strip()
    if not plain.startswith("{") or not plain.endswith("}"):
        return False
    value = parse_arguments(plain)
    return value is not None and any(str(key).lower() in patterns.ANSWERS for key in value)


def _shown(found: re.Match[str]) -> str:
    """The words of a match, for those who count them."""
    return " ".join(found[0].lower().split())[:60].strip("*_`# .:!")


def _counts_open(words: str) -> bool:
    """Whether a text counts fewer than all: "4 of 6". Lines on what is unrelated to the work do not count."""
    for found in patterns.COUNT.finditer(words):
        part, whole = (int(number) for number in found.groups() if number is not None)
        line = words[words.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0]
        if part < whole and not patterns.BESIDE.search(line):
            return True
    return False
