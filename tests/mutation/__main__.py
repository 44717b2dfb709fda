"""``make mutants``: breaks evalkit's own code by rule, and says what scenarios and tests notice.

``python -m tests.mutation [--size N] [--seed N] [--outside N] [--place NAME]… [--log FILE]``
What was found is written down at once, and a run goes on where one stopped. Exit code 1: too little is
noticed.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from tests.mutation.log import LOG
from tests.mutation.places import PLACES
from tests.mutation.run import OUTSIDE, SEED, SIZE, run

parser = argparse.ArgumentParser(prog="python -m tests.mutation")
parser.add_argument("--size", type=int, default=SIZE, help="mutants that are made")
parser.add_argument("--seed", type=int, default=SEED, help="which are drawn")
parser.add_argument(
    "--outside", type=int, default=OUTSIDE, help="random scenarios for those argued equivalent"
)
parser.add_argument("--place", action="append", choices=sorted({place.name for place in PLACES}))
parser.add_argument("--log", type=Path, default=LOG, help="where what was found is kept")
arguments = parser.parse_args()
chosen = [place for place in PLACES if not arguments.place or place.name in arguments.place]
tell = partial(print, flush=True)
sys.exit(not run(chosen, arguments.size, arguments.seed, arguments.outside, tell, arguments.log))
