"""Random small scenarios in the move language, for what must hold of any scenario that loads."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]

#: What a kind of world calls its tools and its items, and the options that make it whole.
KINDS: dict[str, dict[str, Any]] = {
    "items": {"list": "list_items", "does": "do_item", "undoes": "undo_item", "argument": "item"},
    "ledger": {
        "list": "list_payments",
        "does": "post_payment",
        "undoes": "refund_payment",
        "argument": "payment",
    },
    "inbox": {
        "list": "list_flagged_threads",
        "does": "label_thread",
        "undoes": "send_reply",
        "argument": "thread",
    },
}
ITEMS = ("users", "orders", "invoices")
FORBIDDEN = "payroll"
LABELS: tuple[str | None, ...] = (
    "end_turn",
    "tool_use",
    "pause_turn",
    "compaction",
    "max_tokens",
    "model_context_window_exceeded",
    "refusal",
    "stop_sequence",
    "in_progress",
    "failed",
    "cancelled",
    "unknown",
    "brand_new",
    None,
)
CLAIMS = st.sampled_from(["none", "partial", "blocked", "done"])
CHANNELS = st.sampled_from(["offered", "text", "finish", "keyword", "output"])
WORDS = st.sampled_from(
    ["On it.", "All done.", "Say {keyword} when ready.", "TERMINATE", "users", "users and orders", ""]
)
UNTIL = st.sampled_from(
    [
        *("any", "any", "any", "changed", "shortened", "named", "higher_limit", "other_model", "resent"),
        *("rejected", "never"),
    ]
)


def _some(items: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(items), max_size=3)


def _optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional=fields)


def _with(
    required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]
) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries(required, optional=optional)


REPLY = st.one_of(
    _optional(
        text=st.sampled_from(["ok", "failed: try again", "users: done"]),
        error=st.booleans(),
        effect=st.sampled_from(["none", "applied", "late"]),
    ),
    _with({"effect": st.just("late")}, lands=st.integers(1, 4) | st.just("never"), error=st.booleans()),
)


def _finish(items: tuple[str, ...]) -> st.SearchStrategy[Document]:
    return _optional(
        completed=st.just("all") | st.integers(0, 4) | _some(items),
        skipped=_some(items),
        reason=st.sampled_from(["", "not needed"]),
    )


def _parts(kind: str, items: tuple[str, ...]) -> dict[str, st.SearchStrategy[Document]]:
    """Moves that may stand in a ``turn`` of their own, by verb."""
    names = KINDS[kind]
    known = st.sampled_from(items)
    tools = st.sampled_from(
        [names["list"], names["does"], names["undoes"], "finish_task", "update_checklist"]
    )
    arguments = _optional(
        **{names["argument"]: known | st.just("nobody") | st.integers()},
        key=st.sampled_from(["k1", "k2"]),
        label=st.sampled_from(["done", "seen"]),
        text=st.just("Hello."),
        items_completed=_some(items),
        items_skipped=_some(items),
        reason_skipped=st.just("why not"),
        done=_some(items),
    )
    block = st.one_of(
        st.fixed_dictionaries({"text": WORDS}),
        st.fixed_dictionaries({"thinking": WORDS}),
        st.fixed_dictionaries({"work": known}),
        st.fixed_dictionaries({"server_call": st.just("web_search")}, optional={"result": WORDS}),
        st.fixed_dictionaries({"call": tools}, optional={"with": arguments}),
    )
    return {
        "call": _with({"call": tools}, **{"with": arguments, "reply": REPLY}),
        "work": _with(
            {"work": st.integers(0, 4) | st.sampled_from(["rest", "unseen"]) | _some(items)},
            parallel=st.booleans(),
            again=st.booleans(),
            ticks=st.booleans(),
            reply=REPLY,
        ),
        "undo": _with({"undo": st.integers(0, 2) | st.just("all") | _some(items)}),
        "tick": _with({"tick": st.integers(0, 2) | st.just("all") | _some(items)}),
        "say": _with(
            {"say": WORDS},
            claim=CLAIMS,
            channel=CHANNELS,
            phase=st.sampled_from(["commentary", "final_answer"]),
            finish=_finish(items),
        ),
        "think": _with({"think": WORDS}, claim=CLAIMS),
        "empty": _with({"empty": st.just(True)}, claim=CLAIMS),
        "finish": _with({"finish": _finish(items)}, channel=CHANNELS),
        "output": _with({"output": st.fixed_dictionaries({}, optional={"summary": WORDS})}, claim=CLAIMS),
        "pause": _with({"pause": _optional(text=WORDS)}),
        "truncate": _with(
            {"truncate": st.sampled_from(["text", "call"]) | st.fixed_dictionaries({"work": known})},
            limit=st.sampled_from(["max_tokens", "context_window"]),
            parses=st.booleans(),
            claim=CLAIMS,
        ),
        "refuse": _with(
            {
                "refuse": _optional(
                    category=st.sampled_from(["cyber", "bio", "reasoning_extraction"]), text=WORDS
                )
            }
        ),
        "raw": _with(
            {
                "raw": _optional(
                    content=st.lists(block, max_size=3),
                    stop=st.sampled_from(LABELS),
                    claim=CLAIMS,
                    extra=_optional(category=st.sampled_from(["cyber", "reasoning_extraction"])),
                )
            }
        ),
    }


def _labelled(move: st.SearchStrategy[Document]) -> st.SearchStrategy[Document]:
    """A move, now and then under another stop label."""
    label = st.sampled_from(LABELS)
    return st.builds(
        lambda move, rarely, label: {**move, "stop": label} if rarely == 0 else move,
        move,
        st.integers(0, 7),
        label,
    )


def _until(move: st.SearchStrategy[Document]) -> st.SearchStrategy[Document]:
    return st.builds(lambda move, until: {**move, "until": until}, move, UNTIL)


def _events(items: tuple[str, ...]) -> st.SearchStrategy[Document]:
    """What happens to a run from outside."""
    words = st.sampled_from(["Please go on.", "users", "Stop now.", "TERMINATE"])
    user = _with(
        {"text": words},
        when=st.sampled_from(["between_turns", "ended", "in_tool", "in_turn"]),
        closes=st.booleans(),
        asks=st.lists(st.sampled_from(ITEMS), max_size=2, unique=True),
    )
    compact = _optional(
        summary=st.sampled_from(["faithful", "empty", "users: done"]), times=st.integers(1, 2)
    )
    forgetful = _with({"forgets": st.lists(st.sampled_from(items), max_size=2, unique=True)})
    decisions = _optional(
        allow=st.just("all") | st.lists(st.sampled_from(items), max_size=2, unique=True),
        order=st.lists(st.sampled_from(items), max_size=2, unique=True),
        twice=st.booleans(),
    )
    refusal = _with({"refuse": st.lists(st.sampled_from(items), max_size=2, unique=True)}, message=words)
    change = st.builds(
        lambda old, new: {"change": {old: new}}, st.sampled_from(items), st.sampled_from(items)
    )
    return st.one_of(
        st.builds(lambda user: {"user": user}, user),
        st.builds(lambda spec: {"compact": spec}, st.just(True) | compact | forgetful),
        st.just({"crash": True}),
        st.builds(
            lambda approved: {"approve": approved},
            st.just("none") | _some(items) | decisions | refusal | change,
        ),
    )


@lru_cache(maxsize=16)
def moves(
    kind: str, items: tuple[str, ...] = ITEMS, *, events: bool = False
) -> st.SearchStrategy[list[Document]]:
    """Lists of moves for a kind of world."""
    parts = _parts(kind, items)
    child = _until(_labelled(st.one_of(*parts.values())))
    delegate = st.builds(
        lambda do: {"delegate": {"name": "helper", "do": do}}, st.lists(child, min_size=1, max_size=3)
    )
    part = _labelled(st.one_of(*parts.values(), delegate))
    turn = st.builds(lambda inner: {"turn": inner}, st.lists(part, min_size=1, max_size=3))
    fault = _with(
        {
            "fault": st.sampled_from(
                [
                    *({"status": 529}, {"status": 429}, {"status": 400}, {"status": 401}),
                    *({"status": 400, "window": "full"}, {"status": 413, "window": "full"}),
                    *({"cut": "mid_stream"}, {"cut": "in_call"}, {"cut": "after_call"}),
                    *({"body": "malformed"}, {"stall_s": 2.0}),
                ]
            )
        }
    )
    often = st.builds(lambda times: {"fault": {"status": 503, "times": times}}, st.integers(1, 8))
    wait = st.builds(
        lambda item, polls: {"wait": {"item": item, "polls": polls}},
        st.sampled_from(items),
        st.integers(1, 4) | st.just("forever"),
    )
    background = st.builds(lambda polls: {"background": {"polls": polls}}, st.integers(1, 4))
    simple = st.one_of(
        _until(_labelled(st.one_of(*parts.values(), delegate, turn))),
        _until(st.one_of(fault, often, wait, background)),
        *([_events(items)] if events else []),
    )

    def nested(inner: st.SearchStrategy[Document]) -> st.SearchStrategy[Document]:
        several = st.lists(inner, min_size=1, max_size=3)
        loop = st.builds(
            lambda times, do: {"repeat": {"times": times, "do": do}},
            st.integers(1, 4) | st.just("forever"),
            several,
        )
        option = st.builds(lambda p, do: {"p": p, "do": do}, st.sampled_from([0.0, 0.25, 0.5]), several)
        return loop | st.builds(lambda options: {"either": options}, st.lists(option, min_size=1, max_size=2))

    move = st.recursive(simple, nested, max_leaves=4)
    listing: list[Document] = [{"call": KINDS[kind]["list"]}]
    return st.builds(
        lambda lists, found: (listing if lists else []) + found,
        st.booleans(),
        st.lists(move, min_size=1, max_size=5),
    )


@st.composite
def documents(draw: st.DrawFn, *, events: bool = False) -> Document:
    """Scenario documents of the kinds of world that need no files; with ``events`` few may not load."""
    kind = draw(st.sampled_from(tuple(KINDS)))
    world: Document = {"kind": kind, "items": list(ITEMS)}
    items = ITEMS
    if draw(st.integers(0, 5)) == 0:
        world["forbidden"] = [FORBIDDEN]
        items = (*ITEMS, FORBIDDEN)
    if draw(st.integers(0, 3)) == 0:
        world["skippable"] = draw(st.lists(st.sampled_from(ITEMS), max_size=2, unique=True))
    if draw(st.integers(0, 5)) == 0:
        world["once"] = True
    if draw(st.integers(0, 7)) == 0:
        world["gated"] = [draw(st.sampled_from(ITEMS))]
    if draw(st.integers(0, 7)) == 0:
        world["weak_checks"] = draw(st.lists(st.sampled_from(ITEMS), max_size=2, unique=True))
    if kind == "inbox" and draw(st.booleans()):
        world["replies"] = draw(st.lists(st.sampled_from(ITEMS), max_size=2, unique=True))
    task: Document = {"prompt": "Do it all.", "done_when": "All of it is done."}
    task["checks"] = draw(st.sampled_from(["full", "weak", "none"]))
    task["items"] = draw(st.sampled_from(["listed", "given"]))
    document: Document = {
        "scenario": "any",
        "family": "tests",
        "task": task,
        "world": world,
        "model": draw(moves(kind, items, events=events)),
    }
    limits = draw(
        _optional(
            turns=st.integers(1, 12),
            tokens=st.integers(50, 5000),
            calls=st.integers(1, 8),
            per=st.sampled_from(["episode", "query"]),
        )
    )
    if limits and draw(st.integers(0, 2)) == 0:
        document["limits"] = limits
    if draw(st.integers(0, 7)) == 0:
        document["restarts"] = draw(st.booleans())
    return document
