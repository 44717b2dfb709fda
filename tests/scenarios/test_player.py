"""The scripted model: what moves it on, what it says by which channel, seeded choices."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from evalkit.core.requests import Delivered, Request, Result, stimulus
from evalkit.core.tasks import FINISH_TOOL, Offered
from evalkit.core.turns import Call, Turn
from evalkit.scenarios.player import Player, spare
from evalkit.scenarios.program import choice
from evalkit.worlds import make_world
from tests.helpers import play, scenario

ALL = Offered(finish=True, checklist=True, keyword="TERMINATE", output=True)


class Model:
    """Plays a script by hand: ``send`` answers the last turn."""

    def __init__(self, model: Any, offered: Offered = Offered(), **fields: Any) -> None:  # noqa: B008
        loaded = scenario(model, **fields)
        self.player = Player(loaded, make_world(loaded.world), offered, loaded.task.output)
        self.state = self.player.start
        self.delivered = Delivered()

    def first(self, seed: int = 0) -> Turn:
        self.state, emitted = self.player.advance(self.state, None, seed)
        self.delivered = Delivered(emitted.turn)
        return emitted.turn

    def send(self, **fields: Any) -> Turn:
        turn = self.delivered.turn
        assert turn is not None
        results = tuple(Result(call.id, "ok") for call in turn.calls)
        request = Request(**{"echo": turn, "results": results, **fields})
        moved = stimulus(self.delivered, request, FINISH_TOOL)
        self.state, emitted = self.player.advance(self.state, moved, 0)
        self.delivered = Delivered(emitted.turn, request.limit, request.model)
        return emitted.turn


def calls(turn: Turn) -> list[str]:
    return [f"{call.tool} {call.arguments}" for call in turn.calls]


def test_work_does_the_items_that_were_not_attempted() -> None:
    model = Model([{"work": 1}, {"work": ["invoices"]}, {"work": "rest"}, {"say": "x"}])
    assert calls(model.first()) == ['do_item {"item":"users"}']
    assert calls(model.send()) == ['do_item {"item":"invoices"}']
    assert calls(model.send()) == ['do_item {"item":"orders"}']
    assert model.send().text == "x"
    assert model.send().text == "x"


def test_an_answer_that_breaks_off_had_begun_with_the_first_call_of_an_item() -> None:
    world = {"kind": "inbox", "replies": ["users"]}
    model = Model([{"fault": {"cut": "after_call"}}, {"work": "rest"}], world=world)
    model.state, emitted = model.player.advance(model.state, None, 0)
    assert emitted.begun is not None
    assert [call.tool for call in emitted.begun.calls] == ["send_reply"]


@pytest.mark.parametrize(
    ("met", "left", "step"),
    [(1, (), 1), (2, (), 2), (5, ((4, 3),), 2)],
)
def test_what_was_met_is_passed_over_and_no_more(met: int, left: Any, step: int) -> None:
    assert spare(((4, met), (7, 1)), 4, 2) == ((((7, 1)), *left), step)


@pytest.mark.parametrize(
    "move", [{"fault": {"status": 401}}, {"user": {"text": "x"}}], ids=["fault", "event"]
)
def test_what_happens_once_is_met_by_who_has_met_something_else(move: Any) -> None:
    model = Model([move, {"say": "x"}])
    elsewhere = msgspec.structs.replace(model.player.start, spared=((7, 1),))
    _, emitted = model.player.advance(elsewhere, None, 0)
    assert (emitted.turn.native, emitted.event) == (
        ("http_401", "") if "fault" in move else ("event", "user")
    )


def test_the_place_of_a_turn_is_its_move_and_how_many_of_its_turns_have_come() -> None:
    model = Model([{"say": "x"}, {"work": 2}, {"wait": {"item": "users", "polls": "forever"}}])
    places = []
    model.first()
    for _ in range(5):
        places.append(model.player.place(model.state))
        model.send(text="Go on.")
    assert places == [(0, 1), (1, 1), (1, 2), (2, 0), (2, 0)]


def test_a_repeat_of_what_is_seen_to_be_done_comes_to_an_end() -> None:
    rare = {"either": [{"p": 0.25, "do": [{"work": "unseen"}]}]}
    model = Model([{"call": "list_items"}, {"repeat": {"times": "forever", "do": [rare]}}, {"say": "x"}])
    model.first()
    done = model.player.script.world.all
    _, emitted = model.player.advance(model.state, None, 0, done)
    assert emitted.turn.text == "x"


def test_each_move_has_one_sample_as_if_nothing_were_attempted() -> None:
    model = Model([{"call": "list_items"}, {"work": "rest"}, {"user": {"text": "x"}}, {"say": "x"}])
    assert [len(each.turn.calls) for each in model.player.samples()] == [1, 1, 0]


def test_what_turns_round_and_chooses_has_no_sample_of_its_own() -> None:
    round_and_round = {"repeat": {"times": 2, "do": [{"work": 1}]}}
    model = Model([{"call": "list_items"}, round_and_round, {"say": "Done.", "claim": "done"}])
    assert [len(calls(sample.turn)) for sample in model.player.samples()] == [1, 1, 0]


def test_a_move_without_targets_has_no_turn() -> None:
    model = Model(
        [{"work": "rest", "parallel": True}, {"work": 2}, {"undo": 0}, {"tick": "all"}, {"say": "x"}]
    )
    assert len(calls(model.first())) == 3
    assert model.send().text == "x"


def test_what_follows_a_fault_that_was_met_before_begins_at_its_first_step() -> None:
    # Who goes back to an earlier turn meets the faults behind it once.
    faulty: list[dict[str, Any]] = [{"fault": {"status": 529}}, {"work": 2}, {"say": "x"}]
    model = Model(faulty)
    assert model.first().kind == "failed"
    model = Model(faulty)
    model.state = msgspec.structs.replace(model.state, spared=((0, 1),))
    assert calls(model.first()) == ['do_item {"item":"users"}']
    assert calls(model.send()) == ['do_item {"item":"orders"}']
    assert model.send().text == "x"


def test_nor_has_a_turn_of_parts_that_have_none() -> None:
    nothing = [{"turn": [{"work": "rest"}]}, {"turn": [{"tick": 0}]}, {"turn": [{"undo": 0}]}, {"say": "x"}]
    model = Model([{"work": "rest", "parallel": True}, *nothing], ALL)
    assert len(calls(model.first())) == 4
    assert model.send().text == "x"


def test_a_part_that_ticks_nothing_adds_no_call() -> None:
    turn = Model([{"turn": [{"tick": 0}, {"say": "x"}]}], ALL).first()
    assert (calls(turn), turn.text) == ([], "x")


def test_again_repeats_what_was_attempted() -> None:
    model = Model([{"work": 2}, {"work": "rest", "again": True, "parallel": True}, {"say": "x"}])
    model.first()
    model.send()
    assert calls(model.send()) == ['do_item {"item":"users"}', 'do_item {"item":"orders"}']


def test_a_call_that_is_cut_off_is_for_the_first_item_that_is_open() -> None:
    model = Model([{"work": 1}, {"truncate": "call"}, {"say": "x"}])
    model.first()
    (call,) = model.send().calls
    assert call.arguments.startswith('{"item":"or')


def test_a_request_gets_past_a_script_that_is_over_and_not_past_a_move_that_waits() -> None:
    model = Model([{"work": 1}, {"say": "x", "until": "shortened"}])
    turn = model.first()
    asked = stimulus(Delivered(turn), Request(echo=turn), FINISH_TOOL)
    assert model.player.is_over(model.state, asked)
    model.send()
    assert not model.player.is_over(model.state, asked)
    over = msgspec.structs.replace(model.state, pc=99)
    assert model.player.is_over(over, asked)
    within = msgspec.structs.replace(model.state, waits=False)
    assert model.player.is_over(within, asked)


def test_what_happens_from_outside_is_told_from_a_turn() -> None:
    model = Model([{"fault": {"status": 529}}, {"say": "x"}])
    assert model.player.happens_at(model.state)
    assert not model.player.happens_at(msgspec.structs.replace(model.state, pc=1))
    assert not model.player.happens_at(msgspec.structs.replace(model.state, pc=99))


def test_a_call_in_a_cut_off_turn_is_no_attempt() -> None:
    model = Model([{"turn": [{"work": 1}, {"truncate": "text"}]}, {"work": 1}, {"say": "x"}])
    cut = model.first()
    assert cut.stop == "max_tokens"
    assert calls(cut) == calls(model.send())


@pytest.mark.parametrize(
    ("until", "holds", "passes"),
    [
        ("named", {"text": "Continue."}, {"text": "Open: orders."}),
        ("named", {"text": "Open: orders-2, a/orders."}, {"text": "Open: 'orders'!"}),
        ("changed", {}, {"text": "Continue."}),
        ("changed", {}, {"limit": 9999}),
        ("higher_limit", {"limit": 100}, {"limit": 9999}),
        ("other_model", {"text": "x"}, {"model": "fallback"}),
        ("rejected", {"text": "Continue."}, {"text": "Still open: users."}),
    ],
)
def test_until_says_what_it_takes(until: str, holds: dict[str, Any], passes: dict[str, Any]) -> None:
    model = Model([{"say": "first", "until": until}, {"say": "second"}])
    model.first()
    assert model.send(**holds).text == "first"
    assert model.send(**passes).text == "second"


def test_named_takes_any_item_once_all_were_attempted() -> None:
    model = Model([{"work": "rest", "parallel": True}, {"say": "a", "until": "named"}, {"say": "b"}])
    model.first()
    assert model.send().text == "a"
    assert model.send(text="Open: users.").text == "b"
    partly = Model([{"work": 1}, {"say": "a", "until": "named"}, {"say": "b"}])
    partly.first()
    partly.send()
    assert partly.send(text="Open: users.").text == "a"


def test_a_paused_turn_moves_on_only_when_sent_back_unchanged() -> None:
    model = Model([{"pause": {}, "until": "resent"}, {"say": "x"}])
    assert model.first().stop == "pause_turn"
    assert model.send(text="Continue.").stop == "pause_turn"
    assert model.send().text == "x"


def test_a_rejected_finish_names_items_by_its_answer() -> None:
    model = Model([{"finish": {"completed": 1}, "until": "rejected"}, {"say": "x"}], Offered(finish=True))
    turn = model.first()
    assert turn.claim == "partial"
    assert model.send(results=(Result(turn.calls[0].id, "orders missing", True),)).text == "x"


class TestChannels:
    def test_done_takes_the_first_channel_that_is_offered(self) -> None:
        done = [{"say": "Ready.", "claim": "done"}]
        finish = Model(done, ALL).first()
        assert finish.calls[0].tool == FINISH_TOOL
        assert '"items_completed":["users","orders","invoices"]' in finish.calls[0].arguments
        assert finish.text == "Ready."
        keyword = Model(done, Offered(keyword="TERMINATE", output=True)).first()
        assert keyword.text == "Ready.\nTERMINATE"
        output = Model(done, Offered(output=True)).first()
        assert output.text == '{"summary":"Ready.","completed":["users","orders","invoices"],"skipped":[]}'
        assert Model(done).first().text == "Ready."

    def test_other_claims_are_text(self) -> None:
        assert Model([{"say": "Half.", "claim": "partial"}], ALL).first().text == "Half."

    def test_a_report_may_misuse_a_channel(self) -> None:
        model = [{"work": 1}, {"say": "Half.", "claim": "partial", "channel": "finish"}]
        misuse = Model(model, ALL)
        misuse.first()
        turn = misuse.send()
        assert turn.claim == "partial"
        assert '"items_completed":["users"]' in turn.calls[0].arguments
        plain = Model(model)
        plain.first()
        assert plain.send().calls == ()

    def test_the_agreed_keyword_within_words(self) -> None:
        model = [{"say": "I will say {keyword} later.", "claim": "partial"}]
        assert Model(model, Offered(keyword="STOP")).first().text == "I will say STOP later."

    def test_a_skip_counts_in_whatever_channel_it_is_told(self) -> None:
        moves = [{"work": 2}, {"finish": {"completed": 2, "skipped": ["invoices"], "reason": "no rule"}}]
        told = scenario([{"call": "list_items"}, *moves], world={"skippable": ["invoices"]})
        for strategy in ("silence", "validated_finish", "acceptance", "gate", "typed_output", "keyword"):
            assert play(told, strategy).truth == "complete", strategy

    def test_typed_output_of_the_tasks_own_schema(self) -> None:
        schema = {
            "type": "object",
            "properties": {
                "state": {"enum": ["closed"]},
                "count": {"type": "integer"},
                "names": {"type": "array"},
            },
            "required": ["state", "count", "names"],
        }
        model = Model([{"say": "Ready.", "claim": "done"}], Offered(output=True), task={"output": schema})
        assert model.first().text == '{"state":"closed","count":3,"names":["users","orders","invoices"]}'

    def test_of_an_enumeration_the_first(self) -> None:
        state = {
            "type": "object",
            "properties": {"state": {"enum": ["closed", "open"]}},
            "required": ["state"],
        }
        turn = Model([{"say": "x", "claim": "done"}], Offered(output=True), task={"output": state}).first()
        assert turn.text == '{"state":"closed"}'

    def test_a_finish_call_that_is_written_out_tells_as_one_that_is_made(self) -> None:
        finish = {"call": "finish_task", "with": {"items_completed": ["users"]}}
        told = Model([finish, {"say": "x"}], ALL).first().told
        assert told is not None
        assert told.completed == ("users",)
        assert Model([finish, {"say": "x"}]).first().told is None


class TestChoices:
    def test_the_formula(self) -> None:
        text = b"name\n7\n2.1.0\n0"
        wanted = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64
        assert choice("name", 7, "2.1.0", 0) == wanted

    def test_options_take_their_intervals(self) -> None:
        loaded = scenario(
            [{"either": [{"p": 0.25, "do": [{"say": "a"}]}, {"p": 0.5, "do": [{"say": "b"}]}]}, {"say": "c"}]
        )
        for seed in range(40):
            number = choice("a-scenario", seed, "0", 0)
            wanted = "a" if number < 0.25 else "b" if number < 0.75 else "c"
            player = Player(loaded, make_world(loaded.world), Offered(), None)
            _, emitted = player.advance(player.start, None, seed)
            assert emitted.turn.text == wanted

    def test_twins_choose_alike(self) -> None:
        assert scenario([{"say": "x"}], scenario="zebra", twin="ant").stream == "ant"

    def test_visits_count(self) -> None:
        moves = [
            {"repeat": {"times": 30, "do": [{"either": [{"p": 0.5, "do": [{"say": "a"}]}]}]}},
            {"say": "b"},
        ]
        model = Model(moves)
        said = [model.first().text] + [model.send().text for _ in range(40)]
        wanted = sum(choice("a-scenario", 0, "0.0", visit) < 0.5 for visit in range(30))
        assert said.count("a") == wanted


def test_loops() -> None:
    model = Model([{"repeat": {"times": 2, "do": [{"work": 1}, {"say": "r"}]}}, {"say": "end"}])
    texts = [model.first().text or "call"] + [model.send().text or "call" for _ in range(5)]
    assert texts == ["call", "r", "call", "r", "end", "end"]
    forever = Model([{"repeat": {"times": "forever", "do": [{"say": "a"}, {"say": "b"}]}}])
    assert [forever.first().text] + [forever.send().text for _ in range(4)] == ["a", "b", "a", "b", "a"]
    empty = Model([{"repeat": {"times": "forever", "do": [{"tick": "all"}]}}])
    assert empty.first().text == "Nothing further."


def test_a_place_says_the_round_of_each_repeat_around_it_and_nothing_of_choices() -> None:
    option = {"either": [{"p": 1.0, "do": [{"say": "a"}]}]}
    model = Model([{"repeat": {"times": 3, "do": [{"say": "b"}]}}, option, {"say": "x"}])
    player = model.player
    assert len(player.place(model.state)) == 2
    places = []
    for _ in range(5):
        model.send() if places else model.first()
        places.append(player.place(model.state))
    assert places == sorted(set(places))
    assert [len(place) for place in places] == [4, 4, 4, 2, 2]
    endless = Model([{"repeat": {"times": "forever", "do": [{"say": "b"}]}}])
    endless.first()
    assert endless.player.place(endless.state) == ()


def test_after_another_last_move_nothing_further() -> None:
    model = Model([{"work": 1}])
    model.first()
    assert model.send().text == "Nothing further."
    assert model.send().claim == "none"


def test_a_stop_label_contradicts_the_content() -> None:
    for label, stop, native in (
        ("tool_use", "tool_use", "tool_use"),
        (None, "unknown", "null"),
        ("brand_new", "unknown", "brand_new"),
        ("model_context_window_exceeded", "context_window", "model_context_window_exceeded"),
    ):
        turn = Model([{"say": "x", "stop": label}]).first()
        assert (turn.stop, turn.native) == (stop, native)


def test_a_fault_may_keep_silent_before_it_comes() -> None:
    for fault, seconds in (({"stall_s": 3}, 3.0), ({"status": 529}, 0.0)):
        model = Model([{"fault": fault}, {"say": "x"}])
        _, emitted = model.player.advance(model.state, None, 0)
        assert emitted.stall_s == seconds


def test_a_refusal_within_a_turn_keeps_its_category() -> None:
    turn = Model([{"turn": [{"work": 1}, {"refuse": {"category": "cyber"}}]}, {"say": "x"}]).first()
    assert (turn.kind, turn.category) == ("refusal", "cyber")


def test_faults_polls_and_waits() -> None:
    model = Model(
        [
            {"fault": {"status": 529, "times": 2}},
            {"background": {"polls": 2}},
            {"wait": {"item": "users", "polls": 2}},
            {"say": "x"},
        ]
    )
    kinds = [model.first().kind] + [model.send(echo=None, results=(), again=True).kind for _ in range(4)]
    assert kinds == ["failed", "failed", "in_progress", "in_progress", "content"]
    waited = scenario(
        [
            {"call": "list_items"},
            {"work": ["orders", "invoices"]},
            {"wait": {"item": "users", "polls": 3}},
            {"say": "x", "claim": "done"},
        ]
    )
    assert play(waited, "silence").outcome == "done/complete"


def test_a_raw_turn() -> None:
    raw = {
        "content": [{"text": "a"}, {"thinking": "b"}, {"call": "read_item", "with": {"item": "users"}},
                    {"work": "orders"}, {"server_call": "search", "result": "r"}],
        "stop": "end_turn",
        "claim": "done",
    }  # fmt: skip
    turn = Model([{"raw": raw}]).first()
    assert turn.stop == "end_turn"
    assert turn.kind == "content"
    assert [type(block).__name__ for block in turn.content] == [
        "Text",
        "Thinking",
        "Call",
        "Call",
        "ServerCall",
    ]
    assert len({block.id for block in turn.content if isinstance(block, Call)}) == 2


def test_a_childs_claim_ends_only_the_child() -> None:
    child = {"delegate": {"name": "helper", "do": [{"work": 2}, {"say": "All done!", "claim": "done"}]}}
    loaded = scenario([{"call": "list_items"}, child, {"work": "rest"}, {"say": "x", "claim": "done"}])
    episode = play(loaded, "silence")
    assert (episode.outcome, episode.turns) == ("done/complete", 4)
    assert episode.duplicate_effects == 0


def test_a_ledgers_keys_are_fresh_each_time() -> None:
    loaded = scenario(
        [
            {"call": "list_payments"},
            {"work": "rest"},
            {"work": 1, "again": True},
            {"say": "x", "claim": "done"},
        ],
        world={"kind": "ledger"},
    )
    episode = play(loaded, "silence")
    assert episode.outcome in ("done/stuck", "done/spoiled")
    assert episode.duplicate_effects == 0


def test_a_turn_of_parts_has_the_label_of_the_part_that_has_one() -> None:
    turn = Model([{"turn": [{"say": "Next."}, {"work": ["users"], "stop": "mystery"}]}]).first()
    assert (turn.stop, turn.native) == ("unknown", "mystery")


def test_a_repeat_for_ever_ends_where_only_events_are_left_of_it() -> None:
    """They answer nothing, so all of them would come within one request."""
    writes = {
        "repeat": {
            "times": "forever",
            "do": [{"user": {"text": "Please go on."}}, {"work": 1, "until": "any"}],
        }
    }
    episode = play(
        scenario([{"call": "list_items"}, writes, {"say": "Done.", "claim": "done"}]), "acceptance"
    )
    assert (episode.outcome, episode.final_stop) == ("done/complete", "end_turn")
