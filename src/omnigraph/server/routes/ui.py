"""The explorer: the pages of a built single-page application, and how to get it where it is not built."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.server.calls import Answer, Call

BUILT = Path(__file__).parents[1] / "ui"
INDEX = "index.html"
FOREVER = (
    "public, max-age=31536000, immutable"  # the name of a file in assets/ changes with its content
)
POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
PROTECTIVE = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class ExplorerMissing(OmnigraphError):
    """The explorer was not built into this installation."""

    code, kind = "explorer_missing", Kind.NOT_FOUND
    default_help = (
        "Packages from PyPI have it. In a source tree, install Node.js and run `make explorer`; "
        "`/docs` shows the routes that are there without it."
    )


class PageNotFound(OmnigraphError):
    """The explorer has no such file."""

    code, kind = "page_not_found", Kind.NOT_FOUND
    default_help = "Start from `/ui`."


@dataclass(frozen=True, slots=True)
class File:
    """A built file, ready to be sent."""

    content: bytes
    media: str
    packed: bytes | None  # gzip, where that is smaller


@lru_cache(maxsize=256)
def _file(path: Path, _changed: int) -> File:
    import gzip

    content = path.read_bytes()
    media = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if media.startswith("text/") or media in ("application/javascript", "application/json"):
        media += "; charset=utf-8"
    packed = gzip.compress(content, 9, mtime=0)
    return File(content, media, packed if len(packed) < len(content) else None)


def index(call: Call) -> Answer:
    """The explorer."""
    return _answer(call, INDEX, "no-cache")


def page(call: Call) -> Answer:
    """A file of the explorer; every other path below /ui is the explorer itself, which reads the path."""
    name = PurePosixPath(call.path["path"])
    if not _is_inside(name):
        raise PageNotFound("there is no such page")
    if name.parts[:1] == ("assets",):
        return _answer(call, str(name), FOREVER)
    found = (BUILT / name).is_file()
    return _answer(call, str(name) if found else INDEX, "no-cache")


def require_built() -> None:
    """Raise unless there is an explorer to serve."""
    if not (BUILT / INDEX).is_file():
        raise ExplorerMissing("the explorer is not built")


def _is_inside(name: PurePosixPath) -> bool:
    return not name.is_absolute() and not {"..", "\0"} & set(name.parts) and "\0" not in str(name)


def _answer(call: Call, name: str, keeping: str) -> Answer:
    path = BUILT / name
    try:
        found = _file(path, path.stat().st_mtime_ns)
    except (OSError, ValueError):
        require_built()
        raise PageNotFound("there is no such file") from None
    headers = {**PROTECTIVE, "Cache-Control": keeping, "Vary": "Accept-Encoding"}
    if found.packed is not None and "gzip" in call.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Answer(media=found.media, headers=headers, raw=found.packed)
    return Answer(media=found.media, headers=headers, raw=found.content)
