"""Fixtures every test can ask for. Torch runs on one thread: the models are small, and workers share the cores."""

import os
import tempfile

from tests.families import family_folder, family_network
from tests.worlds import random_world, shipped

os.environ.setdefault("OMP_NUM_THREADS", "1")
# What is found out about weights is kept between runs, and tests are to find nothing.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="causalab-mini-tests-")

__all__ = ["family_folder", "family_network", "random_world", "shipped"]
