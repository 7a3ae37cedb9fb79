"""Where the Java process of Spark writes its messages."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

LOG = "OMNIGRAPH_SPARK_LOG"


def log_file() -> Path:
    """The log of the Java process."""
    return Path(
        os.environ.get(LOG) or Path(tempfile.gettempdir()) / f"omnigraph-spark-{os.getuid()}.log"
    )
