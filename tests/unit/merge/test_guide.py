"""Every example of the guide runs, and it names every kind of conflict and every outcome."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from omnigraph.merge import conflicts
from omnigraph.write import merge

GUIDE = (Path(__file__).parents[3] / "docs/guides/branching.md").read_text()


def test_the_examples_run_in_order() -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_conflict_and_outcome_is_explained() -> None:
    kinds = [v for k, v in vars(conflicts).items() if k.isupper() and isinstance(v, str)]
    outcomes = [merge.UP_TO_DATE, merge.FAST_FORWARD, merge.MERGED, merge.CONFLICT]
    for word in [*kinds, *outcomes]:
        assert f"`{word}`" in GUIDE, f"the guide does not mention {word}"
