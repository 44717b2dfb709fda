"""The page's commands run as they stand, on recordings that lie as it says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.fit import validate
from evalkit.fit.counting import Counts
from evalkit.fit.estimates import ASSUMED
from tests.fit.made import lives, recordings

PAGE = (Path(__file__).parents[2] / "docs" / "fit.md").read_text(encoding="utf-8")


def _commands() -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    return [shlex.split(line, comments=True) for line in lines]


def _lay(folder: Path) -> None:
    """``runs/MODEL/TASK.json``, and labels of the first few."""
    records = json.loads(recordings(folder, 22, 1).read_text(encoding="utf-8"))
    (folder / "recorded.json").unlink()
    place = folder / "runs" / "mine"
    place.mkdir(parents=True)
    for record in records:
        (place / f"{record['task_id']}.json").write_text(json.dumps([record]), encoding="utf-8")
    (folder / "labels.csv").write_text("recording,complete\n3.json,1\n", encoding="utf-8")


def _smaller(file: Path) -> None:
    """The population with one draw of two tasks, which takes no time."""
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"^drawn: .*$", "drawn: 2\ndraws: 1", text, flags=re.M), encoding="utf-8")


@pytest.mark.long
def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(validate, "DRAWS", 3)
    _lay(tmp_path)
    said = []
    for _, *words in _commands():
        more = ["--splits", "2"] if "--validate" in words else ["--no-charts"] if words[0] == "run" else []
        done = CliRunner().invoke(main, [*words, *more], catch_exceptions=False)
        assert done.exit_code == 0, f"{words}\n{done.output}"
        said.append(done.output)
        if words[0] == "fit" and (tmp_path / "population.yaml").exists():
            _smaller(tmp_path / "population.yaml")
    assert len(said) == 6
    assert "22 recordings of 22 tasks (by (?P<model>" in said[1]
    assert any("calibrated: 2 half-splits by task" in text for text in said)


def test_every_parameter_and_every_assumption_is_on_the_page() -> None:
    names = {name.split(".")[0] for name in Counts(lives(60, 6)).rates}
    listed = set(re.findall(r"^\| `([a-z -]+)", PAGE, re.M)) | set(re.findall(r"`, `([a-z -]+)`", PAGE))
    assert names <= listed
    assert all(f"`{name}`" in PAGE for name in ASSUMED)
