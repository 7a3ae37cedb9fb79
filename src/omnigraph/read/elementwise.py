"""The few row-wise functions Arrow has only for constants: DuckDB computes them, off the usual path."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.read.arrays import Value


def in_duckdb(expression: str, n: int, *operands: Value) -> pa.Array:
    """A SQL expression over columns `a`, `b`, …, one value per row and in their order."""
    import duckdb

    columns = [pa.repeat(v, n) if isinstance(v, pa.Scalar) else v for v in operands]
    given = pa.table(columns, names=["a", "b", "c"][: len(columns)])
    with duckdb.connect(":memory:", config={"threads": 1, "preserve_insertion_order": True}) as db:
        db.register("given", given)
        found = db.sql(f"select {expression} as v from given").to_arrow_table().column("v")  # noqa: S608
    return found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)
