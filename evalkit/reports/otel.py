"""Stop reasons as OpenTelemetry spans and metrics, by the GenAI semantic conventions.

For a harness in production::

    from evalkit.reports.otel import Telemetry

    telemetry = Telemetry()  # the process's own tracer and meter providers
    with telemetry.run("migrator", family="migration", provider="anthropic", model="claude-x") as run:
        run.turn("end_turn", input_tokens=900, output_tokens=80, text_only=True, open_items=2)
        run.turn("end_turn", input_tokens=990, output_tokens=40, text_only=True, open_items=0)
        run.ended("done")

A run is a span ``invoke_agent``, a turn a span ``chat`` in it (GenAI agent and client spans, v1.41). The
figures to watch are counters: ``evalkit.runs`` by ending, ``evalkit.turns`` by stop reason,
``evalkit.text_only_stops`` (an end of turn without calls while items were open) and
``evalkit.truncated_finals`` (the last turn was cut off), each by agent and family.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evalkit.extras import missing
from evalkit.runs.store import Store
from evalkit.secrets.cleaning import clean_value
from evalkit.stats.scenario_results import contender_names
from evalkit.stats.telemetry import TRUNCATED

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Span, Tracer

NAME = "evalkit"
#: Episodes of a run folder that get a span; the metrics count all.
SPANS = 10_000


class OtelMissing(RuntimeError):
    """OpenTelemetry is not installed, or cannot be set up; the message says what to do."""


class Telemetry:
    """Spans and metrics of agent runs, over the given tracer and meter or the process's own."""

    def __init__(self, tracer: Tracer | None = None, meter: Meter | None = None) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError:
            raise OtelMissing(str(missing("OpenTelemetry's spans", "opentelemetry"))) from None
        self.tracer = tracer or trace.get_tracer(NAME)
        meter = meter or metrics.get_meter(NAME)
        self.turns = meter.create_counter("evalkit.turns", "{turn}", "Model turns by stop reason")
        self.runs = meter.create_counter("evalkit.runs", "{run}", "Agent runs by ending")
        self.text_only = meter.create_counter(
            "evalkit.text_only_stops", "{turn}", "Ends of turn without a call while items were open"
        )
        self.truncated = meter.create_counter(
            "evalkit.truncated_finals", "{run}", "Runs whose last turn was cut off"
        )
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Number of input and output tokens used"
        )

    @contextmanager
    def run(
        self, agent: str, *, family: str = "", provider: str = "", model: str = "", conversation: str = ""
    ) -> Iterator[Run]:
        """A run of an agent; an exception in it ends the run as ``error``."""
        attributes = _filled(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.provider.name": provider or NAME,
                "gen_ai.agent.name": agent,
                "gen_ai.request.model": model,
                "gen_ai.conversation.id": conversation,
                "evalkit.family": family,
            }
        )
        with self.tracer.start_as_current_span(f"invoke_agent {agent}", attributes=attributes) as span:
            run = Run(self, span, agent, family, provider or NAME, model)
            try:
                yield run
            except BaseException as error:
                run.ended("error", native=type(error).__name__)
                raise
            finally:
                run.close()


class Run:
    """One run of an agent."""

    def __init__(
        self, telemetry: Telemetry, span: Span, agent: str, family: str, provider: str, model: str
    ) -> None:
        self._telemetry = telemetry
        self._span = span
        self._labels = _filled({"gen_ai.agent.name": agent, "evalkit.family": family})
        self._model = _filled({"gen_ai.provider.name": provider, "gen_ai.request.model": model})
        self._last_stop = ""
        self._tokens = {"input": 0, "output": 0}
        self._over = False

    def turn(
        self,
        stop_reason: str,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        text_only: bool = False,
        open_items: int = 0,
    ) -> None:
        """A model turn. ``text_only``: it ended without a client call; ``open_items``: what was not done."""
        telemetry = self._telemetry
        self._last_stop = stop_reason
        attributes = {
            "gen_ai.operation.name": "chat",
            **self._model,
            "gen_ai.response.finish_reasons": [stop_reason],
            "gen_ai.usage.input_tokens": input_tokens,
            "gen_ai.usage.output_tokens": output_tokens,
            "evalkit.open_items": open_items,
        }
        name = f"chat {self._model.get('gen_ai.request.model', '')}".strip()
        telemetry.tracer.start_span(name, attributes=attributes).end()
        telemetry.turns.add(1, {**self._labels, "gen_ai.response.finish_reason": stop_reason})
        if text_only and open_items:
            telemetry.text_only.add(1, self._labels)
        for kind, count in (("input", input_tokens), ("output", output_tokens)):
            self._tokens[kind] += count
            if count:
                labels = {"gen_ai.operation.name": "chat", **self._model, "gen_ai.token.type": kind}
                telemetry.tokens.record(count, labels)

    def ended(self, ending: str, *, native: str = "") -> None:
        """The run is over: ``done``, ``partial``, ``escalated``, ``limit``, ``error`` or ``never``."""
        if self._over:
            return
        self._over = True
        truncated = self._last_stop in TRUNCATED
        self._span.set_attributes(
            _filled(
                {
                    "evalkit.ending": ending,
                    "evalkit.native_ending": native,
                    "evalkit.truncated_final": truncated,
                    "gen_ai.usage.input_tokens": self._tokens["input"],
                    "gen_ai.usage.output_tokens": self._tokens["output"],
                }
            )
        )
        if ending in ("error", "never"):
            self._span.set_attribute("error.type", native or ending)
        self._telemetry.runs.add(1, {**self._labels, "evalkit.ending": ending})
        if truncated:
            self._telemetry.truncated.add(1, self._labels)

    def close(self) -> None:
        """A run that nobody ended is an error: what it did is not known."""
        self.ended("error", native="no ending reported")


def _filled(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: clean_value(value) for name, value in attributes.items() if value != ""}


def send_run(store: Store, telemetry: Telemetry) -> int:
    """Send a run folder: counters of all its episodes, spans of the first ones; how many spans.

    Each span carries evalkit's judgement as an event ``gen_ai.evaluation.result``.
    """
    names = contender_names(store)
    _count(store, telemetry, names)
    query = (
        "select contender, family, scenario_name, seed, ending, native, outcome, correct, turns, tokens, "
        "output_tokens, open_stops, final_stop, note from episodes where counted "
        "order by cell limit ?"
    )
    sent = 0
    for contender, family, scenario, seed, ending, native, outcome, correct, turns, *rest in store.rows(
        query, (SPANS,)
    ):
        tokens, output, open_stops, final, note = rest
        attributes = _filled(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.provider.name": NAME,
                "gen_ai.agent.name": names[contender],
                "gen_ai.request.model": store.recipe.medium.model,
                "gen_ai.conversation.id": f"{scenario}/{names[contender]}/{seed}",
                "gen_ai.usage.input_tokens": tokens - output,
                "gen_ai.usage.output_tokens": output,
                "gen_ai.response.finish_reasons": [final] if final else [],
                "evalkit.family": family,
                "evalkit.scenario": scenario,
                "evalkit.ending": ending,
                "evalkit.native_ending": native,
                "evalkit.turns": turns,
                "evalkit.text_only_open": open_stops,
                "evalkit.truncated_final": final in TRUNCATED,
                "error.type": (native or ending) if ending in ("error", "never") else "",
            }
        )
        span = telemetry.tracer.start_span(f"invoke_agent {names[contender]}", attributes=attributes)
        verdict = {
            "gen_ai.evaluation.name": "correct",
            "gen_ai.evaluation.score.value": float(correct),
            "gen_ai.evaluation.score.label": outcome,
            "gen_ai.evaluation.explanation": note,
        }
        span.add_event("gen_ai.evaluation.result", _filled(verdict))
        span.end()
        sent += 1
    return sent


def _count(store: Store, telemetry: Telemetry, names: list[str]) -> None:
    from evalkit.stats.telemetry import stops_by_family

    by_pair = {(c.strategy, c.harness): name for c, name in zip(store.recipe.contenders, names, strict=True)}
    for row in stops_by_family(store):
        if row["family"] == "all":
            continue
        labels = {
            "gen_ai.agent.name": by_pair[row["strategy"], row["harness"]],
            "evalkit.family": row["family"],
        }
        for stop, count in row["stops"].items():
            telemetry.turns.add(count, {**labels, "gen_ai.response.finish_reason": stop})
        for ending, count in row["endings"].items():
            telemetry.runs.add(count, {**labels, "evalkit.ending": ending})
        telemetry.text_only.add(row["text_only_open"], labels)
        telemetry.truncated.add(row["truncated_finals"], labels)


@contextmanager
def exporting() -> Iterator[Telemetry]:
    """Telemetry to an OTLP collector, found by the standard OTEL_EXPORTER_OTLP_* variables."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise OtelMissing(str(missing("sending them", "opentelemetry"))) from None
    resource = Resource.create({"service.name": NAME})
    traces = TracerProvider(resource=resource)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource)
    try:
        yield Telemetry(traces.get_tracer(NAME), meters.get_meter(NAME))
    finally:
        traces.shutdown()
        meters.shutdown()
