"""One definition of valid, for every way in: mutation, load, merge and schema change.

In comes `Changes`, what a write wants, and the transaction it starts from; out goes a report: the violations in a fixed
order, and the facts the verdict rests on, so that a writer who loses a race knows whether to look again. A check costs
what the change costs: it looks rows up by id, endpoint or unique value and never reads a table as a whole, except where
a table is replaced as a whole.

- `evaluate`     CHECKS, in order; the report and the two errors
- `findings`     what a check is given and what it answers with
- `values`       required, vectors, enums, ranges, patterns: single rows, usable on their own (`row_violations`)
- `keys`         ids that do not fit their keys, rows given twice, rows that exist already
- `unique`       unique groups over the final image
- `endpoints`    edges without nodes, and nodes that leave edges behind
- `cardinality`  edges per source
- `listing`      files of everything that is wrong
"""

from __future__ import annotations

from omnigraph.validate.cardinality import miscounted
from omnigraph.validate.evaluate import (
    CHECKS,
    KeyConflict,
    Report,
    ValidationFailed,
    evaluate,
    require_valid,
)
from omnigraph.validate.unique import shared_values
from omnigraph.validate.values import row_violations

__all__ = [
    "CHECKS",
    "KeyConflict",
    "Report",
    "ValidationFailed",
    "evaluate",
    "miscounted",
    "require_valid",
    "row_violations",
    "shared_values",
]
