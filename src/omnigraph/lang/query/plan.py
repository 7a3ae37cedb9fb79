"""From a checked query to the plan engines run."""

from __future__ import annotations

from omnigraph.lang import ir
from omnigraph.lang.query import checked


def plan(query: checked.Query) -> ir.Query:
    """The query lowered and rewritten."""
    # The lowering imports modules of this package, so the package cannot import it while it is being imported itself.
    from omnigraph.lang.lower import lower
    from omnigraph.lang.rewrite import rewrite

    return rewrite(lower(query))
