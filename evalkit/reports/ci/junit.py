"""The gate's findings for a CI system: JUnit XML, GitHub annotations, a Markdown summary."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from evalkit.core.escaping import for_markdown
from evalkit.reports.ci.gate import CLEAN, REGRESSION, Judgement, Reason

_WORDS = {CLEAN: "clean", REGRESSION: "regression"}


def verdict(judgement: Judgement) -> str:
    """What the gate says, in words."""
    return _WORDS.get(judgement.code, "not gateable")


def junit_xml(judgement: Judgement) -> str:
    """One suite for each contender, one case for each scenario, and one for what concerns all scenarios.

    A regression is a failure; what cannot be gated is an error; what fails always, as it did before, is
    skipped, so that it is not lost among what passes.
    """
    root = ElementTree.Element("testsuites", name="evalkit gate")
    contenders = [*judgement.compared, *dict.fromkeys(r.contender for r in judgement.reasons)]
    for contender in dict.fromkeys(contenders):
        cases = dict.fromkeys(judgement.compared.get(contender, ()))
        mine = [reason for reason in judgement.reasons if reason.contender == contender]
        scenarios = dict.fromkeys((*cases, *(reason.scenario for reason in mine if reason.scenario)))
        suite = ElementTree.SubElement(root, "testsuite", name=_clean(contender or "run"))
        for scenario in ("", *scenarios):
            found = [reason for reason in mine if reason.scenario == scenario and reason.level != "note"]
            if scenario or found:
                case = _case(suite, contender or "run", scenario or "as a whole", found)
                if not found and scenario in cases and not judgement.compared[contender][scenario].correct:
                    ElementTree.SubElement(case, "skipped", message="always fails, as in the baseline")
        kinds = {
            "tests": "testcase",
            "failures": "testcase/failure",
            "errors": "testcase/error",
            "skipped": "testcase/skipped",
        }
        for name, path in kinds.items():
            suite.set(name, str(len(suite.findall(path))))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(
    suite: ElementTree.Element, contender: str, scenario: str, found: list[Reason]
) -> ElementTree.Element:
    case = ElementTree.SubElement(suite, "testcase", classname=_clean(contender), name=_clean(scenario))
    if found:
        kind = "failure" if any(reason.level == "regression" for reason in found) else "error"
        text = "\n".join(reason.message for reason in found)
        ElementTree.SubElement(case, kind, message=_clean(found[0].message)).text = _clean(text)
    return case


def _clean(text: str) -> str:
    """The text without characters that XML 1.0 cannot hold."""
    return "".join(
        letter
        for letter in text
        if letter in "\t\n\r"
        or (letter >= " " and not "\ud800" <= letter <= "\udfff" and letter not in "\ufffe\uffff")
    )


def github_annotations(judgement: Judgement) -> Iterator[str]:
    """Workflow commands, one for each finding that is no note."""
    for reason in judgement.reasons:
        kind = {"regression": "error", "not gateable": "error"}.get(reason.level, "notice")
        title = _property(f"evalkit gate: {reason.contender or 'run'}")
        yield f"::{kind} title={title}::{_data(reason.line)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def step_summary(judgement: Judgement) -> str:
    """The findings as Markdown, for a job's summary page."""
    lines = [f"## evalkit gate: {verdict(judgement)}", ""]
    for contender, found in judgement.compared.items():
        right = sum(record.correct == record.episodes for record in found.values())
        lines.append(f"- `{contender}`: correct in {right} of {len(found)} scenarios, every episode")
    if judgement.left_open:
        lines.append(f"- {judgement.left_open}")
    if judgement.reasons:
        lines += ["", "| | strategy | scenario | |", "| --- | --- | --- | --- |"]
        for reason in judgement.reasons:
            cells = (reason.level, reason.contender, reason.scenario, reason.message)
            lines.append("| " + " | ".join(for_markdown(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"
