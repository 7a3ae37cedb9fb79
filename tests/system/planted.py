"""Bugs put into the real system on purpose, one at a time. A model that does not catch them proves nothing.

They are of the kinds that were met: caches that know too little, things matched by name, two features that forget each
other, values that are changed a little on their way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import operations
from omnigraph.core import branches, group, history, repository
from omnigraph.core.plan import Adopt, PublishPlan
from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph
from omnigraph.maintenance import collection as gc
from omnigraph.merge import diff, feed, rows, three_way
from omnigraph.merge import schema_view as lens
from omnigraph.merge.conflicts import Decisions
from omnigraph.model.columns import arrow_schema, arrow_type, one_array
from omnigraph.policy import questions
from omnigraph.read import blobs, columns, export
from omnigraph.server import request
from omnigraph.validate.checks import check_values
from omnigraph.write import apply_schema, embed, load, merge, mutate, resolve
from tests.sim.patching import Patch, around, both, swap

evaluator = import_module("omnigraph.validate.evaluate")  # its package has a function of that name

# --- reading -----------------------------------------------------------------------------------------------------


def _cells_by_name(self: Any, name: str, fragment: Any) -> Any:
    """A property that was dropped and added again finds the values of its namesake."""
    return name, fragment.files.split(",")[0]


def _any_version(self: Any, name: str) -> Any:
    key = (*self.identity[:2], len(self.fragments), self.n, name)
    return self.cache.get_or_build(key, lambda: self._assemble(name), lambda a: a.nbytes)


def _head_schema(original: Any, self: Any, branch: str = "main", at: object = None) -> Any:
    """An old state is read with the schema of today."""
    found = original(self, branch, at)
    return found if at is None else replace(found, catalog=original(self, "main").catalog)


def _tags_follow(original: Any, repo: Any, text: str) -> Any:
    """A tag shows the head of the branch it was made on."""
    found = original(repo, text)
    if found is None or text not in branches.tags(repo):
        return found
    return history.Point(repo.head("main").commit)


def _short_blob(self: Any, start: int = 0, end: int | None = None) -> bytes:
    return bytes(self.stored.read_range(0, max(0, self.size - 1)))


def _without_last_row(original: Any, kind: Any, batches: Any, form: Any) -> Any:
    return original(kind, (b.slice(0, max(0, b.num_rows - 1)) for b in batches), form)


def _no_newer(self: Any, known: Any) -> Any:
    return known


# --- writing -----------------------------------------------------------------------------------------------------


def _null_is_absent(original: Any, given: Any, name: str, fill: Any) -> Any:
    values = given.columns.get(name)
    if values is None or not isinstance(fill, pa.Scalar):
        return original(given, name, fill)
    whole = original(given, name, fill)
    return pc.if_else(pc.is_null(whole), fill, whole)


def _normalised(original: Any, rows: Any, field: Any) -> Any:
    """Texts are brought into one form, as names are."""
    chunks = original(rows, field)
    if field.type != pa.string() or field.name in ("id", "src", "dst"):
        return chunks
    return [pc.utf8_normalize(chunk, "NFC") for chunk in chunks]


def _unsigned_zero(original: Any, rows: Any, field: Any) -> Any:
    chunks = original(rows, field)
    return (
        [pc.add(c, pa.scalar(0.0, c.type)) for c in chunks]
        if pa.types.is_floating(field.type)
        else chunks
    )


def _appended(original: Any, change: Any) -> Any:
    """An overwrite that leaves what was there."""
    return (
        original(replace(change, replaces=False))
        if change.replaces and change.inserts is not None
        else original(change)
    )


def _no_cascade(original: Any, node: Any, removed: Any, progress: Any) -> Any:
    return replace(progress, cascaded=progress.cascaded | {node.table_id})


def _checks_without(*names: str) -> Patch:
    kept = tuple(check for check in evaluator.CHECKS if check.__name__ not in names)
    return swap(evaluator, "CHECKS", kept)


def _inserts_alone(original: Any, case: Any) -> Iterator[Any]:
    tables = {t: replace(c, updates=None) for t, c in case.changes.tables.items()}
    return original(replace(case, changes=replace(case.changes, tables=tables)))  # type: ignore[no-any-return]


def _first_alone(original: Any, verbs: Any, kind: str = "write") -> Any:
    """A block of which the part before a failure stays."""

    def verb(txn: Any) -> PublishPlan:
        for number in range(len(verbs), 0, -1):
            try:
                return original(verbs[:number], kind)(txn)  # type: ignore[no-any-return]
            except OmnigraphError:
                if number == 1:
                    raise
        raise AssertionError

    return verb


def _no_vectors(original: Any, changes: Any, txn: Any, embedder: Any) -> Any:
    return changes


def _never_stale(original: Any, rows: Any, *_: Any) -> Any:
    return pa.array([False] * rows.num_rows)


def _text_blob(original: Any, value: Any, prop: Any, rows: Any, txn: Any, bound: Any) -> Any:
    if not prop.type.is_blob:
        return original(value, prop, rows, txn, bound)
    found = original(value, prop, rows, txn, bound)
    return pa.array([None if v.as_py() is None else b"base64:" for v in found], pa.large_binary())


def _any_head(original: Any, self: Any, verb: Any, **more: Any) -> Any:
    return original(self, verb, **{**more, "if_commit": None})


def _own_key(self: Any) -> str | None:
    found: str | None = self.headers.get("idempotency-key")
    return found


# --- schemas -----------------------------------------------------------------------------------------------------


def _drop_and_add(original: Any, steps: Any, before: Any, after: Any) -> Any:
    """A rename that begins anew: the values stay behind."""
    edits = original(steps, before, after)
    for table, edit in edits.items():
        for old, new in edit.rename:
            prop = after[table].properties[new]
            column = arrow_schema(after[table]).field(new)
            if prop.type.nullable:
                edit.drop.append(old)
                edit.add.append((column, None))
        edit.rename[:] = [
            (o, n) for o, n in edit.rename if not after[table].properties[n].type.nullable
        ]
    return edits


def _unchecked(*_: Any) -> Any:
    return [], []


def _null_fill(prop: Any) -> Any:
    return pa.scalar(None, arrow_type(prop.type))


# --- histories ---------------------------------------------------------------------------------------------------


def _by_name(original: Any, self: Any, table: Any, stored: Any, seen: Any) -> None:
    """Properties of two versions of a type are matched by what they are called."""
    ids = {p.name: p.property_id for p in seen.properties.values()}
    props = {
        n: replace(p, property_id=ids.get(n, p.property_id)) for n, p in stored.properties.items()
    }
    original(self, table, replace(stored, properties=props), seen)


def _ours_alone(original: Any, self: Any, base: Any, ours: Any, theirs: Any) -> Any:
    """Of a row both sides changed, what theirs did is dropped."""
    found = original(self, base, ours, theirs)
    return ours if None not in (base, ours, theirs) and not self.conflicts else found


def _swapped(original: Any, self: Any, *key: Any) -> Any:
    found = original(self, *key)
    return (
        {"ours": "theirs", "theirs": "ours"}.get(found, found) if isinstance(found, str) else found
    )


def _silent_delete(original: Any, self: Any, base: Any, ours: Any, theirs: Any) -> Any:
    return ours


def _nan_differs(one: Any, other: Any) -> bool:
    return bool(one == other)


def _rows_nan_differ(original: Any, one: Any, other: Any, names: Any) -> Any:
    found = original(one, other, names)
    for name in names:
        if pa.types.is_floating(one.schema.field(name).type):
            is_nan = pc.fill_null(pc.is_nan(one_array(one[name])), False)
            found = found & ~is_nan.to_numpy(zero_copy_only=False)
    return found


def _oldest_base(original: Any, repo: Any, ours: Any, theirs: Any) -> Any:
    found = original(repo, ours, theirs)
    while found.parents:
        found = history.resolve(repo, found.parents[0], "main").commit
    return found


def _kept_tables(original: Any, between: Any, ours: Any) -> Any:
    return (a for a in original(between, ours) if isinstance(a, Adopt))


def _same_schema(original: Any, repo: Any, to: Any, branch: str) -> Any:
    """A reset that leaves the schema as it is."""
    verb = original(repo, to, branch)
    return lambda txn: replace(verb(txn), schema=None)


def _nothing_gone(original: Any, *given: Any, **more: Any) -> Any:
    found = original(*given, **more)
    return replace(found, deletes=None)


def _updates_unseen(original: Any, self: Any, commit: Any, kind: Any, delta: Any) -> Any:
    return (c for c in original(self, commit, kind, delta) if c.operation != "update")


def _first_event_lost(original: Any, *given: Any, **more: Any) -> Any:
    found = original(*given, **more)
    return replace(found, events=found.events[1:])


def _cells_all(original: Any, self: Any) -> Any:
    """A diff that shows of an update every cell."""
    for row in original(self):
        yield replace(row, after={**row.after, "id": row.id})


def _no_roots(original: Any, repo: Any, refs: Any, heads: Any) -> Any:
    kept = [ref for ref in refs if not ref.state.tag]
    return original(repo, kept, heads)


def _as_given(self: Any) -> None:
    """A question about a name as somebody spelled it."""


BUGS: dict[str, Patch] = {
    "cells are cached by name": swap(columns.TableColumns, "cells", _cells_by_name),
    "columns are cached for every version": swap(columns.TableColumns, "column", _any_version),
    "a tag moves with its branch": around(history, "_by_name", _tags_follow),
    "a blob loses its end": swap(blobs.Blob, "read", _short_blob),
    "an export loses a row": around(export, "record_lines", _without_last_row),
    "a warm reader trusts its cache": swap(repository.Repository, "_newer", _no_newer),
    "an explicit null takes the default": around(resolve, "_completed", _null_is_absent),
    "texts are normalised": around(resolve, "_chunks", _normalised),
    "a zero loses its sign": around(resolve, "_chunks", _unsigned_zero),
    "an overwrite keeps what was there": around(resolve, "_actions", _appended),
    "edges outlive their nodes": around(mutate, "cascade", _no_cascade),
    "uniqueness is not checked": _checks_without("check_unique"),
    "cardinality is not checked": _checks_without("check_cardinality"),
    "ends of edges are not checked": _checks_without("check_endpoints"),
    "orphans are not looked for": _checks_without("check_orphans"),
    "values are checked on inserts alone": swap(
        evaluator,
        "CHECKS",
        tuple(
            (lambda case, c=check: _inserts_alone(c, case)) if check is check_values else check
            for check in evaluator.CHECKS
        ),
    ),
    "an append takes what exists": swap(resolve, "existing_ids", lambda *_: ()),
    "a block leaves a part behind": around(operations, "together", _first_alone),
    "nothing is embedded": both(
        around(load, "embedded", _no_vectors), around(mutate, "embedded", _no_vectors)
    ),
    "a vector outlives its text": around(embed, "_stale", _never_stale),
    "an updated blob is its own text": around(mutate, "_assigned", _text_blob),
    "a condition on the head is ignored": around(Graph, "publish", _any_head),
    "an old state is read with today's schema": around(Graph, "_pinned", _head_schema),
    "keys are not claimed": around(group, "claim", lambda original, repo, key, wanted: wanted),
    "keys belong to nobody": swap(request.HttpCall, "idempotency_key", _own_key),
    "a rename begins anew": around(apply_schema, "table_edits", _drop_and_add),
    "stored rows need not obey a new rule": swap(apply_schema, "broken_rules", _unchecked),
    "a new property has no default": both(
        swap(lens, "default_of", _null_fill), swap(apply_schema, "default_of", _null_fill)
    ),
    "properties are matched by name": around(lens.Lens, "__init__", _by_name),
    "a merge loses what theirs did to a row": around(three_way.RowMerge, "_result", _ours_alone),
    "the wrong side wins": around(Decisions, "of", _swapped),
    "a deletion wins in silence": around(three_way.RowMerge, "_delete_or_update", _silent_delete),
    "NaN differs from itself": both(
        swap(three_way, "same_value", _nan_differs),
        around(rows, "equal_rows", _rows_nan_differ),
        around(three_way, "equal_rows", _rows_nan_differ),
    ),
    "merges begin at the beginning": around(merge, "merge_base", _oldest_base),
    "a fast-forward keeps dropped types": around(merge, "fast_forward", _kept_tables),
    "a reset keeps the schema": around(operations, "reset", _same_schema),
    "a merge forgets deletions": around(three_way, "_joined", _nothing_gone),
    "lost values are not looked for": swap(merge, "lost_cells", lambda *_: ()),
    "the feed leaves updates out": around(feed.Feed, "_rows", _updates_unseen),
    "a history loses its last event": around(operations, "row_history", _first_event_lost),
    "a diff shows a cell too many": around(diff.TypeDiff, "_updates", _cells_all),
    "cleanup takes what is tagged": around(gc, "_roots", _no_roots),
    "a policy is asked with the name as it was spelled": swap(
        questions.Question, "__post_init__", _as_given
    ),
}


@contextmanager
def planted(bug: str | None) -> Iterator[None]:
    """With one of the bugs, or none."""
    if bug is None:
        yield
        return
    with BUGS[bug]():
        yield


def plant_for_ever(bug: str) -> None:
    """For a process that ends soon."""
    BUGS[bug]().__enter__()
