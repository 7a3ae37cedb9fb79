"""Detached commits, the only commits there are after a table's first."""

from __future__ import annotations

from typing import Any

from lance import LanceDataset, Transaction

from omnigraph.storage import metrics
from omnigraph.storage.lance.failures import lance_errors


def commit(handle: LanceDataset, operation: Any, doing: str) -> LanceDataset:
    """A new version on exactly the version `handle` is at. Nobody sees it until a graph commit names it.

    Lance checks no conflict here and takes the handle's version as base whatever the transaction says, so the two
    must be the same.
    """
    transaction = Transaction(handle.version, operation)
    assert transaction.read_version == handle.version  # noqa: S101
    with lance_errors(doing):
        new = LanceDataset.commit(handle, transaction, detached=True)
    metrics.request("put", 2)
    metrics.stage(2)
    return new
