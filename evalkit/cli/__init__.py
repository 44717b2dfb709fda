"""The command line. Each command is a module of its own, loaded when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from evalkit.cli import terminal

#: In groups, command: (module, one-line help). The help stands here so that ``evalkit --help`` loads nothing.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Run": {
        "run": ("evalkit.cli.run", "Run scenarios against strategies and write a run folder."),
        "play": ("evalkit.cli.play", "Be the model: one key a move, against a strategy."),
        "strategies": ("evalkit.cli.strategies", "List and show strategies."),
        "init": ("evalkit.cli.init", "Set evalkit up in a project: rules, baseline, CI."),
        "doctor": ("evalkit.cli.doctor", "What is installed, what is missing, what to do."),
    },
    "Read": {
        "show": ("evalkit.cli.show", "Show one episode, turn by turn."),
        "report": ("evalkit.cli.report", "Write the report of a run again."),
        "compare": ("evalkit.cli.compare", "Compare two runs: what changed, and why."),
        "baseline": ("evalkit.cli.baseline", "Print a run's baseline for the gate."),
        "gate": ("evalkit.cli.gate", "Hold a run against a baseline; exit 1 on a regression."),
        "plan": ("evalkit.cli.plan", "How many scenarios and seeds a comparison needs."),
        "choose": ("evalkit.cli.choose", "The strategy that costs least, for what mistakes cost you."),
        "claims": ("evalkit.cli.claims", "The claims that the project starts from, as experiments."),
        "study": ("evalkit.cli.study", "What repeated looks, hopeless work and thresholds do to strategies."),
    },
    "Scenarios": {
        "scenarios": ("evalkit.cli.scenarios", "List, show and check scenarios."),
    },
    "Harnesses": {
        "harnesses": ("evalkit.cli.harnesses", "List harnesses, set them up, try them."),
        "serve": ("evalkit.cli.serve", "Serve a scenario's scripted model to a harness of your own."),
    },
    "Worst cases": {
        "prove": ("evalkit.cli.prove", "Explore everything a model could do against a strategy."),
        "falsify": ("evalkit.cli.falsify", "Look for the smallest script that breaks a harness."),
        "mutants": (
            "evalkit.cli.mutants",
            "Change the reference loop rule by rule: which scenarios catch it?",
        ),
    },
    "Recordings": {
        "fit": ("evalkit.cli.fit", "What recordings can say of your agent, and what they cannot."),
        "judge": ("evalkit.cli.judge", "Judge recorded runs, and what strategies would have done."),
        "transcripts": ("evalkit.cli.transcripts", "List and show recorded runs; make scenarios of them."),
        "cassettes": ("evalkit.cli.cassettes", "List, show and check recordings of model exchanges."),
    },
    "Worker": {
        "task": ("evalkit.cli.task", "Queue, work on, close and answer tasks of the durable worker."),
        "hook": ("evalkit.cli.hook", "A Stop hook: block a stop while items are open."),
    },
}
COMMANDS: dict[str, tuple[str, str]] = {
    name: about for group in GROUPS.values() for name, about in group.items()
}


class _Lazy(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[name][0]).command
        return command

    def main(self, *arguments: Any, **options: Any) -> Any:
        """All that is printed, what click says of wrong words too, steers no terminal."""
        with terminal.plain():
            return super().main(*arguments, **options)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """What is wrong with the options in front of a command is told in a line, as all else."""
        extra.setdefault("terminal_width", terminal.help_width())
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise _usage_problem(error) from None

    def invoke(self, context: click.Context) -> object:
        """Run a command. Ctrl-C is a line; so is a module that a plain install leaves out."""
        # Not for --help, which runs none.
        from evalkit.cli import interrupts

        try:
            with interrupts.interruptible():
                return super().invoke(context)
        except click.UsageError as error:
            raise _usage_problem(error) from None
        except click.exceptions.Exit as left:
            interrupts.leave(left.exit_code)
            raise
        except KeyboardInterrupt as error:
            interrupts.say("evalkit: interrupted")
            interrupts.leave(interrupts.exit_code(error))
            raise click.exceptions.Exit(interrupts.exit_code(error)) from None
        except BrokenPipeError:
            # Whoever reads has enough.
            raise
        except OSError as error:
            raise _os_problem(error) from None
        except ImportError as error:
            raise _missing_extra(error, str(context.invoked_subcommand)) from None

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in commands.items()])


def _os_problem(error: OSError) -> click.ClickException:
    """What a disk, a name or the system refuses: which file, and why."""
    from evalkit.cli.errors import UsageProblem

    place = f"{str(error.filename)[:200]}: " if error.filename is not None else ""
    return UsageProblem(f"{place}{error.strerror or error}")


def _usage_problem(error: click.UsageError) -> Exception:
    """What click says of a usage, as evalkit says what is wrong; a group without a command shows its help."""
    from evalkit.cli.errors import UsageProblem, command_of, usage_line

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error
    return UsageProblem(usage_line(error), hint=f"{command_of(error.ctx)} --help")


def _missing_extra(error: ImportError, command: str) -> Exception:
    """A missing extra as the line that says what brings it; any other error as it is."""
    from evalkit.cli.errors import UsageProblem
    from evalkit.extras import EXTRAS, MissingExtra, missing

    module = (error.name or "").partition(".")[0]
    if isinstance(error, MissingExtra):
        return UsageProblem(str(error), hint="evalkit doctor")
    if module not in EXTRAS:
        return error
    return UsageProblem(str(missing(f"evalkit {command}", module)), hint="evalkit doctor")


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="evalkit-endings", message="evalkit %(version)s")
def main() -> None:
    """Measure whether an agent harness knows when its task is over."""
