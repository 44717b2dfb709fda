"""What words claim, read by rules: the stand-in for an ideal reader, for live and recorded runs.

The rules, in order (``docs/judge.md`` says how well they do on a hand-labelled sample):

1. ``channel``: a call of the run's own finish tool claims done (:mod:`evalkit.transcripts.claims`).
2. ``keyword``: the agreed word on a line of its own, or "final answer:", claims done.
3. ``conclusion``: "we can conclude the task" claims done, whoever is to agree.
4. Otherwise sentences are read one by one. Courtesies ("if you need anything else") and conditions ("once it
   is done") say nothing. A *completion* ("has been successfully updated", "all tests pass") claims done
   unless another sentence is *open*: announces a step, asks for leave or for information, names what remains,
   or says what could not be done. Then the claim is partial.
5. Without a completion: ``blocked`` where something could not be done, ``partial`` where something remains.

A bare answer ("Yes") claims nothing, whatever the task was.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from evalkit.core.turns import Claim


class Reading(msgspec.Struct, frozen=True):
    """A claim, the rule that read it, and the words that it found, in lower case."""

    claim: Claim
    rule: str
    words: str = ""


def _any(*patterns: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), flags)


_DONE = (
    r"added|applied|booked|cancell?ed|changed|charged|closed|committed|complete|completed|concluded|created|"
    r"deleted|delivered|deployed|done|downgraded|finali[sz]ed|finished|fixed|fulfilled|implemented|in place|"
    r"issued|merged|migrated|moved|passing|posted|processed|rebooked|refunded|removed|renamed|replaced|"
    r"resolved|satisfied|saved|sent|set up|solved|submitted|updated|upgraded|written"
)
_KEYWORD_LINE = re.compile(r"^[\s*_`#]*(?:TERMINATE|TASK_COMPLETE|TASK COMPLETE)[\s*_`.!]*$", re.MULTILINE)
_FINAL_ANSWER = _any(r"\bfinal answer\s*(?:is)?\s*[:=]")
_CONCLUSION = _any(
    r"\b(?:can|could|will|suggest|proceed to|proceed with|so we can|able to)\b[^.?!\n]{0,40}"
    r"\b(?:conclud|terminat|end|clos|finaliz|finalis)(?:e|es|ing)?\b[^.?!\n]{0,12}"
    r"\b(?:task|conversation|answer|discussion|chat|issue|ticket|case)\b",
    r"\bconsider (?:this|the) (?:task|work|issue) (?:complete|done|closed|finished)\b",
    r"\b(?:this|that|which) (?:will )?concludes?\b",
)
_COMPLETION = _any(
    r"\bsuccessfully\b(?! (?:once|when|if))",
    rf"\b(?:has|have) (?:now |all |both |also |already )*been (?:\w+ly )?(?:{_DONE})\b",
    rf"\b(?:is|are|'s) (?:now |all |both |also |already |fully )+(?:{_DONE})\b",
    r"\b(?:is|are) (?:complete|completed|done|finished|fixed|implemented|migrated|resolved)\b",
    r"\b(?:all|every|everything|each|both|"
    r"the (?:task|work|job|issue|bug|fix|change|changes|migration|request))\b"
    rf"[^.?!\n]{{0,50}}\b(?:is|are|was|were|has been|have been)\b[^.?!\n]{{0,15}}\b(?:{_DONE})\b",
    rf"\b(?:i|we)(?:'ve| have) (?:now |also |just |already |all )*(?:{_DONE})\b",
    r"\ball (?:\w+ )?(?:tests|checks|criteria|steps|conditions)\b[^.?!\n]{0,20}"
    r"\b(?:pass|passed|met|verified)\b",
    r"\bbooking is confirmed\b",
    r"^\W*(?:all )?(?:done|finished|completed?)\W*$",
    r"\b(?:we're|we are|you're|you are|that's) (?:all )?(?:done|all set|finished)\b",
)
_NEGATED = _any(
    r"\b(?:not|n't|never|hasn't|isn't|aren't|haven't)\b[^.?!\n]{0,20}\b(?:successfully|" + _DONE + r")\b"
)
_CONDITION = re.compile(r"^\W*(?:once|when|if|after|before|until|as soon as|to)\b", re.IGNORECASE)
_COURTESY = _any(
    r"\banything else\b",
    r"\bif you (?:need|have|change|decide|want|would like|'d like|wish)\b",
    r"\bfeel free\b",
    r"\b(?:don't|do not) hesitate\b",
    r"\blet me know if\b",
    r"\bhappy to (?:help|assist)\b",
    r"\b(?:i|we) hope\b",
)
_STEP = _any(
    r"\b(?:i'll|i will|i'm going to|i am going to|we'll|we will)\b(?! be (?:here|happy|glad))",
    r"\blet me\b(?! know)",
    r"\blet's\b|\blet us\b",
    r"^\W*(?:next|now)\b,?",
    r"\bnext step\b",
    r"\b(?:continuing|proceeding|moving on|going on)\b",
)
_ASKING = _any(
    r"\b(?:would you like|shall i|should i|do you want|could you|can you|may i)\b",
    r"\bplease (?:check|confirm|execute|perform|proceed|provide|review|run|search|share|specify)\b",
    r"\bplease (?:verify|visit)\b",
    r"\blet me know (?:which|what|when|once|how|the)\b",
    r"\bi(?:'ll)? need (?:your|the|to|you)\b",
)
_REMAINS = _any(
    r"\bremain(?:s|ing)?\b(?! (?:balance|amount|unchanged|the same))",
    r"\bstill (?:need|open|pending|left|to|missing|failing|working|in progress)\b",
    r"\bleft to do\b|\bto be done\b|\bin progress\b|\bso far\b",
    r"\bnot\b[^.?!\n]{0,15}\byet\b|\bpartially\b|\btodo\b",
)
_COULD_NOT = _any(
    r"\b(?:unable to|cannot|can't|could not|couldn't|not able to|unfortunately|not possible|blocked)\b",
    r"\b(?:need|needs|awaiting|waiting for|requires) (?:your |an? )?(?:approval|permission|confirmation)\b",
)
_COUNT = re.compile(r"\b(\d{1,6}) (?:of|out of|/) (?:the )?(\d{1,6})\b|\b(\d{1,6})/(\d{1,6})\b")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCES = re.compile(r"(?<=[.!?:;])\s+|\n+")

#: Words of a turn that are read; of a longer one its beginning and its end.
_READ = 6_000


@lru_cache(maxsize=8192)
def read_claim(text: str) -> Reading:
    """What a text claims, and the rule that says so."""
    if len(text) > 2 * _READ:
        text = f"{text[:_READ]}\n{text[-_READ:]}"
    found = _KEYWORD_LINE.search(text)
    if found is not None:
        return Reading("done", "keyword", _shown(found))
    words = _CODE.sub("\n", text).replace("’", "'")
    found = _FINAL_ANSWER.search(words)
    if found is not None:
        return Reading("done", "keyword", _shown(found))
    found = _CONCLUSION.search(words)
    if found is not None:
        return Reading("done", "conclusion", _shown(found))
    completed: re.Match[str] | None = None
    open_ = could_not = remains = False
    for sentence in _SENTENCES.split(words):
        if _COURTESY.search(sentence):
            continue
        lacking = _COULD_NOT.search(sentence) is not None
        left = _REMAINS.search(sentence) is not None or _counts_open(sentence)
        could_not, remains = could_not or lacking, remains or left
        open_ = open_ or lacking or left or bool(_STEP.search(sentence) or _ASKING.search(sentence))
        if not _CONDITION.match(sentence) and not _NEGATED.search(sentence) and not sentence.endswith("?"):
            completed = completed or _COMPLETION.search(sentence)
    if completed is not None:
        said = _shown(completed)
        return (
            Reading("partial", "completion, but open", said) if open_ else Reading("done", "completion", said)
        )
    if could_not:
        return Reading("blocked", "could not")
    return Reading("partial", "remains") if remains else Reading("none", "no claim")


def _shown(found: re.Match[str]) -> str:
    """The words of a match, for those who count them."""
    return " ".join(found[0].lower().split())[:60].strip("*_`# .:!")


def _counts_open(sentence: str) -> bool:
    """Whether a sentence counts fewer than all: "4 of 6"."""
    for found in _COUNT.finditer(sentence):
        part, whole = (int(number) for number in found.groups() if number is not None)
        if part < whole:
            return True
    return False
