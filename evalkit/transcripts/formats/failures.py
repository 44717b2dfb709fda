"""Whether a tool's answer is a failure: by exit codes and fields where it has them, else by what tools print.

A flag of the recording's own always wins; these rules are for answers without one. They look at the answer's
head and at its last lines, never at its middle: a file that was read may speak of errors.
"""

from __future__ import annotations

import re
from typing import Any

#: Characters of an answer that are looked at, from its beginning and from its end.
_HEAD, _TAIL = 600, 400
#: Characters of JSON in which the fields of the answer itself stand; deeper down they are those of its data.
_FIELDS = 240

#: Exit codes in the headers and footers that shells, sandboxes and harnesses put around an output.
_CODE = re.compile(
    r"(?:^|\n|[\[(<{,;.\"']|\b)\s*[\"']?"
    r"(?:process exited with(?: exit)? code|command (?:failed|exited|finished|completed|failed and"
    r" exited) with(?: an?)?(?: exit)?(?: code| status)?|"
    r"exited with(?: exit)?(?: code| status)?|exit[ _-]?code|"
    r"exit[ _-]?status|return[ _-]?code|returned non-zero exit status)"
    r"[\"']?\s*[:=>]?\s*(-?\d{1,10})\b",
    re.IGNORECASE,
)
#: Fields of an answer in JSON that say how the call went.
_FIELD = re.compile(
    r"[\"'](?:is_?error|success|ok|status|error|errors|isError)[\"']\s*:\s*"
    r"(?P<value>true|false|null|None|True|False|\[\s*\]|\{\s*\}|\"\"|''|\"[^\"\n]{1,80}|'[^'\n]{1,80}|\{|\[|\d+)",
)
_FIELD_NAME = re.compile(r"[\"'](is_?error|success|ok|status|error|errors|isError)[\"']\s*:")
_BAD_STATUS = frozenset(("error", "failed", "failure", "errored", "timeout"))
#: The first words of what compilers, shells, interpreters and services print when they fail.
_FIRST = re.compile(
    r"(?:[\w./-]+: )?(?:"
    r"error\b(?! (?:handling|messages?|codes?|log|rate)\b)|errors?:|"
    r"\[error|<error|<tool_use_error|exception\b|"
    r"traceback|fatal\b|panic:|"
    r"thread '[^']*' panicked|failed\b|failure\b|failed to|cannot |can't |could not|couldn't |"
    r"unable to|invalid |"
    r"no such |not found\b|permission denied|access denied|unauthorized|forbidden|bad request|timed? ?out|"
    r"timeout\b|command timed out|connection (?:refused|reset)|unknown (?:command|option|tool|function)|"
    r"unrecognized|unexpected |syntax ?error|npm err!|err!|❌|✗|\[errno|"
    r"(?:4\d\d|5\d\d) (?:client|server|bad|not|unauth|forbid|internal|too|service|gateway|method)|"
    r"http (?:error )?[45]\d\d|tool call (?:failed|rejected|errored)|"
    r"the (?:user|tool) (?:doesn't want|rejected|denied)|"
    r"your (?:proposed )?edit has introduced|wrong (?:answer|flag|input|password)|curl: \(\d+\)|"
    r"user (?:rejected|denied|aborted)|interrupted|aborted\b|killed\b|segmentation fault|core dumped)",
    re.IGNORECASE,
)
_NAMED_ERROR = re.compile(r"\A[\w.]*(?:Error|Exception|Warning as error)\b\s*[:(]")
#: What a browser's tool shows of a page that is not there.
_PAGE = re.compile(r"(?:^|\n)Title: (?:Error )?[45]\d\d\b")
#: Within the first line: what shells and file tools say of a name that they did not find or may not use.
_LINE = re.compile(
    r"(?:: command not found|: no such file$|\(no such file or directory\)|"
    r": +cannot (?:find|open|access|stat)|"
    r": no such file or directory|: not found|: permission denied|: is a directory|"
    r": not a directory|does not exist|doesn't exist|is not recognized as|has no attribute|not allowed|"
    r"is not defined|was not found|could not be found|no match(?:es)? found for|string to replace not found|"
    r"old_str.{0,40}did not appear|exceeds? (?:the )?maximum|failed with|"
    r": invalid option|: unrecognized option)",
    re.IGNORECASE,
)
#: At the end of an output: how an interpreter, a build or a test run says that it failed.
_LAST = re.compile(
    r"(?:\A|\n)(?:error: (?:test|build|could|failed|cannot|no|unable|aborting).*|"
    r".*: invalid input|Error[.:] .*|"
    r"[\w.]*(?:Error|Exception|Interrupt)(?:: .*)?|Traceback \(most recent call last\):.*|"
    r"E {3}.*|=+ .*\b[1-9]\d* (?:failed|errors?)\b.*=*|FAILED .*|\s*[1-9]\d* (?:failing|failed)\b.*|"
    r"Tests:\s+[1-9]\d* failed.*|FAIL\b.*|make(?:\[\d+\])?: \*\*\* .*|error: could not compile.*|"
    r"error: aborting due to.*|BUILD FAILED.*|.*\bBUILD FAILURE\b.*|npm ERR!.*|"
    r"Command exited with non-zero.*|"
    r"exit(?:ed)?(?: with)? (?:code|status) [1-9]\d*|fatal: .*|bash: .*: command not found|Killed|"
    r"Segmentation fault.*)\s*\Z",
)
_HARMLESS = re.compile(r"\A\s*(?:no errors?|0 errors?|error(?:s)?: (?:0|none|null|false)\b)", re.IGNORECASE)


def looks_failed(text: str) -> bool:
    """Whether an answer without a flag of its own is a failure."""
    if not text:
        return False
    head = text[:_HEAD].lstrip()
    code = _code(head) or (_code(text[-200:], last=True) if len(text) > _HEAD else None)
    if code is not None:
        return int(code) != 0
    if head[:1] in "{[":
        said = _by_fields(head[:_FIELDS])
        if said is not None:
            return said
    if _HARMLESS.match(head):
        return False
    if _FIRST.match(head) or _NAMED_ERROR.match(head) or ("Title: " in head and _PAGE.search(head[:300])):
        return True
    line, _, rest = head.partition("\n")
    if len(line) <= 300 and not rest.strip() and _has(line.lower(), _IN_LINES) and _LINE.search(line):
        return True
    last = text[-_TAIL:].rstrip()
    cut = last.rfind("\n")
    last = last if cut < 0 else last[cut:]
    return _has(last, _IN_LAST) and _LAST.search(last) is not None


# What every match of the two patterns for whole lines holds one of: to look for it first is cheap.
_IN_LINES = ("not", "no such", "no match", "denied", "a directory", "exceed", "failed", "option", "cannot")
_IN_LAST = (
    *(
        "rror",
        "xception",
        "nterrupt",
        "Traceback",
        "E   ",
        "fail",
        "FAIL",
        "***",
        "ERR!",
        "exit",
        "fatal",
        "not found",
    ),
    *("Killed", "fault", "non-zero", "invalid input"),
)


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(map(text.__contains__, words))


def _code(part: str, *, last: bool = False) -> str | None:
    """The exit code that a part of an answer tells; the last one where there are several."""
    # Python has no way to say "one of these words first"; to look for them is cheap.
    low = part.lower()
    if "exit" not in low and "return" not in low and "command" not in low:
        return None
    found: list[str] = _CODE.findall(part)
    return found[-1 if last else 0] if found else None


def _by_fields(head: str) -> bool | None:
    """What the fields at the beginning of a JSON answer say; None where none of them does."""
    name = _FIELD_NAME.search(head)
    found = _FIELD.search(head)
    if name is None or found is None or found.start() != name.start() or found.start() > 120:
        return None
    field, value = name[1].lower().replace("_", ""), found["value"].strip("\"'")
    low = value.lower()
    if field in ("success", "ok"):
        return True if low == "false" else False if low == "true" else None
    if field == "status":
        if value.isdigit():
            return int(value) >= 400 if len(value) == 3 else None
        return True if low in _BAD_STATUS else None
    return not (low in ("false", "null", "none", "", "0") or re.fullmatch(r"[\[{]\s*[\]}]", value))


def exit_code(value: Any) -> int | None:
    """An exit code in a field of its own; None where it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() and len(value) < 12 else None
