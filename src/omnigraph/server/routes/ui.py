"""The explorer: the pages of a built single-page application, and how to get it if it is not built."""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath

from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.server.request import Answer, HttpCall

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
        "`/docs` shows the routes that work without it."
    )


class PageNotFound(OmnigraphError):
    """The file does not exist in the explorer."""

    code, kind = "page_not_found", Kind.NOT_FOUND
    default_help = "Start from `/ui`."


def index(call: HttpCall) -> Answer:
    """The explorer."""
    return _answer(call, INDEX, "no-cache")


def page(call: HttpCall) -> Answer:
    """A file of the explorer; every other path below /ui is the explorer itself, which reads the path."""
    name = PurePosixPath(call.path["path"])
    if not _is_inside(name):
        raise PageNotFound("page not found")
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


def _answer(call: HttpCall, name: str, keeping: str) -> Answer:
    files = StaticFiles(directory=BUILT, check_dir=False)
    try:
        path, found = files.lookup_path(name)
    except (OSError, ValueError):
        found = None
    if found is None or not stat.S_ISREG(found.st_mode):
        require_built()
        raise PageNotFound("file not found")
    headers = [(key.encode(), value.encode("latin-1")) for key, value in call.headers.items()]
    response = files.file_response(path, found, {"headers": headers})
    response.headers.update({**PROTECTIVE, "Cache-Control": keeping})
    return Answer(app=GZipMiddleware(response))
