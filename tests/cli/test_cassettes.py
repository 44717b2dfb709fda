"""``evalkit cassettes``."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from evalkit.cli import main
from evalkit.media.medium import Medium
from evalkit.media.players import player_of
from evalkit.media.recordings import note_recording
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.strategies.presets import PRESETS

NAME = "migration-reports-at-four-of-six"


def test_list_show_and_check(tmp_path: Path) -> None:
    medium = Medium(dialect="anthropic", record=str(tmp_path / "tapes"))
    (scenario,) = load_suites((NAME,))
    note_recording(medium, (scenario,), ("gate",), 1)
    gate = PRESETS["gate"].strategy
    player_of(medium)(Arena(scenario, gate.offers), gate, 0)

    def call(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["cassettes", *words], catch_exceptions=False)
        return result.exit_code, result.output

    code, listed = call("list", str(tmp_path))
    assert code == 0
    assert "scripted server, no provider, anthropic not streamed" in listed
    file = tmp_path / "tapes" / f"{NAME}.json"
    code, shown = call("show", str(file))
    assert code == 0
    assert "   9  POST /v1/messages" in shown
    assert call("check", str(tmp_path / "tapes")) == (0, "1 recordings checked, 0 episodes do not replay\n")
    file.write_text(file.read_text().replace("All six endpoints", "All seven endpoints"))
    code, failed = call("check", str(tmp_path / "tapes"))
    assert code == 1
    assert "stale cassette" in failed
    code, missing = call("list", str(tmp_path / "tapes" / "nothing"))
    assert code == 2
    assert "holds no recordings" in missing
