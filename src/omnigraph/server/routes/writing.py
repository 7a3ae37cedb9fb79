"""Mutations, several writes as one commit, and schema changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from omnigraph.branch import WriteBlock
from omnigraph.errors import BranchNotFound, OmnigraphError, PreconditionFailed
from omnigraph.fingerprint import fingerprint
from omnigraph.lang.languages import is_file_text, query_name
from omnigraph.lang.query import ast
from omnigraph.lang.query.settings import PROCESS, SETTINGS
from omnigraph.model.names import MAIN
from omnigraph.outcomes import MergeConflicts
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.server.errors import RequestInvalid
from omnigraph.server.request import Answer, HttpCall, committed
from omnigraph.server.routes.versions import conflict_error
from omnigraph.statements import file_of, lone_statement, target_of, written_branch
from omnigraph.wire.answers import (
    AppliedOutput,
    ChangeOutput,
    PlanOutput,
    WriteOutput,
    maybe_commit,
)
from omnigraph.wire.requests import (
    MutateRequest,
    QueryRequest,
    SchemaRequest,
    WriteRequest,
    WriteStep,
)


def change_on(call: HttpCall) -> Iterable[Need]:
    """Changing the branch the request names; a statement about branches is authorised by its verb."""
    request = call.body
    if statement_of(request) is not None:
        return ()
    return (
        Need(
            Action.CHANGE,
            written_branch(_text_of(request), request.language, request.branch or MAIN),
        ),
    )


@contextmanager
def explained(call: HttpCall, branch: str) -> Iterator[None]:
    """Failures of a write, with details for their responses: the branch, and the kind of the type."""
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


def _kind_of(call: HttpCall, branch: str, type_name: str) -> str:
    try:
        found = call.unguarded.snapshot(branch).catalog.entity(type_name)
    except BranchNotFound:
        found = None
    return found.kind if found is not None else "node"


# --- mutations ---------------------------------------------------------------------------------------------------


def statement_of(
    request: QueryRequest | MutateRequest,
) -> ast.ShowSettings | ast.BranchStatement | None:
    """The statement of a request, which has no query; its text names its branches."""
    text = request.text if request.text is not None else request.query_source
    found = None if text is None else lone_statement(text, request.language)
    if isinstance(found, ast.BranchStatement) and request.branch not in (None, "main"):
        raise RequestInvalid("a statement about branches names them itself; leave `branch` out")
    return found


def _text_of(request: QueryRequest | MutateRequest) -> str:
    return (request.text if request.text is not None else request.query_source) or ""


def source_of(request: QueryRequest | MutateRequest) -> tuple[str, str]:
    """The text and the name of its query, under the field names of this or of older clients."""
    text = request.text if request.text is not None else request.query_source
    if text is None:
        raise RequestInvalid("the body needs `query`")
    name = request.name if request.name is not None else request.query_name
    return text, query_name(text, name, request.language)


def check_settings(text: str, request: QueryRequest) -> None:
    """Check the settings of a request: where its server runs queries, and with what, cannot be set."""
    lines = file_of(text).settings if is_file_text(text, request.language) else ()
    wanted = [*(request.settings or {}).items(), *((line.name, line.value) for line in lines)]
    for name, value in wanted:
        if name in SETTINGS and SETTINGS[name].scope == PROCESS and value is not None:
            message = f"setting `{name}` belongs to the process; a request cannot change it"
            raise RequestInvalid(message)
        if (name, value) == ("engine", "spark"):
            raise RequestInvalid("a server runs queries itself; setting `engine` must be local")


def mutate(call: HttpCall) -> Answer:
    """Run a mutation as one commit; the header `Idempotency-Key` makes it happen once."""
    return change(call, call.body, *source_of(call.body))


def change(call: HttpCall, request: MutateRequest, text: str, name: str) -> Answer:
    """Run the named mutation of a text, or the statement it is."""
    branch = written_branch(text, request.language, request.branch or MAIN)
    statement = statement_of(request)
    if isinstance(statement, ast.BranchStatement):
        branch = target_of(statement)
    with explained(call, branch), conflicts_in_words(call, branch):
        done = call.graph.mutate(
            text,
            request.params,
            None if statement else name,
            branch="main" if statement else branch,
            if_commit=call.if_commit,
            message=request.message,
            actor=call.actor,
            idempotency_key=call.idempotency_key(),
            language=request.language,
            dry_run=request.dry_run,
            timeout=call.seconds(call.bounds.write_seconds_max, request.timeout),
        )
    return committed(ChangeOutput.of(done, branch, name, call.actor), done.commit)


@contextmanager
def conflicts_in_words(call: HttpCall, target: str) -> Iterator[None]:
    """Conflicts of a merge, in the terms of the protocol."""
    try:
        yield
    except MergeConflicts as refused:
        raise conflict_error(call, refused.conflicts, target) from None


# --- several writes as one commit ------------------------------------------------------------------------------------


def write_needs(call: HttpCall) -> Iterable[Need]:
    """Changing the branch, in each way the steps do."""
    request: WriteRequest = call.body
    branch = request.branch or "main"
    yield Need(Action.CHANGE, branch)
    for mode in sorted({step.mode for step in request.steps if step.load is not None}):
        yield Need(Action.CHANGE, branch, mode=mode)


def write(call: HttpCall) -> Answer:
    """Run mutations and small loads in order, each seeing the ones before it, as one commit or not at all."""
    request: WriteRequest = call.body
    branch = request.branch or "main"
    with explained(call, branch):
        block = call.graph.branch(branch).write(
            request.message,
            actor=call.actor,
            if_commit=call.if_commit,
            idempotency_key=call.idempotency_key(),
            timeout=call.seconds(call.bounds.write_seconds_max, request.timeout),
            dry_run=request.dry_run,
        )
        with block:
            for number, step in enumerate(request.steps, 1):
                _take(block, step, number)
    results = [result.to_json() for result in block.results]
    commit = maybe_commit(block.commit)
    answer = WriteOutput(branch, call.actor, commit, block.replayed, results)
    return Answer(answer, commit=commit.graph_commit_id if commit else None)


def _take(block: WriteBlock, step: WriteStep, number: int) -> None:
    if (step.text is None) == (step.load is None):
        raise RequestInvalid(f"step {number} needs `query` or `load`")
    if step.text is not None:
        block.mutate(step.text, step.params, step.name)
    else:
        block.load(step.load, step.mode, digest=fingerprint(step.load))


# --- the schema ----------------------------------------------------------------------------------------------------


def plan_schema(call: HttpCall) -> Answer:
    """The changes applying a schema would make."""
    request: SchemaRequest = call.body
    plan = call.graph.plan_schema(
        request.text, request.branch or "main", allow_data_loss=request.allow_data_loss
    )
    return Answer(PlanOutput.of(plan))


def apply_schema(call: HttpCall) -> Answer:
    """Apply a schema as one commit."""
    request: SchemaRequest = call.body
    done = call.graph.apply_schema(
        request.text,
        request.branch or "main",
        request.allow_data_loss,
        message=request.message,
        actor=call.actor,
        dry_run=request.dry_run,
        timeout=call.bounds.load_seconds_max,
    )
    head = call.unguarded.snapshot(request.branch or "main")
    content = AppliedOutput.of(done, call.graph.uri, head)
    return committed(content, done.commit)
