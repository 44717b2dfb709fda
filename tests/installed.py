"""What an installed evalkit must do, in a folder that is no checkout. Run by ``make release-check``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

SCENARIO = "migration-reports-at-four-of-six"


def main() -> None:
    """Run it as a command and from Python, read the answer, open the page, use the pytest plugin."""
    # The folder of this file is full of packages that are named as others are.
    sys.path.pop(0)
    import evalkit

    assert Path(sys.prefix) in Path(evalkit.__file__).parents, f"not the installed one: {evalkit.__file__}"
    assert version("evalkit-endings") == evalkit.__version__
    command = [str(Path(sys.executable).with_name("evalkit"))]
    with tempfile.TemporaryDirectory() as folder:

        def run(*words: str) -> str:
            done = subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
            return done.stdout

        said = run("run", "partial_completion", "--out", "r", "--single-file", "--charts")
        assert said.startswith("Your harness can run full checks: take "), said
        for name in ("index.html", "report.html", "report.md", "summary.json", "charts/outcomes-full.svg"):
            assert (Path(folder) / "r" / name).stat().st_size > 0, name
        assert "done/reachable" in run("show", "r", f"{SCENARIO}/silence")
        run("scenarios", "new", "mine")
        run("scenarios", "check", "mine.yaml")
        run("init", "-s", "gate", "--suite", SCENARIO)
        run("gate", "reports/baseline", "--baseline", "termination-baseline.json")
        again = evalkit.run(SCENARIO, ["silence", "gate"], out=Path(folder) / "python")
        assert str(again.answer) == "Your harness can run full checks: take gate.", again.answer
        assert len(again.episodes()) == 2
        plugins = [sys.executable, "-m", "pytest", "--help"]
        helped = subprocess.run(plugins, cwd=folder, capture_output=True, text=True, check=True).stdout
        assert "--evalkit-suite" in helped


if __name__ == "__main__":
    main()
