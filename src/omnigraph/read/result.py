"""What a query returns: Arrow columns first, everything else made from them on demand."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang import ir
from omnigraph.model.columns import arrow_type
from omnigraph.model.types import PropType
from omnigraph.read.explain import Explanation, Trace
from omnigraph.read.rows import Rows
from omnigraph.values.spelling import to_json

# The types of pandas that hold whole numbers and nulls; its usual ones would make floats of them.
WITH_NULLS = {
    pa.int32(): "Int32Dtype",
    pa.int64(): "Int64Dtype",
    pa.uint32(): "UInt32Dtype",
    pa.uint64(): "UInt64Dtype",
}

DRAWN_ROWS_MAX = 300  # that notebooks look at for entities to draw
BATCH_ROWS = 65_536


class NotOneRow(OmnigraphError):
    """The result does not have exactly one row."""

    code, kind = "not_one_row", Kind.INVALID
    default_help = "Use rows, or a query that returns one row."


class NotExplained(OmnigraphError):
    """The query was run without `explain`."""

    code, kind = "not_explained", Kind.INVALID
    default_help = "Run the query with explain=True."


class PackageMissing(OmnigraphError):
    """A package this conversion needs is not installed."""

    code, kind = "package_missing", Kind.INVALID
    default_help = "Install the package named in the message."


class Result:
    """The rows of a read.

    `columns` are the names in order, `rows` a list of dicts; a result is also a sequence of rows. `commit` is the id of
    the commit that was read.
    """

    def __init__(
        self,
        columns: tuple[ir.OutputColumn, ...],
        rows: Rows,
        commit: str,
        trace: Trace | None = None,
    ) -> None:
        self._columns = columns
        self._rows = rows
        self._trace = trace
        self.commit = commit

    @classmethod
    def of_columns(cls, columns: Mapping[str, pa.Array], commit: str) -> Result:
        """Data that is not from the graph, as a result: columns of text and numbers."""
        kinds = {pa.int64(): ir.I64_OR_NULL, pa.string(): ir.STRING_OR_NULL}
        made = tuple(ir.OutputColumn(name, kinds[a.type]) for name, a in columns.items())
        rows = len(next(iter(columns.values())))
        return cls(made, Rows(rows, columns=dict(columns)), commit)

    @property
    def columns(self) -> list[str]:
        return [c.name for c in self._columns]

    @property
    def types(self) -> list[ir.ValueType]:
        """The type of each column."""
        return [c.type for c in self._columns]

    def __len__(self) -> int:
        return self._rows.n

    def __bool__(self) -> bool:
        return self._rows.n > 0

    def at(self, commit: str) -> Result:
        """The same rows, as those of a commit."""
        return Result(self._columns, self._rows, commit, self._trace)

    def nodes_as_ids(self) -> Result:
        """The same rows, with the id of a node where its variable was returned."""
        nodes = [isinstance(c.type, ir.EntityValue) and c.type.plain for c in self._columns]
        if not any(nodes):
            return self
        kinds = [
            ir.STRING_OR_NULL if node else c.type
            for node, c in zip(nodes, self._columns, strict=True)
        ]
        columns = tuple(
            ir.OutputColumn(c.name, kind) for c, kind in zip(self._columns, kinds, strict=True)
        )
        made = {
            str(i): pc.struct_field(array, "@id") if node else array
            for i, (node, array) in enumerate(zip(nodes, self._arrays, strict=True))
        }
        return Result(columns, Rows(self._rows.n, columns=made), self.commit, self._trace)

    # --- Python --------------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per row; where two columns have one name, the last counts."""
        return list(self._dicts(0, self._rows.n))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if "rows" in self.__dict__ or self._rows.n <= BATCH_ROWS:
            yield from self.rows
            return
        for start in range(0, self._rows.n, BATCH_ROWS):
            yield from self._dicts(start, BATCH_ROWS)

    def _dicts(self, start: int, count: int) -> Iterator[dict[str, Any]]:
        names = self.columns
        lists = [a.slice(start, count).to_pylist() for a in self._arrays]
        if len(lists) == 1:
            return ({names[0]: value} for value in lists[0])
        return (dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True))

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]

    def one(self) -> dict[str, Any]:
        """The only row."""
        if self._rows.n != 1:
            raise NotOneRow(f"the result has {self._rows.n} rows, not one")
        return self.rows[0]

    def scalar(self) -> Any:
        """The first column of the only row."""
        self.one()
        return self._arrays[0][0].as_py()

    # --- Arrow and its friends -----------------------------------------------------------------------------------

    @cached_property
    def _arrays(self) -> list[pa.Array]:
        made = [self._rows.column(name) for name in self._rows.columns]
        return [_typed(array, c.type) for array, c in zip(made, self._columns, strict=True)]

    def to_arrow(self) -> pa.Table:
        """The result as an Arrow table."""
        return pa.Table.from_arrays(self._arrays, names=self.columns)

    def to_batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The result as a stream of batches."""
        yield from self.to_arrow().to_batches(max_chunksize=batch_rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """The result as a pandas DataFrame. Whole numbers beside nulls have the types of pandas that hold both."""
        pandas, table = package("pandas"), self.to_arrow()
        frame = table.to_pandas()
        for name, column in zip(table.column_names, table.columns, strict=True):
            if column.type in WITH_NULLS and column.null_count:
                kind = getattr(pandas, WITH_NULLS[column.type])()
                frame[name] = column.to_pandas(types_mapper={column.type: kind}.get)
        return frame

    def to_polars(self) -> Any:
        """The result as a polars DataFrame."""
        return package("polars").from_arrow(self.to_arrow())

    def to_networkx(self) -> Any:
        """A networkx MultiDiGraph of the entities and paths in the rows: nodes by id, edges between their ends."""
        graph = package("networkx").MultiDiGraph()
        for row in self:
            for value in row.values():
                _add_to_graph(graph, value)
        return graph

    # --- JSON and people -----------------------------------------------------------------------------------------

    def json_rows(
        self, first: int | None = None, *, safe_integers: bool = False
    ) -> list[dict[str, Any]]:
        """The rows, or the first of them, in their JSON shape.

        `safe_integers` writes integers JavaScript would round as text.
        """
        rows = self if first is None or first >= len(self) else self._dicts(0, first)
        return [{k: to_json(v, safe_integers) for k, v in row.items()} for row in rows]

    def to_json(self) -> dict[str, Any]:
        """The whole result in its JSON shape."""
        return {
            "columns": self.columns,
            "rows": self.json_rows(),
            "row_count": len(self),
            "graph_commit_id": self.commit,
        }

    def explain(self) -> Explanation:
        """How the result was obtained."""
        if self._trace is None:
            raise NotExplained("this result was not recorded for explaining")
        return Explanation(self._trace)

    def __repr__(self) -> str:
        return f"<Result: {len(self)} rows of {', '.join(self.columns)} at {self.commit}>"

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import result_html

        heads = list(zip(self.columns, map(str, self.types), strict=True))
        arrays = [array.slice(0, DRAWN_ROWS_MAX).to_pylist() for array in self._arrays]
        rows = [[to_json(value) for value in row] for row in zip(*arrays, strict=True)]
        return result_html(heads, rows, len(self))


def _typed(array: pa.Array, kind: ir.ValueType) -> pa.Array:
    if not isinstance(kind, PropType):
        return array
    wanted = arrow_type(kind)
    if array.type == wanted or pa.types.is_large_string(array.type):
        return array
    return array.cast(wanted)


def package(name: str) -> Any:
    """A package that only some conversions need."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        raise PackageMissing(f"the package {name} is not installed") from missing


def _add_to_graph(graph: Any, value: Any) -> None:
    match value:
        case {"id": str(edge), "type": str(), "from": str(src), "to": str(dst), **rest}:
            graph.add_edge(src, dst, key=edge)
            graph.edges[src, dst, edge].update({"type": value["type"], **rest})
        case {"id": str(node), "type": str(), **rest}:
            graph.add_node(node)
            graph.nodes[node].update({"type": value["type"], **rest})
        case {"@id": str(node), **rest}:
            graph.add_node(node)
            graph.nodes[node].update(rest)
        case {"nodes": list(nodes), "edges": list(edges)}:
            graph.add_nodes_from(nodes)
            for key, src, dst in zip(edges, nodes, nodes[1:], strict=False):
                graph.add_edge(src, dst, key=key)
        case _:
            return
