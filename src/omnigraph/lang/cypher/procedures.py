"""What CALL takes: searches, each of which binds nodes and their scores, and the procedures of `metadata`.

- `omnigraph.search.text(label, property, query, limit)`: by the words of a text, the best score first
- `omnigraph.search.vector(label, property, query, limit)`: by distance, the nearest first; the query is a vector, or a
  text to be embedded
- `omnigraph.search.hybrid(label, vector property, vector query, text property, text query, limit)`: both, fused

Searches yield `node` and `score`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from omnigraph.lang import ir
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.metadata import SCHEMA, STORED, MetadataProcedure
from omnigraph.lang.cypher.scope import Flow
from omnigraph.lang.lower import place_of
from omnigraph.lang.source import Located
from omnigraph.model.catalog import Property

if TYPE_CHECKING:
    from omnigraph.lang.cypher.bind import QueryBinder

CONSTANT = ir.Literal(60, ir.I64)  # of reciprocal rank fusion, by default
YIELDS = ("node", "score")
Ranking = ir.Nearest | ir.Bm25


@dataclass(slots=True)
class Search:
    """A call whose arguments are bound."""

    queries: QueryBinder
    clause: ast.Procedure
    args: list[ir.Expr]
    var: str
    kinds: tuple[str, ...]

    def property(self, position: int, vector: bool) -> Property:
        name = self.text(position, "the name of a property")
        kind = ir.RefValue(self.kinds)
        found = [p for p in self.queries.binding.property(kind, name) if p is not None]
        at = self.at(position)
        if len(found) < len(self.kinds):
            options = self.queries.binding.property_names(kind)
            message = f"{types.name_of(kind)} has no property `{name}`"
            raise self.queries.binding.unknown("C005", message, at, name, options)
        fits = all(p.type.is_vector if vector else types.is_string(p.type) for p in found)
        if not fits:
            message = f"`{name}` is {found[0].type}, not a {'vector' if vector else 'text'}"
            raise self.queries.binding.error("C009", message, at)
        return found[0]

    def text(self, position: int, what: str) -> str:
        found = self.args[position]
        if isinstance(found, ir.Literal) and isinstance(found.value, str):
            return found.value
        message = f"{what} must be a literal text"
        raise self.queries.binding.error("C009", message, self.at(position))

    def at(self, position: int) -> Located:
        return (self.clause.args or ())[position].at

    def words(self, position: int, prop: Property) -> ir.Bm25:
        query = self.constant(position)
        if not types.is_string(query.type):
            message = f"a text search takes a text, not {types.name_of(query.type)}"
            raise self.queries.binding.error("C009", message, self.at(position))
        return ir.Bm25(ir.Column(self.var, prop.name, prop.type), query)

    def nearest(self, position: int, prop: Property) -> ir.Nearest:
        query = self.constant(position)
        if isinstance(query, ir.Param) and types.is_list(query.type):
            kind = prop.type.with_nullable(False)
            self.queries.binding.params[query.name] = kind
            query = ir.Param(query.name, kind)
        elif not types.is_string(query.type) and not types.is_list(query.type):
            message = f"a vector search takes a vector or a text, not {types.name_of(query.type)}"
            raise self.queries.binding.error("C009", message, self.at(position))
        model = prop.embed.model if prop.embed is not None else None
        field = ir.Column(self.var, prop.name, prop.type)
        return ir.Nearest(field, query, ir.Metric(prop.metric), model)

    def constant(self, position: int) -> ir.Expr:
        found = self.args[position]
        if not isinstance(found, ir.Literal | ir.Param) or found.type == ir.NULL:
            message = "the search value must be the same for all rows: a literal or a parameter"
            raise self.queries.binding.error("C009", message, self.at(position))
        return found

    def limit(self, position: int) -> ir.Expr:
        found = self.constant(position)
        if not types.is_integer(found.type):
            message = f"a limit is a whole number, not {types.name_of(found.type)}"
            raise self.queries.binding.error("C016", message, self.at(position))
        return found

    def ranked(self, ranking: Ranking, name: str, keep: ir.Expr) -> ir.Op:
        return ir.Rank(ir.NodeScan(self.var, self.kinds), ranking, name, keep)


def _text(search: Search, name: str) -> ir.Op:
    prop = search.property(1, vector=False)
    return search.ranked(search.words(2, prop), name, search.limit(3))


def _vector(search: Search, name: str) -> ir.Op:
    prop = search.property(1, vector=True)
    return search.ranked(search.nearest(2, prop), name, search.limit(3))


def _hybrid(search: Search, name: str) -> ir.Op:
    near = search.nearest(2, search.property(1, vector=True))
    words = search.words(4, search.property(3, vector=False))
    keep = search.limit(5)
    return ir.Fuse(
        primary=search.ranked(near, f"{name}a", keep),
        secondary=search.ranked(words, f"{name}b", keep),
        primary_score=f"{name}a",
        secondary_score=f"{name}b",
        var=search.var,
        constant=CONSTANT,
        keep=keep,
        name=name,
        place=place_of(name),
    )


Searching = Callable[[Search, str], ir.Op]
SEARCHES: tuple[tuple[str, int, Searching], ...] = (
    ("omnigraph.search.text", 4, _text),
    ("omnigraph.search.vector", 4, _vector),
    ("omnigraph.search.hybrid", 6, _hybrid),
)
PROCEDURES: dict[str, tuple[int, Searching] | MetadataProcedure] = {
    **{name: (count, make) for name, count, make in SEARCHES},
    **{procedure.name.lower(): procedure for procedure in (*SCHEMA, *STORED)},
}


# --- metadata -------------------------------------------------------------------------------------------------------


def _bind_metadata(
    queries: QueryBinder, flow: Flow, clause: ast.Procedure, procedure: MetadataProcedure
) -> None:
    """The rows of a metadata procedure: a parameter given when the query runs."""
    binding = queries.binding
    kinds, row = dict(procedure.fields), ir.MapValue(procedure.fields)
    args = tuple(_metadata_args(queries, flow, clause, procedure))
    yields = _yielded(queries, flow, clause, tuple(kinds))
    var, rows = binding.fresh(), ir.ListValue(row, nullable=False)
    given = ir.Param(binding.fresh(), rows)
    binding.params[given.name] = rows
    binding.procedure_rows.append(ir.ProcedureRows(given.name, procedure.name, args))
    flow.plan = ir.Unwind(flow.plan, given, var, row)
    flow.names |= {
        alias: ir.FieldOf(ir.ValueOf(var, row), name, kinds[name]) for name, alias in yields.items()
    }
    if clause.predicate is not None:
        queries.where(flow, clause.predicate)


def _metadata_args(
    queries: QueryBinder, flow: Flow, clause: ast.Procedure, procedure: MetadataProcedure
) -> Iterator[ir.Expr]:
    """The values of all arguments: those given, and the defaults of the others."""
    binding, given = queries.binding, clause.args or ()
    if not procedure.fewest <= len(given) <= len(procedure.args):
        names = ", ".join(arg.name for arg in procedure.args)
        raise binding.error("C009", f"{procedure.name} takes ({names})", clause.at)
    for arg, part in zip_longest(procedure.args, given):
        if part is None:
            yield ir.Literal(arg.default, arg.type)
            continue
        found = queries.binder(flow).expr(part)
        fits = types.is_integer if types.is_integer(arg.type) else types.is_string
        if not isinstance(found, ir.Literal | ir.Param) or not (
            fits(found.type) or (types.is_null(found.type) and arg.default is None)
        ):
            what = "a whole number" if types.is_integer(arg.type) else "a text"
            message = f"`{arg.name}` of {procedure.name} is {what}, the same for all rows"
            raise binding.error("C009", message, part.at)
        yield found


def _yielded(
    queries: QueryBinder, flow: Flow, clause: ast.Procedure, known: tuple[str, ...]
) -> dict[str, str]:
    """The yielded columns, and their names."""
    binding = queries.binding
    yields = dict(clause.yields) or {name: name for name in known}
    for name, alias in yields.items():
        if name not in known:
            message = f"{clause.name} yields {', '.join(known)}, not `{name}`"
            raise binding.unknown("C007", message, clause.at, name, known)
        if alias in flow.names:
            raise binding.error("C008", f"`{alias}` is already bound", clause.at)
    return yields


def bind_procedure(queries: QueryBinder, flow: Flow, clause: ast.Procedure) -> None:
    """Add what a procedure finds to the flow."""
    binding = queries.binding
    known = PROCEDURES.get(clause.name.lower())
    if known is None:
        message = f"unknown procedure `{clause.name}`"
        raise binding.unknown("C011", message, clause.at, clause.name, PROCEDURES)
    if isinstance(known, MetadataProcedure):
        _bind_metadata(queries, flow, clause, known)
        return
    count, make = known
    if clause.args is None or len(clause.args) != count:
        message = f"{clause.name} takes {count} arguments"
        raise binding.error("C009", message, clause.at)
    args = [queries.binder(flow).expr(arg) for arg in clause.args]
    yields = _yielded(queries, flow, clause, YIELDS)
    var, score = binding.fresh(yields.get("node", "")), binding.fresh("")
    search = Search(queries, clause, args, var, ())
    search.kinds = binding.with_label(search.text(0, "a label"), clause.at)
    found = make(search, score)
    trivial = isinstance(flow.plan, ir.Outer) and not flow.nested
    flow.plan = found if trivial else ir.Join(flow.plan, found)
    values: dict[str, ir.Expr] = {
        "node": ir.RefOf(var, ir.RefValue(search.kinds)),
        "score": ir.ScoreOf(score),
    }
    flow.types[var] = search.kinds
    flow.names |= {alias: values[name] for name, alias in yields.items()}
    if clause.predicate is not None:
        queries.where(flow, clause.predicate)
