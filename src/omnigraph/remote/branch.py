"""A branch of a served graph: its verbs, and blocks that are sent as one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.branch import BlockOptions, Branch, Mutation, Rows, Step, Written, outcome_of
from omnigraph.remote import shapes
from omnigraph.remote.sources import records_of


class RemoteBranch(Branch):
    """The verbs of a served graph, bound to one branch."""

    def _publish(self, options: BlockOptions, steps: Sequence[Step]) -> Written:
        """The steps as one request, which the server publishes as one commit."""
        told = self._graph.write_steps(options, [_sent(step) for step in steps])
        results = [outcome_of(step) for step in told["steps"]]
        return Written(shapes.commit_of(told["commit"]), results, told["replayed"])


def _sent(step: Step) -> dict[str, Any]:
    match step:
        case Mutation(text, params, name):
            return {"query": text, "params": params, "name": name}
        case Rows(source, mode):
            return {"load": records_of(source), "mode": mode}
