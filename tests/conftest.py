"""How the tests look for counterexamples: the same ones each time, however long one takes.

``HYPOTHESIS_PROFILE=explore`` looks for new ones.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
