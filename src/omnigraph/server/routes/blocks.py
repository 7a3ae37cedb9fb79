"""Several writes as one commit: what a `with g.branch(…).write(…)` block of a client sends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from omnigraph.branch import WriteBlock
from omnigraph.policy.questions import Action
from omnigraph.sameness import fingerprint
from omnigraph.server.access import Need
from omnigraph.server.calls import Answer, Call
from omnigraph.server.errors import RequestInvalid
from omnigraph.server.routes.writing import explained
from omnigraph.server.wire import CommitOutput, Message, Request, maybe_commit


class WriteStep(Request, frozen=True):
    """A mutation (`query`), or rows to `load`: graph records, or rows by type."""

    query: str | None = None
    name: str | None = None
    params: dict[str, Any] | None = None
    load: list[dict[str, Any]] | dict[str, list[dict[str, Any]]] | None = None
    mode: Literal["append", "merge"] = "merge"


class WriteRequest(Request, frozen=True):
    steps: list[WriteStep]
    branch: str | None = None
    message: Message | None = None
    timeout: float | None = None


class WriteOutput(msgspec.Struct, frozen=True):
    """`steps` says of each step what `POST /mutate` or `POST /load` counts of it."""

    branch: str
    actor_id: str | None
    commit: CommitOutput | None
    replayed: bool
    steps: list[dict[str, Any]]


def write_needs(call: Call) -> Iterable[Need]:
    """Changing the branch, in each of the ways the steps do."""
    asked: WriteRequest = call.body
    branch = asked.branch or "main"
    yield Need(Action.CHANGE, branch)
    for mode in sorted({step.mode for step in asked.steps if step.load is not None}):
        yield Need(Action.CHANGE, branch, mode=mode)


def write(call: Call) -> Answer:
    """Run mutations and small loads in order, each seeing the ones before it, as one commit or not at all."""
    asked: WriteRequest = call.body
    branch = asked.branch or "main"
    with explained(call, branch):
        block = call.graph.branch(branch).write(
            asked.message,
            actor=call.actor,
            if_commit=call.if_commit,
            idempotency_key=call.idempotency_key(),
            timeout=call.seconds(call.bounds.write_seconds_max, asked.timeout),
        )
        with block:
            for number, step in enumerate(asked.steps, 1):
                _take(block, step, number)
    results = [result.to_json() for result in block.results]
    commit = maybe_commit(block.commit)
    answer = WriteOutput(branch, call.actor, commit, block.replayed, results)
    return Answer(answer, commit=commit.graph_commit_id if commit else None)


def _take(block: WriteBlock, step: WriteStep, number: int) -> None:
    if (step.query is None) == (step.load is None):
        raise RequestInvalid(f"step {number} needs `query` or `load`")
    if step.query is not None:
        block.mutate(step.query, step.params, step.name)
    else:
        block.load(step.load, step.mode, digest=fingerprint(step.load))
