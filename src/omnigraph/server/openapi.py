"""The description of the routes, generated from their table: a document for programs and a page for people."""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

import omnigraph
from omnigraph.server.request import STREAMED
from omnigraph.server.routing import Route, RouteWork
from omnigraph.wire.contracts import IF_COMMIT

ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["error", "error_code", "kind", "help", "details", "retryable"],
    "properties": {
        "error": {"type": "string"},
        "code": {"type": "string"},
        "error_code": {"type": "string"},
        "kind": {"type": "string"},
        "help": {"type": "string"},
        "span": {"type": ["object", "null"]},
        "details": {"type": "object"},
        "retryable": {"type": "boolean"},
    },
}


def document(routes: Sequence[Route], *, authenticated: bool) -> dict[str, Any]:
    """The OpenAPI document of a table of routes."""
    routes = [route for route in routes if not (route.page or route.protocol)]
    shapes = [s for r in routes for s in (r.body, r.query, r.answer) if s is not None]
    unique = list(dict.fromkeys(shapes))
    refs, components = msgspec.json.schema_components(
        unique, ref_template="#/components/schemas/{name}"
    )
    named = dict(zip(unique, refs, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operation = _operation(route, named, components, authenticated=authenticated)
        paths.setdefault(route.full_path, {})[route.method.lower()] = operation
    security = {"bearer_token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "omnigraph", "version": omnigraph.__version__},
        "paths": paths,
        "components": {
            "schemas": {**components, "ErrorOutput": ERROR_SCHEMA},
            **({"securitySchemes": security} if authenticated else {}),
        },
    }


def _operation(
    route: Route, named: dict[Any, Any], components: dict[str, Any], *, authenticated: bool
) -> dict[str, Any]:
    summary = _summary(route)
    found: dict[str, Any] = {
        "operationId": f"cluster_{route.handler.__name__}_{route.method.lower()}{_slug(route)}",
        "summary": summary,
        "parameters": list(_parameters(route, named, components)),
        "responses": _responses(route, named),
    }
    if route.verb is not None:
        found["description"] = route.verb.about
    if route.body is not None:
        found["requestBody"] = _request_body(route, named)
    if route.successor is not None:
        found["deprecated"] = True
    if authenticated and not route.public:
        found["security"] = [{"bearer_token": []}]
    return found


def _summary(route: Route) -> str:
    return (inspect.getdoc(route.handler) or "").partition("\n")[0]


def _slug(route: Route) -> str:
    return re.sub(r"[^a-z]+", "_", route.path.lower()).rstrip("_")


def _parameters(
    route: Route, named: dict[Any, Any], components: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", route.full_path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    shape = route.query if route.work is not RouteWork.LOAD else route.body
    if shape is not None:
        schema = components[named[shape]["$ref"].rsplit("/", 1)[1]]
        needed = schema.get("required", [])
        for name, kind in schema["properties"].items():
            if route.work is RouteWork.LOAD and name in ("data", "uri"):
                continue
            yield {"name": name, "in": "query", "required": name in needed, "schema": kind}
    if route.conditional:
        yield {"name": IF_COMMIT, "in": "header", "required": True, "schema": {"type": "string"}}
    if route.work in (RouteWork.WRITE, RouteWork.LOAD) and route.body is not None:
        yield {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}


def _request_body(route: Route, named: dict[Any, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": named[route.body]}}
    streams = {media: {"schema": {"type": "string", "format": "binary"}} for media in STREAMED}
    if route.streams:
        media = STREAMED[0] if route.path == "/load/ndjson" else "application/octet-stream"
        content = {media: streams[STREAMED[0]]}
    elif route.work is RouteWork.LOAD:
        content |= streams
    return {"required": bool(route.work is RouteWork.LOAD), "content": content}


def _responses(route: Route, named: dict[Any, Any]) -> dict[str, Any]:
    schema = named[route.answer] if route.answer is not None else {}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorOutput"}}}
    good = {"description": _summary(route), "content": {"application/json": {"schema": schema}}}
    return {str(route.status): good, "default": {"description": "A failure.", "content": error}}


def page(routes: Sequence[Route]) -> bytes:
    """All routes on one self-contained page."""
    rows = "\n".join(_row(route) for route in routes)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>omnigraph: HTTP routes</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; }}
td, th {{ text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }}
code {{ font-size: .95em; }} .old {{ opacity: .55; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #111; color: #ddd; }} a {{ color: #8bf; }} }}
</style></head><body>
<h1>omnigraph {html.escape(omnigraph.__version__)}</h1>
<p>All routes of this server. Programs read <a href="/openapi.json">/openapi.json</a>.</p>
<table><thead><tr><th>Route</th><th>What it does</th><th>Fields</th><th>Permission</th></tr></thead>
<tbody>
{rows}
</tbody></table></body></html>
""".encode()


def _row(route: Route) -> str:
    shape = route.body or route.query
    names = [f.encode_name for f in msgspec.structs.fields(shape)] if shape is not None else []
    cells = (
        f"<code>{route.method} {html.escape(route.full_path)}</code>",
        html.escape(_summary(route)),
        html.escape(", ".join(names)),
        html.escape(str(route.action or "none")),
    )
    mark = ' class="old"' if route.successor else ""
    return f"<tr{mark}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
