"""The page as a reader meets it: opened from disk in a headless Chromium."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.experiments.studies.looks import looks_study
from evalkit.reports.charts.draw import _draw
from evalkit.reports.harnesses.league.figures import Behaviour, League, Result, Row
from evalkit.reports.harnesses.league.page import league_page
from evalkit.reports.page import html
from evalkit.reports.page.html import write_page
from evalkit.reports.study_page import write_study
from evalkit.runs.plan import Plan, make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import Store
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.suites import load_suites
from evalkit.stats.summary import summarize
from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.judging.run import Judgement, judge_paths
from tests.helpers import document
from tests.reports.chromium import Browser, find_chromium
from tests.transcripts import files as recordings

pytestmark = pytest.mark.browser

EXAMPLE = "migration-reports-at-four-of-six"
EVENTS = "summary-holds-what-was-lost"
NAMES = (EXAMPLE, EVENTS, "pauses-then-reports", "promises-for-ever", "receipt-kept", "receipt-lost")
STRATEGIES = ("silence", "acceptance", "gate")
CHARTS = ("outcomes-full", "forest-full", "cost-full", "heat-correct")
TITLE = "document.querySelector('#episode-title')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if find_chromium() is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is not installed; on Debian: apt-get install chromium")
        pytest.skip("Chromium is not installed")
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def plan() -> Plan:
    scenarios = [scenario for scenario in load_suites(()) if scenario.name in NAMES]
    sources = {scenario.place: Path(scenario.place).read_text(encoding="utf-8") for scenario in scenarios}
    return make_plan(scenarios, sources, STRATEGIES, 1, None)


def report(plan: Plan, folder: Path, *, charts: bool = False, transcripts: int = html.TRANSCRIPTS) -> Path:
    store = Store.create(folder, plan.recipe)
    run_plan(plan, store, 1)
    summary = summarize(store)
    (folder / "charts").mkdir()
    drawn = [_draw(summary, name, folder / "charts") for name in (CHARTS if charts else ())]
    page = write_page(store, summary, drawn, transcripts=transcripts)
    store.close()
    return page


@pytest.fixture(scope="module")
def page(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> str:
    return report(plan, tmp_path_factory.mktemp("report"), charts=True).as_uri()


@pytest.fixture
def opened(browser: Browser, page: str) -> Iterator[Browser]:
    """The page at desktop width; afterwards nothing may have been fetched or complained of."""
    browser.size(1280, 900)
    browser.media()
    browser.open(page)
    yield browser
    assert [url for url in browser.requests if url not in (page, "about:blank")] == []
    assert browser.complaints == []


def rows(browser: Browser) -> list[list[str]]:
    found: list[list[str]] = browser.run(
        "[...document.querySelectorAll('#cases tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    return found


def choose(browser: Browser, form: str, name: str, text: str) -> None:
    """Choose an option of a select by its text, as a reader does."""
    browser.run(
        f"(() => {{ const s = document.querySelector('{form} [name={name}]');"
        f"s.value = [...s.options].find(o => o.textContent.startsWith({text!r})).value;"
        "s.dispatchEvent(new Event('input', {bubbles: true}));"
        "s.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def open_case(browser: Browser, scenario: str, strategy: str) -> None:
    browser.run(
        "[...document.querySelectorAll('#cases tbody tr')].find(r => "
        f"r.cells[0].textContent === {scenario!r} && r.cells[1].textContent === {strategy!r})"
        ".querySelector('button').click()"
    )
    browser.until(f"document.querySelector('#episode').open && {TITLE}.textContent === {scenario!r}")


def text(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector('{selector}').textContent"))


@pytest.mark.long
def test_it_opens_from_disk_with_the_answer_first(opened: Browser) -> None:
    first = opened.run("document.querySelector('main > section').id")
    assert first == "answer"
    assert opened.run("document.querySelectorAll('.answers article').length") >= 1
    assert opened.run("document.querySelectorAll('svg.chart:not(.narrow)').length") == len(CHARTS)


@pytest.mark.long
def test_filters(opened: Browser) -> None:
    everything = rows(opened)
    assert len(everything) > 4
    choose(opened, "#filters", "contender", "silence")
    assert {row[1] for row in rows(opened)} == {"silence"}
    assert text(opened, "#counted").startswith(f"{len(rows(opened))} of {len(everything)} cases")
    choose(opened, "#filters", "fault", "premature stop")
    assert all("premature stop" in row[5] for row in rows(opened))
    opened.run(
        "(() => { const s = document.querySelector('#filters [name=words]'); s.value = 'FOUR-of';"
        "s.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    assert [row[:2] for row in rows(opened)] == [[EXAMPLE, "silence"]]
    opened.run("document.querySelector('#filters [type=reset]').click()")
    opened.until(f"document.querySelectorAll('#cases tbody tr').length === {len(everything)}")


def test_a_transcript(opened: Browser) -> None:
    open_case(opened, EXAMPLE, "silence")
    steps = opened.run("[...document.querySelectorAll('#episode .step')].map(s => s.innerText)")
    assert len(steps) == 6
    last = steps[-1]
    for said in ("Turn 6", "end_turn", "claims partial", "4/6", "judged done, but it was not", "ended done"):
        assert said in last
    assert "The run stopped here: done/reachable; not settled: search, admin" in last
    about = text(opened, "#episode .about")
    assert "the model reports progress after four" in about
    assert "Migrate every endpoint" in about
    meter = opened.run(
        "document.querySelector('#episode .step:last-child .meter').getAttribute('aria-label')"
    )
    assert meter == "4 of 6 items settled"
    assert opened.run("location.hash") == f"#case={EXAMPLE}/silence/0"


def test_where_the_work_was_complete(opened: Browser) -> None:
    open_case(opened, EXAMPLE, "silence")
    choose(opened, "#episode", "strategy", "acceptance")
    opened.until("document.querySelector('#episode .side-head').textContent.includes('acceptance')")
    marks = opened.run("[...document.querySelectorAll('#episode .mark')].map(m => m.textContent)")
    assert marks == ["The work is complete from here", "The run stopped here: done/complete"]


def beside(browser: Browser, other: str) -> dict[str, Any]:
    choose(browser, "#episode", "beside", other)
    browser.until("document.querySelector('#parting') !== null")
    found: dict[str, Any] = browser.run(
        "(() => { const top = (n) => Math.round(n.getBoundingClientRect().top);"
        "const cells = [...document.querySelectorAll('.body > .sides.two > *')];"
        "const after = cells.slice(cells.indexOf(document.querySelector('#parting')) + 1);"
        "const pairs = []; for (let i = 0; i < after.length; i += 2) pairs.push([after[i], after[i + 1]]);"
        "return { parting: document.querySelector('#parting').textContent,"
        "tops: pairs.map(([a, b]) => [top(a), top(b)]),"
        "turns: pairs.map(p => p.map(n => n.querySelector('.turn span')?.textContent ?? '')),"
        "same: document.querySelector('.same summary')?.textContent ?? '' }; })()"
    )
    return found


def test_two_strategies_are_aligned_where_they_part(opened: Browser) -> None:
    open_case(opened, EXAMPLE, "silence")
    found = beside(opened, "acceptance")
    assert found["parting"] == "Here they part: turn 6"
    assert found["same"].startswith("The first 5 steps are the same in both")
    assert found["turns"] == [["Turn 6", "Turn 6"], ["", "Turn 7"], ["", "Turn 8"], ["", "Turn 9"]]
    assert all(left == right for left, right in found["tops"])


def test_ticks_on_a_checklist_are_no_parting(opened: Browser) -> None:
    open_case(opened, EXAMPLE, "silence")
    assert beside(opened, "gate")["parting"] == "Here they part: turn 6"


def test_a_count_leads_to_its_episodes_and_the_address_keeps_the_filter(opened: Browser, page: str) -> None:
    opened.run(
        "[...document.querySelectorAll('#level-full table.sortable tbody tr')]"
        ".find(r => r.cells[0].textContent === 'silence').cells[3].querySelector('a').click()"
    )
    opened.until("location.hash.startsWith('#failures?')")
    # Sorted: silence has false dones; each of these rows, and no other, is one.
    shown = rows(opened)
    assert shown
    assert {row[1] for row in shown} == {"silence"}
    assert all("false done" in row[5] for row in shown)
    choose(opened, "#filters", "fault", "premature stop")
    address = opened.run("location.hash")
    assert address == "#failures?strategy=silence&checks=full&fault=premature%20stop"
    before = rows(opened)
    opened.open(f"{page}{address}")
    assert rows(opened) == before
    opened.requests[:] = [url for url in opened.requests if not url.startswith(page)]


def test_a_tile_and_a_cause_lead_to_the_list(opened: Browser) -> None:
    opened.run("document.querySelector('#families svg a').focus()")
    opened.press("Enter")
    opened.until("location.hash.startsWith('#failures?strategy=')")
    assert "family=" in opened.run("location.hash")
    opened.run("document.querySelector('#causes td a').focus()")
    opened.press("Enter")
    opened.until("location.hash.includes('words=')")
    # The address changes first; the list follows on the event that it causes.
    opened.until("document.querySelector('#cases tbody tr') !== null")


def test_what_tells_strategies_apart_comes_first(opened: Browser) -> None:
    failing: dict[str, set[str]] = {}
    order = rows(opened)
    for row in order:
        failing.setdefault(row[0], set()).add(row[1])
    apart = [len(failing[row[0]]) * (len(STRATEGIES) - len(failing[row[0]])) for row in order]
    assert apart == sorted(apart, reverse=True)


def test_a_transcript_opens_at_the_decision(opened: Browser) -> None:
    opened.size(1280, 420)
    open_case(opened, EXAMPLE, "silence")
    opened.until("document.querySelector('#episode .decision') !== null")
    place = opened.run(
        "(() => { const d = document.querySelector('#episode .decision').getBoundingClientRect(),"
        " b = document.querySelector('#episode .body').getBoundingClientRect();"
        " return [d.top - b.top, b.height, document.querySelector('#episode .body').scrollTop]; })()"
    )
    assert 0 <= place[0] < place[1]
    assert place[2] > 0
    assert "judged done, but it was not" in text(opened, "#episode .decision")


def test_one_file_to_send_has_all_of_it(browser: Browser, plan: Plan, tmp_path: Path) -> None:
    store = Store.create(tmp_path / "run", plan.recipe)
    run_plan(plan, store, 1)
    write_page(store, summarize(store), [], single=True)
    store.close()
    sent = tmp_path / "elsewhere" / "sent.html"
    sent.parent.mkdir()
    (tmp_path / "run" / html.SINGLE_FILE).rename(sent)
    browser.size(1280, 900)
    browser.open(sent.as_uri())
    browser.until("document.querySelectorAll('#cases tbody tr').length > 0")
    open_case(browser, EXAMPLE, "silence")
    assert "4 of 6 endpoints are migrated" in text(browser, "#episode")
    assert [url for url in browser.requests if url not in (sent.as_uri(), "about:blank")] == []
    assert browser.complaints == []


#: Words of charts that overlap each other or leave their chart; words that are turned are left to the eye.
CROWDED = """
[...document.querySelectorAll('svg.chart')].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  const turned = (t) => /rotate\\((?!0)-?[1-9]/.test(t.getAttribute('transform') ?? '') ||
    /rotate\\((?!0)-?[1-9]/.test(t.parentElement.getAttribute('transform') ?? '');
  const texts = [...svg.querySelectorAll('text')].filter((t) => t.textContent.trim() && !turned(t))
    .map((t) => ({words: t.textContent, r: t.getBoundingClientRect()}));
  const out = texts.filter(({r}) => r.left < box.left - 1 || r.right > box.right + 1 ||
    r.top < box.top - 1 || r.bottom > box.bottom + 1).map(({words}) => 'outside: ' + words);
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  const over = texts.flatMap((a, n) => texts.slice(n + 1).filter((b) => meet(a.r, b.r))
    .map((b) => a.words + ' over ' + b.words));
  return [...out, ...over];
})
"""
#: Words of the page that stick out of the window, or out of something that hides what sticks out.
CUT_OFF = """
(() => {
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement;
    if (!node.textContent.trim()) continue;
    if (parent.closest('script, style, svg, noscript, select, .skip, .unseen')) continue;
    if (parent.closest('dialog:not([open]), details:not([open])')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const r = range.getBoundingClientRect();
    if (!r.width) continue;
    let hider = parent;
    const shows = (e) => !e.classList.contains('scroll') && getComputedStyle(e).overflowX === 'visible';
    while (hider && shows(hider)) hider = hider.parentElement;
    if (hider?.matches('.scroll, .block')) continue;
    const whole = !hider || hider === document.documentElement || hider === document.body;
    const edge = whole ? {left: 0, right: innerWidth} : hider.getBoundingClientRect();
    if (r.left < edge.left - 1 || r.right > edge.right + 1) found.push(node.textContent.trim());
  }
  return found;
})()
"""


@pytest.mark.parametrize(
    ("width", "dark", "media"), [(1440, False, ""), (390, True, ""), (1000, False, "print")]
)
def test_no_words_overlap_or_are_cut_off(opened: Browser, width: int, dark: bool, media: str) -> None:
    opened.size(width, 900, mobile=width < 500)
    opened.media(media=media, dark=dark)
    assert opened.run("document.querySelectorAll('svg.chart text').length") > 50
    assert opened.run(CROWDED) == []
    assert opened.run(CUT_OFF) == []


def test_a_link_opens_the_same_view(opened: Browser, page: str) -> None:
    opened.open(f"{page}#case={EXAMPLE}/silence/0/acceptance")
    opened.until("document.querySelector('#parting') !== null")
    heads = opened.run("[...document.querySelectorAll('.side-head strong')].map(n => n.textContent)")
    assert heads == ["silence", "acceptance"]
    opened.requests[:] = [url for url in opened.requests if not url.startswith(page)]


def test_what_happened_from_outside_is_told(opened: Browser) -> None:
    open_case(opened, EVENTS, "silence")
    events = opened.run("[...document.querySelectorAll('#episode .event')].map(e => e.textContent)")
    assert events == ["the conversation is compacted"]
    step = opened.run("document.querySelector('#episode .event').parentNode.innerText")
    assert step.index("compacted") < step.index("Turn 5")


def test_by_keyboard(opened: Browser) -> None:
    opened.run("document.querySelector('#cases tbody button').focus()")
    opened.press("Enter")
    opened.until("document.querySelector('#episode').open")
    # The dialog has the focus, and the page behind it is out of reach.
    assert opened.run("document.querySelector('#episode').contains(document.activeElement)")
    opened.press("Tab")
    assert opened.run("document.querySelector('#episode').contains(document.activeElement)")
    opened.press("Escape")
    opened.until("!document.querySelector('#episode').open")
    assert opened.run("document.activeElement === document.querySelector('#cases tbody button')")


def test_next_and_previous_follow_the_filter(opened: Browser) -> None:
    choose(opened, "#filters", "contender", "silence")
    wanted = [row[0] for row in rows(opened)]
    open_case(opened, wanted[0], "silence")
    seen = [wanted[0]]
    while not opened.run("[...document.querySelectorAll('.controls button')].at(-2).disabled"):
        opened.run("[...document.querySelectorAll('.controls button')].at(-2).click()")
        opened.until(f"{TITLE}.textContent !== {seen[-1]!r}")
        seen.append(opened.run(f"{TITLE}.textContent"))
    assert seen == wanted


def test_tables_sort(opened: Browser) -> None:
    table = "document.querySelectorAll('table.sortable')[0]"
    head = f"{table}.tHead.rows[0].cells[9]"
    column = f"[...{table}.tBodies[0].rows].map(r => Number(r.cells[9].dataset.sort))"
    opened.run(f"{head}.querySelector('button').click()")
    assert opened.run(column) == sorted(opened.run(column), reverse=True)
    opened.run(f"{head}.querySelector('button').click()")
    assert opened.run(column) == sorted(opened.run(column))
    assert opened.run(f"{head}.getAttribute('aria-sort')") == "ascending"


def test_a_table_with_two_lines_of_heads_sorts_too(opened: Browser) -> None:
    table = "document.querySelector('table.stops')"
    heads = opened.run(f"[...{table}.tHead.rows[1].cells].map(c => c.textContent)")
    place = heads.index("end_turn")
    opened.run(f"{table}.tHead.rows[1].cells[{place}].querySelector('button').click()")
    column = opened.run(f"[...{table}.tBodies[0].rows].map(r => Number(r.cells[{place}].dataset.sort))")
    assert column == sorted(column, reverse=True)


def test_charts_have_their_figures_as_a_table(opened: Browser) -> None:
    shown = opened.run(
        "[...document.querySelectorAll('figure')].map(f => "
        "[f.querySelector('svg').getAttribute('aria-label'), f.querySelectorAll('.figures tbody tr').length])"
    )
    assert [rows for title, rows in shown if title.startswith("How runs ended")] == [len(STRATEGIES)]


def test_every_control_has_a_name(opened: Browser) -> None:
    open_case(opened, EXAMPLE, "silence")
    nodes = opened.send("Accessibility.getFullAXTree")["nodes"]
    asked = {
        "button",
        "link",
        "combobox",
        "searchbox",
        "textbox",
        "image",
        "table",
        "dialog",
        "region",
        "meter",
    }
    nameless = [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored")
        and node.get("role", {}).get("value") in asked - {"table"}
        and not node.get("name", {}).get("value")
    ]
    assert nameless == []


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_width_scrolls_sideways(opened: Browser, width: int) -> None:
    opened.size(width, 844, mobile=width < 500)
    assert opened.run("document.documentElement.scrollWidth") <= width
    open_case(opened, EXAMPLE, "silence")
    beside(opened, "acceptance")
    box = opened.run("(r => [r.left, r.right])(document.querySelector('#episode').getBoundingClientRect())")
    assert 0 <= box[0] <= box[1] <= width
    assert opened.run("(b => b.scrollWidth - b.clientWidth)(document.querySelector('.body'))") <= 1


def test_on_a_phone_charts_and_tables_are_whole(opened: Browser) -> None:
    opened.size(390, 844, mobile=True)
    opened.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    shown = "[...document.querySelectorAll('.scroll')].filter((e) => e.offsetParent)"
    assert opened.run(f"{shown}.length") > 5
    wider = f"{shown}.filter((e) => e.scrollWidth > e.clientWidth + 1)"
    assert opened.run(f"{wider}.map((e) => e.getAttribute('aria-label'))") == []
    shares = opened.run(
        "document.querySelector('svg.narrow[aria-label^=\"How runs\"] text').getBoundingClientRect().height"
    )
    assert shares > 9


def _contrast(browser: Browser, selector: str) -> float:
    """The contrast of an element's text with what is behind it (WCAG 2)."""
    return float(
        browser.run(
            "(() => { const lum = (c) => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)"
            ".map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);"
            "return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };"
            f"let n = document.querySelector('{selector}'); const ink = lum(getComputedStyle(n).color);"
            "let ground = 'rgba(0, 0, 0, 0)';"
            "while (n && /, 0\\)$/.test(ground)) "
            "{ ground = getComputedStyle(n).backgroundColor; n = n.parentElement; }"
            "const b = lum(ground); return (Math.max(ink, b) + 0.05) / (Math.min(ink, b) + 0.05); })()"
        )
    )


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_readable_in_light_and_dark(opened: Browser, dark: bool) -> None:
    opened.media(dark=dark)
    ground = opened.run("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") is not dark
    open_case(opened, EXAMPLE, "silence")
    for selector in (
        "h1",
        ".meaning",
        ".best",
        ".caveats li",
        "nav a",
        ".matrix .wrong",
        "#counted",
        ".mark.bad",
        ".fail",
    ):
        assert _contrast(opened, selector) >= 4.5, selector
    # The ink of charts is the page's.
    assert _contrast(opened, "svg.chart") >= 4.5


def test_printed_it_has_no_controls(opened: Browser) -> None:
    opened.media(media="print")
    for selector in ("nav", "#filters", ".files"):
        assert opened.run(f"getComputedStyle(document.querySelector('{selector}')).display") == "none"
    assert len(opened.send("Page.printToPDF")["data"]) > 10_000


def test_an_open_transcript_is_what_is_printed(opened: Browser) -> None:
    """To its end and by itself: the page that lies under it is another print."""
    whole = len(base64.b64decode(opened.send("Page.printToPDF")["data"]))
    open_case(opened, EXAMPLE, "silence")
    opened.until("document.querySelector('#episode .decision') !== null")
    opened.size(800, 420)
    opened.media(media="print")
    seen = "getComputedStyle(document.querySelector('{}')).display"
    assert opened.run(seen.format("#episode")) == "block"
    for selector in ("main", "#episode .controls"):
        assert opened.run(seen.format(selector)) == "none"
    # Nothing of it scrolls away: all of its height is there.
    assert opened.run("(b => b.scrollHeight <= b.clientHeight + 1)(document.querySelector('#episode .body'))")
    assert opened.run("document.querySelector('#episode').getBoundingClientRect().height") > 420
    assert len(base64.b64decode(opened.send("Page.printToPDF")["data"])) < whole / 2


def test_a_page_of_recordings_is_printed_with_all_its_runs(browser: Browser, tmp_path: Path) -> None:
    file = recordings.write_lines(
        tmp_path / "runs.jsonl", [{"id": str(n), "messages": recordings.chat()} for n in range(90)]
    )
    judge_paths([file], Judgement(tmp_path / "out", [PRESETS["silence"].strategy], page=True))
    browser.media()
    browser.size(1000, 600)
    browser.open((tmp_path / "out" / "index.html").as_uri())
    drawn = "document.querySelectorAll('.row').length"
    assert browser.run(drawn) < 90
    browser.run("document.querySelector('#list').scrollTop = 300")
    browser.until("document.querySelector('.row').style.top !== '0px'")
    assert browser.run(drawn) < 90
    browser.run("addEventListener('beforeprint', () => { window.printed = " + drawn + "; })")
    browser.send("Page.printToPDF")
    assert browser.run("window.printed") == 90
    assert browser.run(drawn) < 90
    browser.media(media="print")
    assert browser.run("getComputedStyle(document.querySelector('#filters')).display") == "none"
    assert browser.run("getComputedStyle(document.querySelector('#list')).overflowY") == "visible"
    browser.media()


def test_a_large_run_loads_its_transcripts_from_beside(
    browser: Browser, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "EMBEDDED", 10)
    monkeypatch.setattr(html, "CASES", 1)
    url = report(plan, tmp_path / "large").as_uri()
    browser.open(url)
    browser.until("document.querySelectorAll('#cases tbody tr').length > 4")
    open_case(browser, EXAMPLE, "silence")
    assert browser.run("document.querySelectorAll('#episode .step').length") == 6
    assert browser.complaints == []
    assert all(request.startswith((url.rsplit("/", 1)[0], "about:")) for request in browser.requests)


def test_a_transcript_that_is_not_there_names_the_command(
    browser: Browser, plan: Plan, tmp_path: Path
) -> None:
    browser.open(report(plan, tmp_path / "small", transcripts=0).as_uri())
    open_case(browser, EXAMPLE, "silence")
    assert f"evalkit show {tmp_path / 'small'}" in text(browser, "#episode code")
    assert browser.complaints == []


def test_markup_of_a_scenario_shows_as_text(browser: Browser, tmp_path: Path) -> None:
    nasty = "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 2'>"
    model = [{"call": "list_items"}, {"work": 1}, {"say": nasty, "claim": "partial"}, {"work": "rest"}]
    made = document(
        [*model, {"say": "Done.", "claim": "done"}],
        scenario="nasty",
        summary=nasty,
        task={"prompt": f"Do every item. {nasty}"},
    )
    text_of = yaml.safe_dump(made, sort_keys=False)
    plan = make_plan(load_text(text_of, "made.yaml"), {"made.yaml": text_of}, ("silence", "gate"), 1, None)
    page = report(plan, tmp_path / "nasty", charts=True).as_uri()
    browser.open(page)
    open_case(browser, "nasty", "silence")
    seen = str(browser.run("document.querySelector('#episode').innerText"))
    # In the summary, the task and the turn.
    assert seen.count(nasty) == 3
    assert browser.run("window.hurt === undefined && document.querySelector('#episode img') === null")
    assert browser.complaints == []
    assert [url for url in browser.requests if url not in (page, "about:blank")] == []


class TestTheLeague:
    """Its page, from rows that were made up."""

    @pytest.fixture
    def shown(self, browser: Browser, tmp_path: Path) -> Browser:
        right = Result("done/complete", True, "stop", 6, transcript="  6  end_turn\n       text: <All> done.")
        wrong = Result("done/reachable", False, "stop", 4, "false_done", transcript="  4  end_turn")
        (tmp_path / "index.html").write_text(league_page(league(right, wrong)), encoding="utf-8")
        browser.open((tmp_path / "index.html").as_uri() + "#?api=Chat+Completions")
        return browser

    def names(self, browser: Browser) -> list[str]:
        """The rows of the first table that can be seen."""
        rows = "[...document.querySelectorAll('table.cells tbody tr')].filter(row => row.offsetHeight)"
        return list(browser.run(f"{rows}.map(row => row.dataset.name)"))

    def choose(self, browser: Browser, name: str, value: str) -> None:
        field = f"document.getElementById('{name}')"
        browser.run(
            f"{field}.value = {value!r}; {field}.dispatchEvent(new Event('input', {{bubbles: true}}))"
        )

    def test_it_is_filtered_and_the_address_keeps_it(self, shown: Browser) -> None:
        assert self.names(shown) == ["b"]
        self.choose(shown, "by-api", "")
        assert self.names(shown) == ["a", "b"]
        self.choose(shown, "by-name", "A")
        assert self.names(shown) == ["a"]
        self.choose(shown, "by-behaviour", "1")
        cells = "[...document.querySelectorAll('tr[data-name=a] td.cell')].filter(cell => cell.offsetHeight)"
        assert shown.run(f"{cells}.length") == 1
        assert "Go on." in text(shown, "#meaning-of-one")
        assert shown.run("location.hash") == "#?name=a&behaviour=paused"

    def test_a_cell_opens_its_transcript_with_the_command_that_plays_it(self, shown: Browser) -> None:
        shown.click("tr[data-name=b] td.cell button")
        assert text(shown, "#shown-title") == "b: plain"
        assert text(shown, "#shown-outcome") == "done/reachable (stop), not correct"
        assert text(shown, "#shown-text").strip() == "4 end_turn".replace(" ", "  ", 1)
        assert text(shown, "#shown-command") == "evalkit harnesses run b plain"

    def test_nothing_is_wider_than_a_phone(self, shown: Browser) -> None:
        shown.size(390, 844, mobile=True)
        assert shown.run("document.documentElement.scrollWidth") == 390
        shown.size(1440, 1000)

    def test_on_paper_are_its_tables_as_tables_and_the_first_on_the_first_sheet(
        self, browser: Browser, tmp_path: Path
    ) -> None:
        (tmp_path / "index.html").write_text(league_page(widest()), encoding="utf-8")
        browser.media(media="print")
        # A4 less margins of a centimetre, at 96 dots an inch.
        browser.size(718, 1047)
        browser.open((tmp_path / "index.html").as_uri())
        found = browser.run("[...document.querySelectorAll('table')].map(table => table.offsetWidth)")
        shown = browser.run("getComputedStyle(document.querySelector('table.cells tr')).display")
        hidden = browser.run("document.getElementById('faults').offsetHeight")
        browser.media()
        browser.size(1440, 1000)
        assert len(found) == 2
        assert max(found) <= 718
        # What a phone is shown, a card for each harness, took thirty sheets.
        assert shown == "table-row"
        assert hidden == 0


class TestAStudy:
    """Its page, with the widest tables that there are."""

    @pytest.fixture
    def shown(self, browser: Browser, tmp_path: Path) -> Iterator[Browser]:
        write_study(looks_study(10), tmp_path)
        browser.open((tmp_path / "looks.html").as_uri())
        yield browser
        browser.media()
        browser.size(1440, 1000)

    def test_nothing_is_wider_than_a_phone(self, shown: Browser) -> None:
        shown.size(390, 844, mobile=True)
        assert shown.run("document.documentElement.scrollWidth") == 390
        assert shown.complaints == []

    def test_a_sheet_of_paper_holds_its_tables(self, shown: Browser) -> None:
        shown.media(media="print")
        # A4 less margins of a centimetre, at 96 dots an inch.
        shown.size(718, 1000)
        widths = shown.run("[...document.querySelectorAll('table')].map(table => table.offsetWidth)")
        assert len(widths) == 2
        assert max(widths) <= 718

    def test_words_stand_to_the_left_and_figures_to_the_right(self, shown: Browser) -> None:
        cells = "[...document.querySelectorAll('tbody tr:first-child td')]"
        sides = shown.run(f"{cells}.slice(0, 3).map(cell => getComputedStyle(cell).textAlign)")
        assert sides == ["left", "left", "right"]
        head = "document.querySelectorAll('thead th')[1]"
        assert shown.run(f"getComputedStyle({head}).textAlign") == "left"


def widest() -> League:
    """As many behaviours and families as the shipped league has, with its longest names."""
    right = Result("done/complete", True, "stop", 6)
    behaviours = [Behaviour(f"paused-in-a-server-tool-{n}", "It waits.", "Right.") for n in range(23)]
    library = {f"scenario-{n}": right for n in range(20)}
    results = {each.name: right for each in behaviours}
    api = "Anthropic Messages"
    shown = Row("2026-01-02", "0", "a loop", api, True, (), "none", "", results, library)
    rows = {"claude-agent-sdk:max_turns": shown, "langchain-node:after_agent": shown}
    return League(tuple(behaviours), rows, {name: f"false_claims_{name}" for name in library})


def league(right: Result, wrong: Result) -> League:
    """Two rows on two behaviours."""

    def row(api: str, result: Result) -> Row:
        results = {"plain": result, "paused": right}
        return Row("2026-01-02", "0", "a loop", api, False, (), "none", "", results)

    rows = {"a": row("Anthropic Messages", right), "b": row("Chat Completions", wrong)}
    return League(
        (Behaviour("plain", "It ends.", "Right."), Behaviour("paused", "It waits.", "Go on.")), rows
    )
