"""Files of rows of one type: looked at first, checked, then loaded as one commit."""

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
from omnigraph.read.result import to_json
from omnigraph.server.bodies import Spool
from omnigraph.server.calls import Answer, Call
from omnigraph.server.errors import RequestInvalid
from omnigraph.server.routes.writing import explained
from omnigraph.server.wire import (
    CheckedOutput,
    ImportRequest,
    LoadRequest,
    PreviewColumn,
    PreviewOutput,
    PreviewRequest,
    load_output,
    loaded,
)
from omnigraph.write.input.options import Options
from omnigraph.write.input.preview import preview, records

PREVIEW_ROWS = 100
NAME = "upload"


def preview_file(call: Call) -> Answer:
    """The columns and the first rows of a file, as a load would read them."""
    asked: PreviewRequest = call.body
    with _file(call, asked.format) as path:
        found = preview(str(path), PREVIEW_ROWS, _spool(call).room)
    columns = [PreviewColumn(name, kind) for name, kind in found.columns.items()]
    return Answer(PreviewOutput(columns, [to_json(r) for r in found.rows], found.graph_records))


def import_file(call: Call) -> Answer:
    """Load a file of rows of one type as one commit; with `check`, only say whether it could be loaded."""
    asked: ImportRequest = call.body
    options = Options(columns=_columns(asked.columns), unpacked_bytes_max=_spool(call).room)
    with _file(call, asked.format) as path:
        source = _source(asked, path, options)
        if asked.check:
            return _checked(call, asked, source, options)
        return _loaded(call, asked, source, options)


def _source(asked: ImportRequest, path: Path, options: Options) -> Any:
    """What to load; the members of JSON rows are renamed on the way, as columns are by their reader."""
    if asked.type is None:
        return str(path)
    if asked.format != "ndjson" or not options.columns:
        return {asked.type: str(path)}
    names = dict(options.columns)
    return {asked.type: (_renamed(record, names) for record in records(str(path)))}


def _renamed(record: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): v for name, v in record.items() if names.get(name) != ""}


def _checked(call: Call, asked: ImportRequest, source: Any, options: Options) -> Answer:
    branch = asked.branch or "main"
    if asked.create_from is not None and branch not in call.unguarded.branches():
        branch = asked.create_from
    found = call.graph.check_load(source, asked.mode, branch, options=options)
    return Answer(CheckedOutput(loaded(found.nodes), loaded(found.edges)))


def _loaded(call: Call, asked: ImportRequest, source: Any, options: Options) -> Answer:
    branch = asked.branch or "main"
    with explained(call, branch):
        done = call.graph.load(
            source,
            mode=asked.mode,
            branch=branch,
            create_from=asked.create_from,
            message=asked.message,
            actor=call.actor,
            timeout=call.bounds.load_seconds_max,
            options=options,
        )
    wanted = LoadRequest(branch=asked.branch, create_from=asked.create_from, mode=asked.mode)
    commit = done.commit.id if done.commit else None
    return Answer(load_output(done, wanted, call.actor, UNSET), commit=commit)


def _columns(text: str | None) -> tuple[tuple[str, str], ...]:
    """From a JSON object: names in the file, and the properties they fill; null leaves a column out."""
    if text is None:
        return ()
    try:
        given = msgspec.json.decode(text, type=dict[str, str | None])
    except msgspec.MsgspecError as error:
        raise RequestInvalid(f"columns= is a JSON object of texts: {error}") from None
    return tuple((name, target or "") for name, target in given.items())


def _spool(call: Call) -> Spool:
    assert call.spool is not None  # noqa: S101  bodies of these routes are always spooled
    return call.spool


@contextmanager
def _file(call: Call, format: str) -> Iterator[Path]:
    """The body as a file of its own; what goes wrong with it is told without saying where it was kept."""
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


def _without(told: Any, folder: str) -> Any:
    """The same, with files named as they were sent."""
    match told:
        case str():
            return told.replace(folder, "")
        case dict():
            return {name: _without(value, folder) for name, value in told.items()}
        case list():
            return [_without(value, folder) for value in told]
        case _:
            return told
