"""A recorded run in neutral terms, whatever wrote it down."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec

from evalkit.core.requests import Result
from evalkit.core.turns import Call, Text, Thinking, Turn, count_tokens
from evalkit.transcripts.empty_sessions import empty_of

#: How the harness of a recording ended; ``unknown`` where the recording does not say.
Ended: TypeAlias = Literal["done", "partial", "escalated", "limit", "error", "unknown"]
#: Who wrote a message that came after a turn: the run's user, or the harness itself.
Speaker: TypeAlias = Literal["user", "harness"]

#: Characters of a tool's answer that are kept; tokens are counted before the cut.
KEPT = 20_000
#: Parts of a recording that were not read, and are named one by one.
ODD_KEPT = 20


class Label(msgspec.Struct, frozen=True):
    """Whether the task was complete at the end of the run, and who says so.

    ``complete`` is None where nobody does. ``complete_at`` is the model turn after which it was first
    complete (0: from the start), None where that is not known. ``by`` says what was looked at: the state of
    the world, or what the model said too (an answer), so that the label holds at the recorded end only.
    ``score`` is a number above 1, which says nothing until somebody says from where on a run is complete.
    ``disputed``: the source says that it was complete and that it was not.
    """

    complete: bool | None = None
    source: str = ""
    complete_at: int | None = None
    by: Literal["state", "words"] = "words"
    score: float | None = None
    disputed: bool = False


NO_LABEL = Label()


class Step(msgspec.Struct, frozen=True, gc=False):
    """One model turn and what came before the next one.

    ``said`` is text that followed, None where none did, ``by`` who wrote it. ``acted`` says that the user
    used tools of their own. ``agent`` names the speaker in a run of several agents. Tokens are the
    recording's own where it has them, else by evalkit's counter.
    """

    turn: Turn
    results: tuple[Result, ...] = ()
    said: str | None = None
    by: Speaker = "user"
    acted: bool = False
    agent: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class Recording(msgspec.Struct, frozen=True):
    """One run. ``id`` is its file and place, ``instructions`` what the model was told beside the task.

    ``tools`` are the names that the recording says were offered, empty where it does not say. ``native`` is
    the harness's own end signal. ``counted`` says that tokens are by evalkit's counter. ``odd`` are the parts
    that were not read, each with its place. ``parent`` is the id of the run that a child agent's belongs to.
    ``request`` are digests of the messages of a request log: one whose messages another's begin with is the
    same run, earlier. ``task`` says which task it is where the recording names one. ``expected`` are the
    calls that the task's author says a right run makes, None where nobody says.
    """

    id: str
    file: str
    format: str
    prompt: str
    instructions: str
    steps: tuple[Step, ...]
    ending: Ended
    native: str
    label: Label = NO_LABEL
    tools: tuple[str, ...] = ()
    model: str = ""
    counted: bool = True
    odd: tuple[str, ...] = ()
    parent: str = ""
    request: tuple[int, ...] = ()
    task: str = ""
    expected: tuple[Call, ...] | None = None


class Unreadable(Exception):
    """Why a file, or a part of one, is no recording; one line."""


class Conversation:
    """Collects a run as it is read. The tokens of a turn's input are those of the conversation so far."""

    def __init__(self) -> None:
        self.prompt: list[str] = []
        self.instructions: list[str] = []
        self.steps: list[Step] = []
        self.tools: dict[str, None] = {}
        self.model = ""
        self.task = ""
        self.counted = True
        self.odd: list[str] = []
        self.odd_count = 0
        self._size = 0
        self._results: list[Result] = []
        self._open: Step | None = None

    def system(self, text: str) -> None:
        """Instructions to the model."""
        if text:
            self.instructions.append(text)
            self._size += count_tokens(text)

    def user(self, text: str, by: Speaker = "user", *, acted: bool = False) -> None:
        """A message to the model: the task before the first turn, an answer to the last turn after it."""
        self._size += count_tokens(text)
        step = self._open
        if step is None:
            self.prompt.append(text)
            return
        said = text if step.said is None else f"{step.said}\n{text}"
        # One word of the user's among the harness's makes it the user's.
        speaker: Speaker = "harness" if by == "harness" and step.by == "harness" else "user"
        if step.said is None:
            speaker = by
        self._open = msgspec.structs.replace(step, said=said, by=speaker, acted=step.acted or acted)

    def skip(self, what: str, place: str = "") -> None:
        """Note a part that was not read."""
        self.odd_count += 1
        if len(self.odd) < ODD_KEPT:
            self.odd.append(f"{place or self._place()}: {what}")

    def _place(self) -> str:
        return f"turn {len(self.steps) + (self._open is not None)}"

    def acted(self) -> None:
        """The user used a tool of their own."""
        if self._open is not None:
            self._open = msgspec.structs.replace(self._open, acted=True)

    def turn(
        self, turn: Turn, agent: str = "", input_tokens: int | None = None, output_tokens: int | None = None
    ) -> None:
        """The model answered."""
        self._close()
        if input_tokens is not None or output_tokens is not None:
            self.counted = False
        self._open = Step(
            turn,
            agent=agent,
            input_tokens=self._size if input_tokens is None else input_tokens,
            output_tokens=turn.tokens if output_tokens is None else output_tokens,
        )
        self._size += turn.tokens

    def relabel(self, turn: Turn) -> None:
        """The last turn again, with what was learnt of it later (its stop label)."""
        if self._open is not None:
            self._open = msgspec.structs.replace(self._open, turn=turn)

    def result(self, call: str, text: str, error: bool = False) -> None:
        """A tool answered."""
        self._size += count_tokens(text)
        self._results.append(Result(call, text[:KEPT], error))

    @property
    def last(self) -> Step | None:
        """The last turn, with what has followed so far."""
        step = self._open
        return None if step is None else msgspec.structs.replace(step, results=tuple(self._results))

    def _close(self) -> None:
        step = self.last
        if step is not None:
            self.steps.append(step)
        self._open = None
        self._results = []

    def recording(
        self, id: str, file: str, format: str, ended: tuple[Ended, str] | None = None, label: Label = NO_LABEL
    ) -> Recording:
        """The run as read. Without ``ended`` the end is read off the last turn.

        Unreadable without a turn, and where none of its turns has text, thinking or a call: then the file was
        not understood, whatever it is.
        """
        native: tuple[Ended, str] = ended or natural_end(self.last)
        self._close()
        if not self.steps and native[0] != "error":
            raise Unreadable(empty_of(format, "holds no model turn") + self._not_read())
        if self.steps and not any(map(_says, self.steps)):
            turns = f"{len(self.steps)} model turns" if len(self.steps) > 1 else "one model turn"
            raise Unreadable(
                f"looks like {format}, but {turns} without text, thinking or a call{self._not_read()}"
            )
        odd = tuple(self.odd)
        if self.odd_count > len(odd):
            odd += (f"and {self.odd_count - len(odd)} more parts",)
        return Recording(
            id=id,
            file=file,
            format=format,
            prompt="\n\n".join(self.prompt),
            instructions="\n\n".join(self.instructions),
            steps=tuple(self.steps),
            ending=native[0],
            native=native[1],
            label=label,
            tools=tuple(self.tools),
            model=self.model,
            counted=self.counted,
            odd=odd,
            task=self.task,
        )

    def _not_read(self) -> str:
        return f"; not read: {'; '.join(self.odd[:3])}" if self.odd else ""


def _says(step: Step) -> bool:
    """Whether a turn has anything in it that a model can say, or a label of its own that says why not."""
    if step.turn.native and step.turn.kind != "content":
        return True
    return any(
        not isinstance(block, Text | Thinking) or bool(block.text.strip()) for block in step.turn.content
    )


def natural_end(last: Step | None) -> tuple[Ended, str]:
    """How a run without an end signal ended: only a turn after which nothing had to follow is an end."""
    if last is None:
        return "unknown", "no model turn"
    turn = last.turn
    if last.said is not None:
        return "unknown", "breaks off after a message to the model"
    if turn.kind in ("pause", "cut_off", "failed", "in_progress"):
        return "unknown", f"breaks off at {turn.native or turn.stop}"
    if turn.kind == "refusal":
        return "unknown", f"breaks off at {turn.native or turn.stop}"
    if not turn.calls:
        return "done", turn.native or "turn without calls"
    if any(finishes(call) for call in turn.calls):
        return "done", "finish call"
    if over := hand_over(turn.calls):
        return "escalated", over
    return (
        "unknown",
        "breaks off after a tool call" if not last.results else "breaks off after a tool's answer",
    )


#: Names of tools by which a model says that it is done, in the harnesses that have one.
FINISH_TOOLS = frozenset(
    (
        "attempt_completion",
        "complete",
        "complete_task",
        "done",
        "final_answer",
        "finish",
        "finish_task",
        "mark_task_complete",
        "submit",
        "submit_answer",
        "submit_final_answer",
        "task_complete",
        "task_completed",
    )
)
#: Words in a shell command by which mini-swe-agent ends (its documentation, both major versions).
SENTINELS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")


#: Tools that leave a conversation to a person: tau-bench's, and what others call theirs.
TRANSFER = "transfer_to_human_agents"
HAND_OVERS = frozenset(
    (TRANSFER, "transfer_to_human_agent", "transfer_to_human", "escalate_to_human", "handoff_to_human")
)


def hand_over(calls: Iterable[Call]) -> str:
    """The name of the call that leaves the conversation to a person; empty where none does."""
    return next((name for call in calls if (name := bare_name(call.tool)) in HAND_OVERS), "")


def finishes(call: Call) -> bool:
    """Whether a call is the recording's own way to say "done"."""
    if bare_name(call.tool) in FINISH_TOOLS:
        return True
    arguments = call.arguments
    return SENTINELS[0] in arguments or SENTINELS[1] in arguments


@lru_cache(maxsize=4096)
def bare_name(tool: str) -> str:
    """A tool's name without the prefix of an MCP server, in lower case."""
    return tool.rsplit("__", 1)[-1].lower()
