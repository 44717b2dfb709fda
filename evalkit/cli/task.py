"""``evalkit task``: the durable worker's queue."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalkit.cli.groups import Group
from evalkit.cli.task_store import home_of, home_option, store_option, task_errors, with_store
from evalkit.runs.engine import MOST_WORKERS

if TYPE_CHECKING:
    from evalkit.worker.store import SqlStore

PERSON = "a person"


@click.group(cls=Group)
def command() -> None:
    """Queue tasks for the durable worker, work on them, close and answer them."""


@command.command()
@click.option("--id", "id", help="Its name, else a fresh one. Adding the same task again does nothing.")
@click.option("--prompt", help="What the model is to do.")
@click.option("--done-when", default="", help="The completion condition, stated up front.")
@click.option("--type", "type_", default="", help="What telemetry is broken out by.")
@click.option("--item", "items", multiple=True, help="A part of the task. Repeatable.")
@click.option("--check", "checks", multiple=True, help="An acceptance check of the kit, by name. Repeatable.")
@click.option("--strategy", default="gate", show_default=True, help="When it is done, and what else to do.")
@click.option("--kit", help="Model, tools and checks: an entry point of evalkit.kits, or module:name.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="For the kit. Repeatable.")
@click.option("--turns", type=int, help="Limit of model turns.")
@click.option("--tokens", type=int, help="Limit of tokens.")
@click.option("--usd", type=float, help="Limit of cost.")
@click.option(
    "--closure",
    type=click.Choice(["worker", "person"]),
    help="Who closes it; without it the worker where there are checks, else a person.",
)
@click.option(
    "--scenario",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Take task, model and world from a scenario file (kit scenario).",
)
@click.option("--seed", default=0, help="The seed of the scenario's choices.")
@with_store
def add(store: SqlStore, scenario: Path | None, seed: int, closure: str | None, **options: Any) -> None:
    """Queue a task and print its id."""
    from evalkit.worker.ordering import checked, new_id, with_closure

    id = options["id"] or new_id()
    orders = _described(id, options) if scenario is None else _scripted(id, scenario, seed, options)
    new = store.add([checked(with_closure(order, closure)) for order in orders], time.time())
    for order in orders:
        click.echo(order.id)
    if not new:
        click.echo("evalkit: note: queued already", err=True)


def _described(id: str, options: dict[str, Any]) -> list[Any]:
    from evalkit.core.tasks import Limits
    from evalkit.worker.task_records import Order, TaskError

    if not options["prompt"] or not options["kit"]:
        raise TaskError("a task needs --prompt and --kit, or --scenario")
    settings = {}
    for setting in options["settings"]:
        name, equals, value = setting.partition("=")
        if not equals:
            raise TaskError(f"--set {setting!r}: expected NAME=VALUE")
        settings[name] = value
    return [
        Order(
            id=id,
            prompt=options["prompt"],
            done_when=options["done_when"],
            type=options["type_"] or "task",
            kit=options["kit"],
            strategy=options["strategy"],
            checks=tuple(options["checks"]),
            items=tuple(options["items"]),
            limits=Limits(options["turns"], options["tokens"], options["usd"]),
            settings=settings,
        )
    ]


def _scripted(id: str, file: Path, seed: int, options: dict[str, Any]) -> list[Any]:
    from evalkit.scenarios.loader import load_file
    from evalkit.worker.scripted_workplace import order_of
    from evalkit.worker.task_records import TaskError

    for name in ("prompt", "done_when", "items", "checks", "kit", "settings", "turns", "tokens", "usd"):
        if options[name]:
            raise TaskError(f"--{name.replace('_', '-')} comes from the scenario; leave it out")
    found = load_file(file)
    return [
        order_of(
            scenario,
            id if len(found) == 1 else f"{id}.{number}",
            seed=seed,
            strategy=options["strategy"],
            type=options["type_"],
        )
        for number, scenario in enumerate(found, 1)
    ]


@command.command("list")
@click.option("--status", help="Only tasks of this status.")
@click.option("--type", "type_", help="Only tasks of this type.")
@click.option("--limit", default=50, show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one task a line.")
@with_store
def list_(store: SqlStore, status: str | None, type_: str | None, limit: int, as_json: bool) -> None:
    """The tasks in the order of the queue."""
    from evalkit.cli.task_text import record_json, record_line
    from evalkit.worker.task_records import STATUSES, TaskError

    if status is not None and status not in STATUSES:
        raise TaskError(f"unknown status {status!r}; known: {', '.join(STATUSES)}")
    for record in store.find(status, type_, limit):
        click.echo(json.dumps(record_json(record)) if as_json else record_line(record))
    if not as_json:
        counts = store.count()
        click.echo(", ".join(f"{counts.get(name, 0)} {name}" for name in STATUSES))


@command.command()
@click.argument("id")
@click.option("--transcript", is_flag=True, help="Every turn with its request and calls.")
@click.option("--escalation", is_flag=True, help="The escalation artifact, written now.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_store
def show(store: SqlStore, id: str, transcript: bool, escalation: bool, as_json: bool) -> None:
    """One task: its record, transcript or escalation."""
    from evalkit.cli.task_text import record_json, record_text, transcript_text
    from evalkit.worker.encoding import dump
    from evalkit.worker.escalation import escalation_of, markdown_of

    record = store.get(id)
    if escalation:
        found = escalation_of(store, record)
        click.echo(dump(found) if as_json else markdown_of(found), nl=as_json)
    elif transcript:
        exchanges, effects = store.transcript(record.seq), store.effects(record.seq)
        if as_json:
            click.echo(json.dumps([json.loads(dump(exchange)) for exchange in exchanges]))
        else:
            click.echo(transcript_text(record, exchanges, effects), nl=False)
    else:
        click.echo(json.dumps(record_json(record)) if as_json else record_text(record), nl=as_json)


@command.command()
@click.option(
    "--workers", type=click.IntRange(1, MOST_WORKERS), default=1, show_default=True, help="Processes."
)
@click.option("--drain", is_flag=True, help="End when nothing is left to do; else go on until SIGTERM.")
@click.option("--lease", type=click.FloatRange(min=1), default=60.0, show_default=True, help="Seconds.")
@click.option("--poll", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="Seconds.")
@click.option(
    "--durability",
    type=click.Choice(["full", "normal"]),
    default="full",
    show_default=True,
    help="SQLite: whether a commit waits for the disk (a power cut) or not (a crash of the worker).",
)
@home_option
@store_option
def work(
    url: str, home: Path | None, workers: int, drain: bool, lease: float, poll: float, durability: Any
) -> None:
    """Lease tasks and work on them; SIGTERM ends it cleanly. Exit 1 where a worker failed."""
    from evalkit.worker.crew import Duty
    from evalkit.worker.crew import work as work_on

    with task_errors():
        duty = Duty(url, str(home_of(url, home)), workers, drain, lease, poll, durability)
        code = work_on(duty)
    if code:
        raise click.exceptions.Exit(code)


@command.command()
@click.argument("id")
@click.option("--evidence", help="The evidence, as JSON or plain text.")
@click.option("--evidence-file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--idempotency-key", "key", required=True, help="The same key a second time does nothing.")
@click.option("--by", default=PERSON, show_default=True)
@with_store
def complete(
    store: SqlStore, id: str, evidence: str | None, evidence_file: Path | None, key: str, by: str
) -> None:
    """Close task ID on evidence."""
    new = store.complete(id, key, by, _evidence(evidence, evidence_file), time.time())
    click.echo(f"{id}: done" if new else f"{id}: was done already under this key")


def _evidence(text: str | None, file: Path | None) -> Any:
    from evalkit.worker.task_records import TaskError

    if (text is None) == (file is None):
        raise TaskError("give the evidence as --evidence or as --evidence-file")
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(f"{file}: cannot be read: {error}") from None
    assert text is not None
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


@command.command()
@click.argument("id")
@click.option("--reason", required=True, help="Why a person should look.")
@click.option("--by", default=PERSON, show_default=True)
@home_option
@store_option
def escalate(url: str, home: Path | None, id: str, reason: str, by: str) -> None:
    """Take task ID from the queue, and write its escalation artifact."""
    from evalkit.worker.escalation import hand_over
    from evalkit.worker.store import open_store

    with task_errors():
        store = open_store(url)
        store.escalate(id, reason, by, time.time())
        click.echo(str(hand_over(store, id, home_of(url, home))))
        store.shut()


@command.command()
@click.argument("id")
@click.option("--answer", help="What the model should know; it is sent as the next user message.")
@with_store
def retry(store: SqlStore, id: str, answer: str | None) -> None:
    """Let task ID go on where it stopped, with new limits and all else as it was."""
    from evalkit.worker.reopening import reopen

    reopen(store, id, answer, time.time())
    click.echo(f"{id}: pending")


@command.command()
@click.argument("id")
@click.option("--add", "name", metavar="NAME", help="Put evidence of this name on the record.")
@click.option("--evidence", help="The evidence to add, as JSON or plain text.")
@click.option("--evidence-file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--settle", "step", metavar="STEP", help="Say of a step in doubt whether it happened.")
@click.option("--as", "outcome", type=click.Choice(["done", "not-done"]), help="With --settle.")
@click.option("--by", default=PERSON, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_store
def evidence(
    store: SqlStore,
    id: str,
    name: str | None,
    evidence: str | None,
    evidence_file: Path | None,
    step: str | None,
    outcome: str | None,
    by: str,
    as_json: bool,
) -> None:
    """The evidence on task ID's record: the calls its workers made, the checks they ran; or add some."""
    from evalkit.cli.task_text import evidence_text
    from evalkit.core.requests import Result
    from evalkit.worker.encoding import dump
    from evalkit.worker.task_records import Evidence, TaskError

    record = store.get(id)
    now = time.time()
    if step is not None:
        if outcome is None:
            raise TaskError("--settle needs --as done or --as not-done")
        result = Result(f"settled {step}", f"done, as {by} says") if outcome == "done" else None
        store.settle(id, step, result, now)
        store.add_evidence(id, Evidence(f"step {step}", by, outcome, now))
    if name is not None:
        store.add_evidence(id, Evidence(name, by, _evidence(evidence, evidence_file), now))
    effects, pieces = store.effects(record.seq), store.evidence(record.seq)
    if as_json:
        click.echo(dump({"calls": effects, "evidence": pieces}))
    else:
        click.echo(evidence_text(effects, pieces), nl=False)


@command.command()
@click.option("--type", "type_", help="Only this task type.")
@click.option("--hours", default=24.0, show_default=True, help="The window held against the time before.")
@click.option("--alert", is_flag=True, help="Exit 1 if anything became more frequent.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_store
def stats(store: SqlStore, type_: str | None, hours: float, alert: bool, as_json: bool) -> None:
    """How turns stopped and tasks ended, by task type, and what became more frequent."""
    from evalkit.cli.task_text import stats_text
    from evalkit.worker.encoding import dump
    from evalkit.worker.telemetry import spikes
    from evalkit.worker.telemetry import stats as statistics

    found = statistics(store.events(type_), time.time() - hours * 3600)
    click.echo(dump(found) if as_json else stats_text(found, hours), nl=as_json)
    if alert and spikes(found):
        raise click.exceptions.Exit(1)
