"""One definition of valid, for every kind of write: mutation, load, merge and schema change.

The input is `Changes`, the rows a write would change, and the transaction it starts from; the output is a report: the
violations in a fixed order, and the facts the verdict depends on, so that a writer that loses a race knows whether to
check again.

- `rules`      the rules of a schema as data, and the messages for violations; single rows are judged here
- `checks`     CHECKS, in order: the rules, by lookups whose cost follows the change
- `evaluate`   all checks over a change; the report and the two errors
- `findings`   inputs and results of checks
- `listing`    files of all violations
"""

from __future__ import annotations

from omnigraph.validate.checks import CHECKS
from omnigraph.validate.evaluate import (
    KeyConflict,
    Report,
    ValidationFailed,
    evaluate,
    require_valid,
)
from omnigraph.validate.rules import row_violations

__all__ = [
    "CHECKS",
    "KeyConflict",
    "Report",
    "ValidationFailed",
    "evaluate",
    "require_valid",
    "row_violations",
]
