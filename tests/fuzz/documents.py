"""Targets that read what people, operators and other programs send: requests, files of settings, answers."""

from __future__ import annotations

import base64
import functools
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import urllib3

from omnigraph.cli.context import params_of
from omnigraph.config import FILE_NAME, load_config
from omnigraph.errors import OmnigraphError
from omnigraph.merge.conflicts import ChosenValue, decisions, value_of
from omnigraph.pipeline.spec import read_spec
from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.cases import parse_cases
from omnigraph.policy.cedar import compile_bundle
from omnigraph.remote import transport
from omnigraph.server.access import TOKENS_JSON, Identity
from omnigraph.server.app import Server
from omnigraph.server.bodies import BodyLimits, Unpacker, decode, new_spool
from omnigraph.server.load_sources import allowed_reference, tables_in
from omnigraph.server.request import read_query
from omnigraph.server.routes import ROUTES, feed
from omnigraph.server.settings import read_settings
from tests.fuzz.ours import only_ours
from tests.server import world
from tests.support.loops import run_apart
from tests.unit.write import test_load_records as loading

LIMITS = BodyLimits(1 << 20, "body_bytes_max", 100, 1.0)
ENCODINGS = ("", "gzip", "zstd", "deflate")
MEDIA = (
    "application/json",
    "application/x-ndjson",
    'multipart/mixed; boundary="b"',
    "text/plain",
)
BODIES = tuple(sorted({r.body for r in ROUTES if r.body is not None}, key=lambda b: b.__name__))
QUERIES = tuple(sorted({r.query for r in ROUTES if r.query is not None}, key=lambda q: q.__name__))


# --- requests --------------------------------------------------------------------------------------------------------


def http_body(data: bytes) -> None:
    """Bodies as every route takes them."""
    if data:
        shape = BODIES[data[0] % len(BODIES)]
        found = decode(data[1:], shape, {"content-type": "application/json"})
        assert isinstance(found, shape)


def query_string(data: bytes) -> None:
    """Query strings as every route takes them."""
    only_ours(*(functools.partial(read_query, data, shape) for shape in QUERIES))


def packed_body(data: bytes) -> None:
    """Compressed bodies: bounded, whatever they say they are."""
    if not data:
        return
    unpacker = Unpacker(ENCODINGS[data[0] % len(ENCODINGS)], LIMITS)
    made = sum(len(piece) for piece in unpacker.feed(data[1:]))
    assert made <= LIMITS.bytes_max
    unpacker.finish()


def multipart(data: bytes) -> None:
    """Tables and lines in parts."""
    spool = new_spool({}, LIMITS)
    try:
        spool.write(data)
        spool.rewind()
        for part in tables_in(spool, MEDIA[2]).values():
            if isinstance(part, pa.Table):
                part.validate(full=True)
                part.to_pylist()
            else:
                part.read()
    finally:
        spool.close()


def feed_cursor(data: bytes) -> None:
    """Cursors and page tokens, with and without a check that fits."""
    text = data.decode("utf-8", "replace")
    sound = base64.urlsafe_b64encode(data + feed._check(data)).decode()
    only_ours(
        *(functools.partial(feed.position_of, t, "cursor", "g", "main", "f") for t in (text, sound))
    )


def load_reference(data: bytes) -> None:
    """Addresses: what is allowed lies below what is allowed."""
    text = data.decode("utf-8", "surrogateescape")
    found = allowed_reference(text, "s3://bucket/graph", ["s3://other/in"])
    assert found.startswith(("s3://bucket/graph/uploads/", "s3://other/in/"))
    assert ".." not in found.split("/")


@functools.cache
def _server() -> Server:
    server, _ = world.build(Path(tempfile.mkdtemp(prefix="omnigraph-fuzz-")))
    return server


def http_request(data: bytes) -> None:
    """Whole requests of somebody who may only read: a route, a query string and a body from the bytes."""
    head, _, body = data.partition(b"\n")
    path, _, query = head.partition(b"?")
    if not path:
        return
    route = ROUTES[path[0] % len(ROUTES)]
    raw = route.full_path.encode().replace(b"{graph_id}", b"alpha") + path[1:]
    scope = {
        "type": "http",
        "method": route.method,
        "path": raw.decode("latin-1"),
        "raw_path": raw,
        "query_string": query,
        "headers": [
            (b"authorization", f"Bearer {world.TOKENS['reader']}".encode()),
            (b"content-type", MEDIA[len(body) % len(MEDIA)].encode()),
            (b"omnigraph-if-graph-commit", query[:20]),
        ][: 3 if route.conditional else 2],
    }
    status, answer = run_apart(lambda: _exchange(scope, body))
    assert status < 500, (status, answer)
    if status >= 400 and route.method != "HEAD":
        assert json.loads(answer)["error_code"]


async def _exchange(scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    try:
        await _server()(scope, receive, send)
    except OmnigraphError:  # an answer that had begun is broken off
        assert sent
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


# --- documents -----------------------------------------------------------------------------------------------------


def resolutions(data: bytes) -> None:
    """Documents that settle conflicts."""
    given = _json(data)
    if not isinstance(given, dict):
        return
    merge = msgspec.convert(given, _Settling)
    found = decisions(merge.strategy, merge.resolutions)
    kind = loading.CATALOG.nodes["Thing"]
    for (_, _, name), decided in found.rows.items():
        if isinstance(decided, ChosenValue) and name is not None:
            only_ours(functools.partial(value_of, decided, kind, name))


class _Settling(msgspec.Struct):
    strategy: str | dict[str, str] | None = None
    resolutions: list[dict[str, Any]] | None = None


def _json(data: bytes) -> Any:
    try:
        given = msgspec.json.decode(data)
        msgspec.convert(given, _Settling)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return given


def yaml_documents(data: bytes) -> None:
    """Files people write: pipelines, policies, their cases, settings of servers and of a person."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-fuzz-") as folder:
        file = Path(folder) / FILE_NAME
        file.write_bytes(data)
        text = data.decode("utf-8", "replace")
        only_ours(
            lambda: read_spec(file),
            lambda: read_settings(file),
            lambda: load_config({"OMNIGRAPH_HOME": folder}),
            lambda: compile_bundle(parse_bundle(text)),
            lambda: parse_cases(text),
        )


def token_file(data: bytes) -> None:
    """Actors and tokens, and parameters on the command line."""
    text = data.decode("utf-8", "replace")
    only_ours(
        lambda: Identity(environment={TOKENS_JSON: text}), lambda: params_of(text.lstrip("@"))
    )


def error_answer(data: bytes) -> None:
    """What a client makes of any answer that is not one of ours."""
    answer = urllib3.HTTPResponse(
        io.BytesIO(data), {"Retry-After": "soon"}, 500, preload_content=False
    )
    failure = transport._failure(answer)
    assert isinstance(failure, OmnigraphError)
    assert transport.RETRY.pause(1, failure) >= 0
    transport.decoded(answer, dict)


TARGETS = (
    http_body,
    query_string,
    packed_body,
    multipart,
    feed_cursor,
    load_reference,
    http_request,
    resolutions,
    yaml_documents,
    token_file,
    error_answer,
)
