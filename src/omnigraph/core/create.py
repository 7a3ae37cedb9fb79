"""Making a new graph: everything is prepared out of sight, and `graph.json` makes it exist."""

from __future__ import annotations

import msgspec

from omnigraph.core import layout
from omnigraph.core.clock import REAL, Clock
from omnigraph.core.plan import PublishPlan, Register
from omnigraph.core.publisher import Outcome, create, store_schema
from omnigraph.core.records import FORMAT, Commit, GraphStamp, Member, StoredSchema, encode
from omnigraph.core.repository import Repository, refuse_rust_layout, repository_at
from omnigraph.core.stage import stage
from omnigraph.errors import (
    CommitUnknown,
    GraphExists,
    ObjectNotFound,
)
from omnigraph.lang.schema import catalog_of, decode_ir
from omnigraph.model.catalog import Catalog
from omnigraph.model.columns import arrow_schema
from omnigraph.model.limits import DEFAULT, Limits
from omnigraph.model.names import MAIN
from omnigraph.storage.local import rely_on
from omnigraph.storage.objects import ObjectStore, locate, open_objects
from omnigraph.storage.probe import probe


def create_graph(
    uri: object, stored: StoredSchema, *, limits: Limits = DEFAULT, actor: str | None = None
) -> Repository:
    """Create a graph with a schema; refused if one exists or the store lacks a required guarantee."""
    repo = _place_for(uri, limits)
    fill(repo, stored, actor)
    return repo


def prepare_graph(uri: object, stored: StoredSchema, *, limits: Limits = DEFAULT) -> Repository:
    """The same, but it does not exist before `make_exist`: until then it can be written to, or simply abandoned."""
    repo = _place_for(uri, limits)
    _prepare(repo, stored)
    return repo


def _place_for(uri: object, limits: Limits) -> Repository:
    place = locate(uri)
    objects = open_objects(place)
    _refuse_existing(objects)
    probe(objects)
    return repository_at(place, objects, fresh_stamp(REAL), limits)


def fresh_stamp(clock: Clock) -> GraphStamp:
    """The identity of a new graph."""
    return GraphStamp(FORMAT, clock.fresh_id(), clock.fresh_id(), clock.now())


def fill(repo: Repository, stored: StoredSchema, actor: str | None = None) -> None:
    """Prepare tables and the first commit, then make the graph exist."""
    _prepare(repo, stored, actor)
    make_exist(repo)


def _prepare(repo: Repository, stored: StoredSchema, actor: str | None = None) -> None:
    catalog = catalog_of(decode_ir(stored.ir.encode()))
    hashed = store_schema(repo, encode(stored))
    _first_commit(repo, catalog, hashed, actor)


def register_all(catalog: Catalog) -> tuple[Register, ...]:
    """The actions that make a table for every type."""
    return tuple(
        Register(kind.table_id, kind.kind, kind.name, arrow_schema(kind))
        for kind in catalog.entities()
    )


def _refuse_existing(objects: ObjectStore) -> None:
    try:
        objects.get(layout.GRAPH)
    except ObjectNotFound:
        refuse_rust_layout(objects)
        return
    raise GraphExists(f"a graph already exists at {objects.uri}", details={"uri": objects.uri})


def _first_commit(repo: Repository, catalog: Catalog, schema: str, actor: str | None) -> Commit:
    chain = repo.stamp.main_chain
    empty = Commit(
        graph_id=repo.stamp.graph_id,
        chain=chain,
        number=0,
        branch=MAIN,
        parents=(),
        time=repo.clock.now(),
        kind="init",
        schema=schema,
        gc_epoch=0,
        content=layout.commit_id(chain, 0),
        tables={},
        members=(Member("init", repo.clock.fresh_id(), actor),),
    )
    plan = PublishPlan(kind="init", actions=register_all(catalog))
    staged = stage(repo, empty, [plan])
    repo.tables.sync(list(staged.staged.values()))
    commit = msgspec.structs.replace(empty, tables=staged.on({}))
    if create(repo, commit) is Outcome.UNKNOWN:
        raise CommitUnknown(
            f"the store at {repo.place.uri} did not answer; the graph does not exist yet"
        )
    return commit


def make_exist(repo: Repository) -> None:
    """Write the object that makes a prepared graph exist; raises if another process was first."""
    objects = repo.objects
    data = msgspec.json.format(msgspec.json.encode(repo.stamp), indent=2) + b"\n"
    if not repo.put_once(layout.GRAPH, data) and objects.get(layout.GRAPH) != data:
        raise GraphExists(f"another process created a graph at {objects.uri} in the meantime")
    rely_on(objects, layout.GRAPH)
