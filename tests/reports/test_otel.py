"""Spans and metrics as an OpenTelemetry reader receives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from evalkit.reports.otel import Telemetry, send_run
from tests.made_runs import FALSE_DONE, entry, made_run, recipe, row


class Heard:
    """A telemetry, and what it has said."""

    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        traces = TracerProvider()
        traces.add_span_processor(SimpleSpanProcessor(self.spans))
        self.telemetry = Telemetry(traces.get_tracer("test"), MeterProvider([self.reader]).get_meter("test"))

    def metrics(self) -> dict[str, dict[tuple[tuple[str, Any], ...], Any]]:
        data = self.reader.get_metrics_data()
        found: dict[str, dict[tuple[tuple[str, Any], ...], Any]] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        labels = tuple(sorted((point.attributes or {}).items()))
                        value = getattr(point, "value", None)
                        found.setdefault(metric.name, {})[labels] = point.sum if value is None else value
        return found


@pytest.fixture
def heard() -> Heard:
    return Heard()


AGENT = ("gen_ai.agent.name", "migrator")
FAMILY = ("evalkit.family", "migration")


def test_a_run_in_production(heard: Heard) -> None:
    with heard.telemetry.run("migrator", family="migration", provider="anthropic", model="m") as run:
        run.turn("tool_use", input_tokens=100, output_tokens=20)
        run.turn("end_turn", input_tokens=150, output_tokens=10, text_only=True, open_items=2)
        run.turn("max_tokens", input_tokens=170, output_tokens=30)
        run.ended("limit", native="error_max_turns")
    *turns, agent = heard.spans.get_finished_spans()
    assert [span.name for span in turns] == ["chat m"] * 3
    assert agent.name == "invoke_agent migrator"
    assert all(span.parent and span.parent.span_id == agent.context.span_id for span in turns)
    said = dict(agent.attributes or {})
    assert said["gen_ai.operation.name"] == "invoke_agent"
    assert said["gen_ai.provider.name"] == "anthropic"
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == (420, 60)
    assert (said["evalkit.ending"], said["evalkit.truncated_final"]) == ("limit", True)
    assert dict(turns[1].attributes or {})["gen_ai.response.finish_reasons"] == ("end_turn",)
    metrics = heard.metrics()
    assert metrics["evalkit.runs"] == {(("evalkit.ending", "limit"), FAMILY, AGENT): 1}
    assert metrics["evalkit.text_only_stops"] == {(FAMILY, AGENT): 1}
    assert metrics["evalkit.truncated_finals"] == {(FAMILY, AGENT): 1}
    assert sum(metrics["evalkit.turns"].values()) == 3
    assert sum(metrics["gen_ai.client.token.usage"].values()) == 480


def test_a_finished_text_only_turn_is_no_early_sign(heard: Heard) -> None:
    with heard.telemetry.run("a") as run:
        run.turn("end_turn", text_only=True, open_items=0)
        run.ended("done")
    assert "evalkit.text_only_stops" not in heard.metrics()
    assert "evalkit.truncated_finals" not in heard.metrics()


def test_an_exception_and_a_forgotten_ending_are_errors(heard: Heard) -> None:
    with pytest.raises(ValueError, match="broke"), heard.telemetry.run("a"):
        raise ValueError("broke")
    with heard.telemetry.run("b") as run:
        run.turn("end_turn")
    first, second = [s for s in heard.spans.get_finished_spans() if s.name.startswith("invoke_agent")]
    assert dict(first.attributes or {})["error.type"] == "ValueError"
    assert dict(second.attributes or {})["error.type"] == "no ending reported"


def test_a_run_folder(heard: Heard, tmp_path: Path) -> None:
    never = {
        "ending": "never",
        "native": "evalkit's cap",
        "truth": "stuck",
        "correct": 0,
        "final_stop": "max_tokens",
    }
    store = made_run(
        tmp_path,
        recipe([entry("x", "one"), entry("y", "two")], ["s"]),
        [row(0, 0, 0), row(1, 0, 0, 1, **FALSE_DONE), row(2, 1, 0, **never)],
    )
    assert send_run(store, heard.telemetry) == 3
    right, wrong, cut = heard.spans.get_finished_spans()
    (event,) = wrong.events
    assert event.name == "gen_ai.evaluation.result"
    assert dict(event.attributes or {}) == {
        "gen_ai.evaluation.name": "correct",
        "gen_ai.evaluation.score.value": 0.0,
        "gen_ai.evaluation.score.label": "done/reachable",
    }
    assert "error.type" not in (right.attributes or {})
    assert dict(cut.attributes or {})["error.type"] == "evalkit's cap"
    metrics = heard.metrics()
    one = (("evalkit.family", "one"), ("gen_ai.agent.name", "s"))
    two = (("evalkit.family", "two"), ("gen_ai.agent.name", "s"))
    assert metrics["evalkit.runs"] == {
        (("evalkit.ending", "done"), *one): 2,
        (("evalkit.ending", "never"), *two): 1,
    }
    assert metrics["evalkit.text_only_stops"] == {one: 1, two: 0}
    assert metrics["evalkit.truncated_finals"] == {one: 0, two: 1}
