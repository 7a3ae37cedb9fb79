"""Results of a served graph, streamed or received as a whole, with the interface of local ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

import pyarrow as pa

from omnigraph.merge.diff import Diff, RowDiff
from omnigraph.model.catalog import Catalog
from omnigraph.model.columns import SCALARS, one_array
from omnigraph.model.frozen import frozen
from omnigraph.read.blobs import Blob
from omnigraph.read.explain import Explanation
from omnigraph.read.result import Result
from omnigraph.read.rows import Rows
from omnigraph.remote.transport import Answer, HttpRequest, NotServed, RemoteFailure, Transport
from omnigraph.wire.answers import DiffOutput


class RemoteResult(Result):
    """The rows of a read on a server, as received."""

    def __init__(self, table: pa.Table, commit: str, plan: Mapping[str, Any] | None = None) -> None:
        super().__init__((), Rows(table.num_rows), commit)
        self._table = table
        self._plan = plan

    @property
    def columns(self) -> list[str]:
        return list(self._table.column_names)

    @property
    def types(self) -> list[Any]:
        """The type of each column, as far as Arrow has it."""
        return [_word(field.type) for field in self._table.schema]

    @cached_property
    def _arrays(self) -> list[pa.Array]:
        return [one_array(column) for column in self._table.columns]

    def explain(self) -> Explanation:
        return super().explain() if self._plan is None else RemoteExplanation(self._plan)


def received(columns: list[str], types: list[str], rows: list[dict[str, Any]]) -> pa.Table:
    """Rows received as JSON, cast to the types of their columns."""
    kinds = {str(scalar): kind for scalar, kind in SCALARS.items()}
    arrays = []
    for name, word in zip(columns, types, strict=True):
        array = pa.array([row[name] for row in rows])
        kind = kinds.get(word.removesuffix("?"))
        arrays.append(array if kind is None else array.cast(kind))
    return pa.Table.from_arrays(arrays, names=columns)


WORDS = {kind: str(scalar) for scalar, kind in SCALARS.items()}


def _word(kind: pa.DataType) -> str:
    """The name of an Arrow type in the schema language."""
    if pa.types.is_fixed_size_list(kind):
        return f"Vector({kind.list_size})"
    if pa.types.is_list(kind):
        return f"[{_word(kind.value_type)}]"
    if pa.types.is_struct(kind):
        names = set(kind.names)
        return "Path" if {"nodes", "edges"} <= names else "Edge" if "from" in names else "Node"
    return WORDS.get(kind, str(kind))


class RemoteExplanation(Explanation):
    """The plan of a query, as reported by the server."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._plan = dict(plan)
        self._text = str(self._plan.pop("text", ""))

    def to_json(self) -> dict[str, Any]:
        return self._plan

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


@frozen
class RemoteSnapshot:
    """The tables of a state, without their rows."""

    commit_id: str
    branch: str
    rows: Mapping[tuple[str, str], int]  # by kind and type name
    schema: Callable[[], str]  # fetches its text

    @property
    def catalog(self) -> Catalog:
        """The types in force."""
        from omnigraph.lang.schema import catalog_of, compile_schema

        return catalog_of(compile_schema(self.schema()))


@frozen
class RemoteDiff(Diff):
    """The difference between two states, as computed by a server; of very many rows, the first."""

    answer: DiffOutput = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, answer: DiffOutput) -> RemoteDiff:
        schema = tuple(answer.schema)
        return cls(answer.from_commit, answer.to_commit, schema=schema, answer=answer)

    @property
    def truncated(self) -> bool:
        """Whether there are more rows than were sent."""
        return self.answer.truncated

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        return self.answer.counts

    @property
    def is_empty(self) -> bool:
        return not self.schema and not self.counts

    def __iter__(self) -> Iterator[RowDiff]:
        return iter(self.answer.rows)

    def to_arrow(self) -> dict[str, pa.Table]:
        raise NotServed("to_arrow is not available through a server: it sends changed cells only")


# --- blobs -------------------------------------------------------------------------------------------------------


@frozen
class RemoteBytes:
    """The bytes of a blob on a server, at one commit."""

    http: Transport
    asked: Mapping[str, Any]
    length: int

    def size(self) -> int:
        return self.length

    def read_range(self, offset: int, size: int) -> bytes:
        headers = {"Range": f"bytes={offset}-{offset + size - 1}"}
        request = HttpRequest("GET", "/blob", self.asked, headers=headers, safe=True)
        return self.http.send(request, lambda answer: bytes(answer.data))


def open_blob(http: Transport, asked: Mapping[str, Any]) -> Blob:
    """Open a blob; raises if it does not exist."""
    try:
        size = http.send(HttpRequest("HEAD", "/blob", asked, safe=True), _length)
    except RemoteFailure:  # a response without a body has no reason
        size = http.send(HttpRequest("GET", "/blob", asked, safe=True), _length)
    return Blob(RemoteBytes(http, asked, size))


def _length(answer: Answer) -> int:
    return int(answer.headers["Content-Length"])
