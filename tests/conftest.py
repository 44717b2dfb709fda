"""How the tests look for counterexamples: the same ones each time, however long one takes.

``HYPOTHESIS_PROFILE=explore`` looks for new ones.
"""

from __future__ import annotations

import os

from hypothesis import Phase, settings

# What a command does is what is tested, and not what one did in an earlier run.
os.environ.setdefault("EVALKIT_KEPT_COMMANDS", "off")

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
#: Where it is enough to know that there is one.
settings.register_profile(
    "unshrunk", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
