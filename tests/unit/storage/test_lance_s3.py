"""What a stage costs at the wire of an S3 server, and that the counters say the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import StoreDenied, StoreUnavailable
from omnigraph.storage import metrics
from omnigraph.storage.lance import LanceTables
from omnigraph.storage.tables import ADDRESS, IndexEdit, TableEdit, TableRef
from tests.support.faulty_s3 import FaultyS3
from tests.support.proxy import Measurement, Proxy

pytestmark = pytest.mark.s3

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("v", pa.int64())])
BTREE = (IndexEdit("id", "BTREE"),)


def rows(first: int, count: int = 1) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": [f"k{i}" for i in ids], "v": list(ids)}, schema=SCHEMA)


def measured(proxy: Proxy, operation: Callable[[], Any]) -> Measurement:
    """What the proxy saw; the counters must have seen as many requests."""
    with metrics.operation("measured") as cost:
        seen = proxy.measure(operation)
    assert cost.ops == seen.requests, f"counted {cost.kinds}\n{seen.describe()}"
    return seen


def test_stages_cost_what_the_contract_allows(proxied_s3: Proxy, prefix: str) -> None:
    store = LanceTables(proxied_s3.address.uri(prefix))
    made = measured(proxied_s3, lambda: store.create("nodes/t", SCHEMA))
    loaded = store.stage(made.result, TableEdit(append=rows(0, 20_000), indices=BTREE))
    key = pa.array(["k77"])
    store.open(loaded.ref).lookup("id", key, ["id"], with_address=True)

    found = measured(
        proxied_s3, lambda: store.open(loaded.ref).lookup("id", key, ["id"], with_address=True)
    )
    assert found.requests == 0, found.describe()  # a warm index answers alone

    first = measured(proxied_s3, lambda: store.stage(loaded.ref, TableEdit(append=rows(30_000))))
    assert (first.requests, first.hops) == (3, 3), first.describe()

    second = measured(
        proxied_s3, lambda: store.stage(first.result.ref, TableEdit(append=rows(30_001)))
    )
    assert second.requests <= 4, second.describe()  # absorbed from memory; one read of the indices
    assert second.result.replaced

    gone = found.result[ADDRESS].combine_chunks()
    edit = TableEdit(delete=gone, append=rows(77))
    third = measured(proxied_s3, lambda: store.stage(second.result.ref, edit))
    assert third.requests <= 5, third.describe()

    moved = measured(proxied_s3, lambda: store.recommit(first.result, loaded.ref))
    assert (moved.requests, moved.hops) == (2, 2), moved.describe()
    assert store.open(third.result.ref).count() == 20_002


def test_deletions_data_and_indices_travel_beside_each_other(
    proxied_s3: Proxy, prefix: str
) -> None:
    """With latency on every request, an upsert waits for three round trips: files, transaction, manifest."""
    store = LanceTables(proxied_s3.address.uri(prefix))
    loaded = store.stage(store.create("t", SCHEMA), TableEdit(append=rows(0, 5000), indices=BTREE))
    gone = store.open(loaded.ref).lookup("id", pa.array(["k5"]), ["id"], with_address=True)
    edit = TableEdit(delete=gone[ADDRESS].combine_chunks(), append=rows(5))
    bases = iter([store.stage(loaded.ref, TableEdit(append=rows(9000 + i))).ref for i in range(20)])
    seen = proxied_s3.shortest(lambda: store.stage(next(bases), edit), 3)
    assert seen.hops <= 3, seen.describe()


def test_a_store_that_cannot_be_reached_is_unavailable() -> None:
    options = {
        "aws_endpoint": "http://127.0.0.1:1",
        "aws_access_key_id": "k",
        "aws_secret_access_key": "s",
        "aws_region": "us-east-1",
        "allow_http": "true",
        "client_max_retries": "0",
        "client_retry_timeout": "1",
    }
    with pytest.raises(StoreUnavailable):
        LanceTables("s3://bucket/graph", options).open(TableRef("t", 2**63 + 1))


def test_a_store_that_refuses_is_denied(faulty_s3: FaultyS3, prefix: str) -> None:
    store = LanceTables(faulty_s3.address.uri(prefix))
    ref = store.create("t", SCHEMA)
    faulty_s3.die_at(1, applied=False, deny=True)
    with pytest.raises(StoreDenied):
        store.stage(ref, TableEdit(append=rows(0)))
