"""One definition of valid, for every way in: mutation, load, merge and schema change.

In comes `Changes`, what a write wants, and the transaction it starts from; out goes a report: the violations in a fixed
order, and the facts the verdict rests on, so that a writer who loses a race knows whether to look again.

- `rules`      the rules of a schema as data, and the words for what breaks them; single rows are judged here
- `checks`     CHECKS, in order: the rules, by look-ups that cost what the change costs
- `evaluate`   all checks over a change; the report and the two errors
- `findings`   what a check is given and what it answers with
- `listing`    files of everything that is wrong
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
