"""Speed and memory beside other systems, in one run each; `python -m benchmarks` runs them."""

import os
import sys

# An installed package comes compiled; what is measured here shall too, whatever this environment says of it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
