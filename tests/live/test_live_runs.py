"""Live runs against a provider on loopback: kept at once, within their limit, paced, resumed."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from evalkit.cli import main
from evalkit.media.live import proxy_for
from tests.helpers import document
from tests.live.provider import Instead, Provider


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "dummy-key-for-tests")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name in ("a", "b"):
        text = yaml.safe_dump(document([{"say": "no script"}], scenario=name), sort_keys=False)
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def run(url: str, *words: str, model: str = "anthropic:claude-sonnet-x") -> Result:
    return call(
        *("run", "a.yaml", "b.yaml", "-s", "silence", "-s", "acceptance", "--seeds", "3", "--no-charts"),
        *("--model", model, "--base-url", url, "--out", "out", *words),
    )


def summary() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out/summary.json").read_text())
    return found


def rows(query: str) -> list[Any]:
    return sqlite3.connect("out/spending.sqlite").execute(query).fetchall()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-x", "openai-chat:local"])
def test_all_that_was_answered_is_counted_once(streamed: bool, model: str) -> None:
    with Provider(delay=0.02) as provider:
        more = ("--stream",) if streamed else ()
        result = run(provider.url, "--max-tokens", "1000000", "--concurrency", "4", *more, model=model)
    assert result.exit_code == 0, result.output
    spending = summary()["spending"]
    assert spending["requests"] == spending["answered"] == provider.asked == 12 * 4
    assert sum(spending["tokens"].values()) == sum(provider.tokens.values())
    assert spending["counted_by"] == {"provider": 48}
    assert spending["nothing"]["requests"] == 0
    assert 2 <= provider.most <= 4
    assert "Spent: " in result.output


def test_a_limit_is_one_over_any_number_of_resumes_and_what_is_finished_is_reported() -> None:
    with Provider() as provider:
        result = run(provider.url, "--max-tokens", "16000", "--concurrency", "2")
        assert result.exit_code == 1
        assert "stopped at --max-tokens 16,000" in result.output
        assert (
            "of 12 episodes are missing; go on with: evalkit run --resume out --max-tokens MORE"
            in result.output
        )
        there, asked = summary()["run"]["episodes"], provider.asked
        assert 0 < there < 12
        assert rows("select count(*) from attempt where outcome = 'kept'") == [(there,)]
        again = call("run", "--resume", "out", "--no-charts", "--concurrency", "1")
        assert again.exit_code == 1
        # What is left of the limit may be enough for an episode in flight less, never for more than it.
        assert sum(provider.tokens.values()) <= 16_000
        assert summary()["run"]["episodes"] >= there
        spent = summary()["spending"]
        assert spent["answered"] == provider.asked >= asked
        done = call("run", "--resume", "out", "--no-charts", "--max-tokens", "1000000")
        assert done.exit_code == 0, done.output
    spent = summary()["spending"]
    assert summary()["run"]["episodes"] == 12
    assert spent["answered"] == provider.asked
    assert spent["nothing"]["requests"] == provider.asked - 48
    assert {part["on"] for part in spent["on"]} == {"kept", "limit reached"}
    assert "| limit reached | episode |" in Path("out/report.md").read_text()


def test_a_limit_in_dollars_knows_cached_and_thinking_tokens_and_the_fallback() -> None:
    usage = {"input_tokens": 1000, "cache_read_input_tokens": 100_000, "output_tokens": 100}

    def cached(number: int, body: dict[str, Any]) -> Instead:
        made = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "Done."}],
            "stop_sequence": None,
            "usage": usage,
        }
        return 200, {"content-type": "application/json"}, json.dumps(made).encode()

    with Provider(instead=cached) as provider:
        result = call(
            *("run", "a.yaml", "-s", "silence", "--no-charts", "--model", "anthropic:claude-sonnet-x"),
            *("--base-url", provider.url, "--out", "out", "--max-usd", "5"),
        )
        assert result.exit_code == 0, result.output
    assert summary()["spending"]["usd"] == pytest.approx((1000 * 3 + 100_000 * 0.3 + 100 * 15) / 1e6)
    assert summary()["spending"]["tokens"]["cache_read"] == 100_000


def test_a_proxy_of_the_environment_is_gone_through(monkeypatch: pytest.MonkeyPatch) -> None:
    with Provider() as provider:
        monkeypatch.setenv("HTTP_PROXY", provider.url)
        monkeypatch.setenv("http_proxy", provider.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert proxy_for("http://model.invalid:1") == provider.url
        result = run("http://model.invalid:1", "--max-tokens", "1000000")
        assert result.exit_code == 0, result.output
        assert summary()["spending"]["answered"] == provider.asked > 0
        assert proxy_for("http://127.0.0.1:1") is None
        monkeypatch.setenv("NO_PROXY", "model.invalid")
        monkeypatch.setenv("no_proxy", "model.invalid")
        assert proxy_for("http://model.invalid:1") is None


def test_an_unknown_model_names_the_price_file(tmp_path: Path) -> None:
    result = run("http://127.0.0.1:9", "--max-usd", "5", model="openai-chat:my-own")
    assert result.exit_code == 2
    assert "no price for 'my-own' in " in result.output
    assert "prices.toml" in result.output
    assert len([line for line in result.output.splitlines() if not line.startswith("hint: ")]) == 1
    (tmp_path / "mine.toml").write_text(
        'as_of = "2026-12-01"\n[prices]\n"my-" = {input = 1.0, output = 2.0}\n'
    )
    with Provider() as provider:
        result = run(provider.url, "--max-usd", "5", "--prices", "mine.toml", model="openai-chat:my-own")
    assert result.exit_code == 0, result.output
    assert summary()["spending"]["usd"] > 0


def test_refusals_for_want_of_capacity_are_waited_out_and_are_no_faults() -> None:
    refused = {2: 429, 5: 529}

    def busy(number: int, body: dict[str, Any]) -> Instead | None:
        if number not in refused:
            return None
        error = {"type": "error", "error": {"type": "rate_limit_error", "message": "busy"}}
        return refused[number], {"retry-after-ms": "20"}, json.dumps(error).encode()

    with Provider(instead=busy) as provider:
        result = run(provider.url, "--max-tokens", "1000000", "--concurrency", "1")
    assert result.exit_code == 0, result.output
    spending = summary()["spending"]
    assert {status: found["times"] for status, found in spending["waited"].items()} == {"429": 1, "529": 1}
    assert spending["answered"] == provider.asked - 2 == 48
    assert [row["outcomes"] for row in summary()["rows"] if row["family"] == "all"] == [
        {"done/complete": 6}
    ] * 4
    assert "1 refusals with status 429 were waited out" in result.output


def test_a_quota_that_is_used_up_is_not_waited_for() -> None:
    def out(number: int, body: dict[str, Any]) -> Instead:
        error = {"error": {"type": "insufficient_quota", "message": "You exceeded your current quota"}}
        return 429, {"retry-after": "3600"}, json.dumps(error).encode()

    with Provider(instead=out) as provider:
        result = run(provider.url, "--max-tokens", "1000000")
    assert result.exit_code == 0
    assert summary()["spending"]["waited"] == {}
    assert summary()["spending"]["answered"] == 0
    assert sum(summary()["spending"]["tokens"].values()) == 0


def test_an_answer_without_its_usage_is_counted_by_evalkits_counter_and_that_is_said() -> None:
    with Provider(usage=False) as provider:
        result = run(provider.url, "--max-tokens", "1000000", model="openai-chat:local")
    assert result.exit_code == 0, result.output
    spending = summary()["spending"]
    assert spending["counted_by"] == {"counter": 48}
    assert spending["tokens"]["input"] == pytest.approx(sum(provider.tokens.values()) - 48 * 20, rel=0.1)
    assert "48 answers came without their usage" in result.output


def test_another_process_cannot_spend_from_the_same_run() -> None:
    from evalkit.models.ledger import Ledger, LedgerError

    with Provider() as provider:
        run(provider.url, "--max-tokens", "20000")
        held = Ledger(Path("out"))
        try:
            with pytest.raises(LedgerError, match="another evalkit spends"):
                Ledger(Path("out"))
            result = call("run", "--resume", "out", "--no-charts")
            assert result.exit_code == 2
            assert "another evalkit spends from this run" in result.output
        finally:
            held.close()


@pytest.mark.long
def test_what_is_played_from_a_tape_costs_nothing() -> None:
    with Provider() as provider:
        first = run(provider.url, "--max-tokens", "1000000", "--record", "tapes")
        assert first.exit_code == 0, first.output
        # Of each scenario and seed the second strategy finds on the tape what the first one asked.
        assert provider.asked == 6 * 4
        assert summary()["spending"]["requests"] == 24
        asked = provider.asked
        again = call(
            *("run", "a.yaml", "-s", "silence", "--seeds", "3", "--no-charts", "--record", "tapes"),
            *("--model", "anthropic:claude-sonnet-x", "--base-url", provider.url, "--max-tokens", "10"),
            *("--out", "again"),
        )
        assert again.exit_code == 0, again.output
        assert provider.asked == asked
    replayed = call("run", "--replay", "tapes", "--no-charts", "--out", "replayed")
    assert replayed.exit_code == 0, replayed.output
    assert json.loads(Path("replayed/summary.json").read_text())["run"]["episodes"] == 12
    assert call("cassettes", "check", "tapes").exit_code == 0


def test_resume_refuses_what_it_cannot_change() -> None:
    with Provider() as provider:
        run(provider.url, "--max-tokens", "20000")
        result = call("run", "--resume", "out", "--seeds", "5")
        assert result.exit_code == 2
        assert "--resume takes a run as it was planned: no --seeds" in result.output
        result = call("run", "--resume", "out", "--base-url", "http://127.0.0.1:1")
        assert result.exit_code == 2
        assert "the run was made with http://127.0.0.1" in result.output
