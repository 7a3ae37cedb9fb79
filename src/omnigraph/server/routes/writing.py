"""Mutations, loads, and schema changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import UNSET

from omnigraph.errors import BranchNotFound, OmnigraphError, PreconditionFailed
from omnigraph.policy.questions import Action
from omnigraph.server.access import Need
from omnigraph.server.calls import NDJSON, Answer, Call
from omnigraph.server.errors import MediaUnsupported, RequestInvalid
from omnigraph.server.lines import Lines
from omnigraph.server.multipart import tables_in
from omnigraph.server.references import allowed_reference
from omnigraph.server.routes.texts import source_of
from omnigraph.server.spooled import readable
from omnigraph.server.wire import (
    ImportRequest,
    LoadRequest,
    MutateRequest,
    SchemaRequest,
    change_output,
    load_output,
    maybe_commit,
)
from omnigraph.write.input.options import Options


def change_on(call: Call) -> Iterable[Need]:
    """Changing the branch the request names."""
    return (Need(Action.CHANGE, call.body.branch or "main"),)


@contextmanager
def explained(call: Call, branch: str) -> Iterator[None]:
    """Failures of a write, with what their answers tell besides: the branch, and what kind of type it was."""
    try:
        yield
    except PreconditionFailed as lost:
        lost.details["branch"] = branch
        raise
    except OmnigraphError as error:
        if error.code == "key_conflict" and error.details.get("violations"):
            kind = _kind_of(call, branch, error.details["violations"][0]["type"])
            error.details["entity_kind"] = kind
        raise


def _kind_of(call: Call, branch: str, type_name: str) -> str:
    try:
        found = call.unguarded.snapshot(branch).catalog.entity(type_name)
    except BranchNotFound:
        found = None
    return found.kind if found is not None else "node"


# --- mutations ---------------------------------------------------------------------------------------------------


def mutate(call: Call) -> Answer:
    """Run a mutation as one commit; the header `Idempotency-Key` makes it happen once."""
    return change(call, call.body, *source_of(call.body))


def change(call: Call, asked: MutateRequest, text: str, name: str) -> Answer:
    """Run the named mutation of a text."""
    branch = asked.branch or "main"
    with explained(call, branch):
        done = call.graph.mutate(
            text,
            asked.params,
            name,
            branch=branch,
            if_commit=call.if_commit,
            message=asked.message,
            actor=call.actor,
            idempotency_key=call.idempotency_key(),
            dry_run=asked.dry_run,
            timeout=call.seconds(call.bounds.write_seconds_max, asked.timeout),
        )
    commit = done.commit.id if done.commit else None
    return Answer(change_output(done, branch, name, call.actor), commit=commit)


# --- loads -------------------------------------------------------------------------------------------------------


def load_needs(call: Call) -> Iterator[Need]:
    """Changing the branch; and creating it, where it has to be forked first from what can be read."""
    asked: LoadRequest | ImportRequest = call.body
    branch, source = asked.branch or "main", asked.create_from
    if source is not None and branch not in call.unguarded.branches():
        yield Need(Action.BRANCH_CREATE, source, branch, reads=(source,))
    yield Need(Action.CHANGE, branch, mode=asked.mode)


def load(call: Call) -> Answer:
    """Load graph records as one commit: an NDJSON stream, JSON with `data` or `uri`, or multipart Arrow."""
    return _load(call, _source(call), uri=call.graph.uri)


def load_ndjson(call: Call) -> Answer:
    """Load an NDJSON stream as one commit."""
    if media_of(call) != NDJSON:
        raise MediaUnsupported(f"this route takes {NDJSON}")
    return _load(call, call.spool, uri=UNSET)


def media_of(call: Call) -> str:
    return call.headers.get("content-type", "").partition(";")[0].strip().lower()


def _source(call: Call) -> Any:
    asked: LoadRequest = call.body
    match media_of(call):
        case "application/x-ndjson":
            return call.spool
        case "multipart/mixed":
            assert call.spool is not None  # noqa: S101  only JSON bodies are not spooled
            return tables_in(call.spool, call.headers["content-type"])
        case _ if asked.uri is not None:
            assert call.served is not None  # noqa: S101
            return allowed_reference(asked.uri, call.graph.uri, call.served.load_from)
        case _ if asked.data is not None:
            return Lines(asked.data)
        case _:
            raise RequestInvalid("the body needs `data` or `uri`")


def _load(call: Call, source: Any, uri: Any) -> Answer:
    asked: LoadRequest = call.body
    branch = asked.branch or "main"
    with explained(call, branch), readable(call, source) as given:
        done = call.graph.load(
            given,
            mode=asked.mode,
            branch=branch,
            create_from=asked.create_from,
            message=asked.message,
            actor=call.actor,
            idempotency_key=call.idempotency_key(),
            timeout=call.bounds.load_seconds_max,
            progress=None if call.job is None else call.job.progress,
            options=Options(compatible=True) if isinstance(source, Lines) else None,
            violations=False,  # the caller could not read a file of this machine
        )
    commit = done.commit.id if done.commit else None
    return Answer(load_output(done, asked, call.actor, uri), commit=commit)


# --- the schema ----------------------------------------------------------------------------------------------------


def schema_needs(call: Call) -> Iterable[Need]:
    return (Need(Action.SCHEMA_APPLY, target_branch=call.body.branch or "main"),)


def plan_needs(call: Call) -> Iterable[Need]:
    return (Need(Action.READ, call.body.branch or "main"),)


def plan_schema(call: Call) -> Answer:
    """What applying a schema would do."""
    asked: SchemaRequest = call.body
    plan = call.graph.plan_schema(
        asked.schema_source, asked.branch or "main", allow_data_loss=asked.allow_data_loss
    )
    steps = [step.to_json() for step in plan.steps]
    return Answer({"supported": plan.supported, "step_count": len(steps), "steps": steps})


def apply_schema(call: Call) -> Answer:
    """Bring a schema into force, as one commit."""
    asked: SchemaRequest = call.body
    done = call.graph.apply_schema(
        asked.schema_source,
        asked.branch or "main",
        asked.allow_data_loss,
        message=asked.message,
        actor=call.actor,
        timeout=call.bounds.load_seconds_max,
    )
    commit = maybe_commit(done.commit)
    head = call.unguarded.snapshot(asked.branch or "main").commit
    content = {
        "uri": call.graph.uri,
        "supported": done.supported,
        "applied": done.applied,
        "step_count": len(done.steps),
        "graph_manifest_version": head.number,
        "steps": [step.to_json() for step in done.steps],
        "commit": commit,
    }
    return Answer(content, commit=commit.graph_commit_id if commit else None)
