"""Inputs and outputs of a pipeline run, as OpenLineage events: JSON lines for lineage collectors.

A run has an event when it starts and one when it completes or fails, under one id. Inputs are files, addresses and
tables of databases, with passwords removed from their addresses; outputs are the types of a branch.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from omnigraph import __version__
from omnigraph.errors import OmnigraphError, OptionInvalid
from omnigraph.pipeline.spec import PipelineSpec, SourceSpec

if TYPE_CHECKING:
    from omnigraph.outcomes import LoadResult

PRODUCER = f"urn:omnigraph:{__version__}"
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACETS = "https://openlineage.io/spec/facets"
ERROR_FACET = f"{FACETS}/1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet"
OUTPUT_FACET = (
    f"{FACETS}/1-0-2/OutputStatisticsOutputDatasetFacet.json"
    "#/$defs/OutputStatisticsOutputDatasetFacet"
)
PROPERTIES = re.compile(r"[;?(&#]")
NAME = re.compile(r"^[\w.,:$\[\]-]*")


@dataclass(slots=True)
class PipelineRun:
    """One run, and the file its events are appended to."""

    file: Path
    graph: str
    job: str
    spec: PipelineSpec
    run: str = field(default_factory=lambda: str(uuid.uuid4()))
    loaded: LoadResult | None = None  # what it published
    failure: str | None = None  # why it failed

    def tell(self, kind: str, **facets: Any) -> None:
        """Append an event."""
        event = {
            "eventType": kind,
            "eventTime": datetime.now(UTC).isoformat(),
            "run": {"runId": self.run, "facets": facets},
            "job": {"namespace": self.graph, "name": self.job},
            "inputs": [_input(source) for source in self.spec.sources],
            "outputs": self._outputs(),
            "producer": PRODUCER,
            "schemaURL": SCHEMA,
        }
        try:
            with self.file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(event, ensure_ascii=False) + "\n")
        except OSError as failure:
            raise OptionInvalid(f"lineage cannot be written to {self.file}: {failure}") from None

    def end(self) -> None:
        """Append the one event of its end."""
        if self.failure is None:
            self.tell("COMPLETE")
            return
        facet = {"_producer": PRODUCER, "_schemaURL": ERROR_FACET}
        facet |= {"message": self.failure, "programmingLanguage": "python"}
        self.tell("FAIL", errorMessage=facet)

    def _outputs(self) -> list[dict[str, Any]]:
        if self.loaded is None:
            return []
        rows = {**self.loaded.nodes, **self.loaded.edges}
        return [self._output(name, count) for name, count in rows.items()]

    def _output(self, name: str, rows: int) -> dict[str, Any]:
        counted = {"_producer": PRODUCER, "_schemaURL": OUTPUT_FACET, "rowCount": rows}
        return {
            "namespace": self.graph,
            "name": f"{self.spec.branch}.{name}",
            "outputFacets": {"outputStatistics": counted},
        }


@contextmanager
def lineage(
    file: str | os.PathLike[str] | None, graph: str, job: str, spec: PipelineSpec
) -> Iterator[PipelineRun | None]:
    """Report the start of a run, and its end: the caller sets what it loaded, and a failure that is no exception."""
    if file is None:
        yield None
        return
    run = PipelineRun(Path(file), graph, job, spec)
    run.tell("START")
    try:
        yield run
    except BaseException as error:
        run.failure = error.message if isinstance(error, OmnigraphError) else type(error).__name__
        raise
    finally:
        run.end()


def _database(url: str) -> tuple[str, str, str]:
    """The system, host and database of a JDBC address, without credentials: each driver has its own syntax.

    They lie before an `@` or among properties. Where an `@` may belong to a password, only the system is certain.
    """
    system, _, rest = url.removeprefix("jdbc:").partition(":")
    place, *properties = PROPERTIES.split(rest, maxsplit=1)
    if any("@" in text for text in properties):
        return system, "", ""
    _, user, place = place.rpartition("@")
    file, slashes, server = place.rpartition("//")
    if not slashes and not user:
        return system, "", file or server
    host, _, path = server.partition("/")
    return system, _plain(host), _plain(path).partition(":")[0]


def _plain(text: str) -> str:
    """A name up to the first mark that names do not have."""
    return NAME.findall(text)[0]  # type: ignore[no-any-return]


def _input(source: SourceSpec) -> dict[str, str]:
    """A data set by the conventions of OpenLineage: where it is, and its name there."""
    if source.jdbc is not None:
        system, host, database = _database(str(source.jdbc.get("url", "")))
        table = str(source.jdbc.get("dbtable", "query"))
        return {
            "namespace": f"{system}://{host}",
            "name": ".".join(part for part in (database, table) if part),
        }
    path = source.records or source.path or ""
    address = urlsplit(path)
    if address.scheme and address.netloc:
        return {
            "namespace": f"{address.scheme}://{address.netloc.rpartition('@')[2]}",
            "name": address.path.lstrip("/"),
        }
    return {"namespace": "file", "name": path}
