"""What an engine has to do to be compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Params = Mapping[str, Any]
Rows = list[Any]  # of tuples or lists


class Unsupported(Exception):
    """The engine cannot do this; the report shows a dash."""


class Adapter(ABC):
    """An engine with an empty store in a folder of its own.

    A job's answer is the last column of its rows. Engines with a query language fill `queries` and answer by `rows`;
    others have a method for each job they can do, named after it.
    """

    queries: Mapping[str, str] = {}

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True, exist_ok=True)

    @property
    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def load(self, files: Path, form: str) -> None:
        """Fill the store from the files of a folder, `form` being parquet or ndjson; then it can be queried."""

    def reopen(self) -> None:  # noqa: B027 (most engines open what is there when they start)
        """Open what another process has loaded."""

    def prepare(self) -> None:  # noqa: B027 (most engines need nothing)
        """Build what is not part of loading: text indices, maintenance."""

    def rows(self, text: str, params: Params) -> Rows:  # noqa: ARG002 (for engines with a query language)
        raise Unsupported

    def ask(self, job: str, params: Params) -> list[Any]:
        if job in self.queries:
            return [row[-1] for row in self.rows(self.queries[job], params)]
        answer: Callable[..., list[Any]] | None = getattr(self, job, None)
        if answer is None:
            raise Unsupported
        return answer(**params)

    def close(self) -> None:  # noqa: B027
        """Let go of files."""
