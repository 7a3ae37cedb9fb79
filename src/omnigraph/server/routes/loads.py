"""Loads as one commit: of graph records and tables by type, and of files of rows of one type."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from omnigraph.errors import OmnigraphError
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.server.bodies import Spool, media_of
from omnigraph.server.errors import MediaUnsupported, RequestInvalid
from omnigraph.server.load_sources import BodyLines, allowed_reference, readable, tables_in
from omnigraph.server.request import Answer, HttpCall, committed
from omnigraph.server.routes.writing import explained
from omnigraph.values.spelling import to_json
from omnigraph.wire.answers import CheckedOutput, LoadOutput, PreviewColumn, PreviewOutput, loaded
from omnigraph.wire.contracts import NDJSON
from omnigraph.wire.requests import ImportRequest, LoadRequest, PreviewRequest
from omnigraph.write.input.options import Options
from omnigraph.write.input.preview import preview, records

PREVIEW_ROWS = 100
NAME = "upload"


def load_needs(call: HttpCall) -> Iterator[Need]:
    """Changing the branch; and creating it, if it has to be forked first from a readable one."""
    request: LoadRequest | ImportRequest = call.body
    branch, source = request.branch or "main", request.create_from
    if source is not None and branch not in call.unguarded.branches():
        yield Need(Action.BRANCH_CREATE, source, branch, reads=(source,))
    yield Need(Action.CHANGE, branch, mode=request.mode)


def load(call: HttpCall) -> Answer:
    """Load graph records as one commit: an NDJSON stream, JSON with `data` or `uri`, or multipart Arrow."""
    return _load(call, _source(call), uri=call.graph.uri)


def load_ndjson(call: HttpCall) -> Answer:
    """Load an NDJSON stream as one commit."""
    if media_of(call.headers) != NDJSON:
        raise MediaUnsupported(f"this route accepts {NDJSON}")
    return _load(call, call.spool, uri=UNSET)


def _source(call: HttpCall) -> Any:
    request: LoadRequest = call.body
    match media_of(call.headers):
        case "application/x-ndjson":
            return call.spool
        case "multipart/mixed":
            assert call.spool is not None  # noqa: S101  only JSON bodies are not spooled
            return tables_in(call.spool, call.headers["content-type"])
        case _ if request.uri is not None:
            assert call.served is not None  # noqa: S101
            return allowed_reference(request.uri, call.graph.uri, call.served.load_from)
        case _ if request.data is not None:
            return BodyLines(request.data)
        case _:
            raise RequestInvalid("the body needs `data` or `uri`")


def _load(call: HttpCall, source: Any, uri: Any) -> Answer:
    request: LoadRequest = call.body
    with explained(call, request.branch or "main"), readable(call, source) as given:
        return _loaded(
            call,
            request,
            given,
            uri,
            idempotency_key=call.idempotency_key(),
            dry_run=request.dry_run,
            progress=None if call.job is None else call.job.progress,
            options=Options(compatible=True) if isinstance(source, BodyLines) else None,
            violations=False,  # the caller could not read a file on this machine
        )


def _loaded(call: HttpCall, request: LoadRequest, source: Any, uri: Any, **more: Any) -> Answer:
    done = call.graph.load(
        source,
        mode=request.mode,
        branch=request.branch or "main",
        create_from=request.create_from,
        message=request.message,
        actor=call.actor,
        timeout=call.bounds.load_seconds_max,
        **more,
    )
    return committed(LoadOutput.of(done, request, call.actor, uri), done.commit)


# --- files -----------------------------------------------------------------------------------------------------------


def preview_file(call: HttpCall) -> Answer:
    """The columns and the first rows of a file, as a load would read them."""
    request: PreviewRequest = call.body
    with _file(call, request.format) as path:
        found = preview(str(path), PREVIEW_ROWS, _spool(call).room)
    columns = [PreviewColumn(name, kind) for name, kind in found.columns.items()]
    return Answer(PreviewOutput(columns, [to_json(r) for r in found.rows], found.graph_records))


def import_file(call: HttpCall) -> Answer:
    """Load a file of rows of one type as one commit; with `check`, only report whether it could be loaded."""
    request: ImportRequest = call.body
    options = Options(columns=_columns(request.columns), unpacked_bytes_max=_spool(call).room)
    with _file(call, request.format) as path:
        source = _rows_in(request, path, options)
        if request.check:
            return _checked(call, request, source, options)
        return _imported(call, request, source, options)


def _rows_in(request: ImportRequest, path: Path, options: Options) -> Any:
    """The rows to load; the members of JSON rows are renamed, as columns are by their reader."""
    if request.type is None:
        return str(path)
    if request.format != "ndjson" or not options.columns:
        return {request.type: str(path)}
    names = dict(options.columns)
    return {request.type: (_renamed(record, names) for record in records(str(path)))}


def _renamed(record: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): v for name, v in record.items() if names.get(name) != ""}


def _checked(call: HttpCall, request: ImportRequest, source: Any, options: Options) -> Answer:
    found = call.graph.load(
        source,
        request.mode,
        request.branch or "main",
        request.create_from,
        options=options,
        dry_run=True,
        violations=False,
    )
    return Answer(CheckedOutput(loaded(found.nodes), loaded(found.edges)))


def _imported(call: HttpCall, request: ImportRequest, source: Any, options: Options) -> Answer:
    wanted = LoadRequest(
        branch=request.branch,
        create_from=request.create_from,
        mode=request.mode,
        message=request.message,
    )
    with explained(call, request.branch or "main"):
        return _loaded(call, wanted, source, UNSET, options=options)


def _columns(text: str | None) -> tuple[tuple[str, str], ...]:
    """From a JSON object of names in the file to the properties they fill; null leaves a column out."""
    if text is None:
        return ()
    try:
        given = msgspec.json.decode(text, type=dict[str, str | None])
    except msgspec.MsgspecError as error:
        raise RequestInvalid(f"columns= must be a JSON object of strings: {error}") from None
    return tuple((name, target or "") for name, target in given.items())


def _spool(call: HttpCall) -> Spool:
    assert call.spool is not None  # noqa: S101  bodies of these routes are always spooled
    return call.spool


@contextmanager
def _file(call: HttpCall, format: str) -> Iterator[Path]:
    """The body as a file; its errors do not reveal the path where it was stored."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-import-") as folder:
        path = Path(folder) / f"{NAME}.{format}"
        with path.open("wb") as file:
            shutil.copyfileobj(_spool(call).file, file)
        try:
            yield path
        except OmnigraphError as error:
            error.message = _without(error.message, f"{folder}/")
            error.details = _without(error.details, f"{folder}/")
            raise


def _without(value: Any, folder: str) -> Any:
    """The same, without the folder in names of files."""
    match value:
        case str():
            return value.replace(folder, "")
        case dict():
            return {name: _without(member, folder) for name, member in value.items()}
        case list():
            return [_without(member, folder) for member in value]
        case _:
            return value
