"""What CALL takes: searches, each of which binds nodes and their scores, and what the schema says.

- `omnigraph.search.text(label, property, query, limit)`: by the words of a text, the best score first
- `omnigraph.search.vector(label, property, query, limit)`: by distance, the nearest first; the query is a vector, or a
  text to be embedded
- `omnigraph.search.hybrid(label, vector property, vector query, text property, text query, limit)`: both, fused

They yield `node` and `score`. What the schema says is known when the query is compiled, and becomes rows of values:

- `omnigraph.schema.nodes()`: `label`, `interfaces`, `properties`, `key`
- `omnigraph.schema.relationships()`: `type`, `start`, `end`, `properties`
- `omnigraph.schema.properties()`: `owner`, `property`, `type`, `nullable`
- `db.labels()`, `db.relationshipTypes()`, `db.propertyKeys()`: as other products have them
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.lang import ir
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.scope import Flow, labels_of_edge
from omnigraph.lang.lower import place_of
from omnigraph.lang.source import Located
from omnigraph.model.catalog import Catalog, Property

if TYPE_CHECKING:
    from omnigraph.lang.cypher.bind import QueryBinder

CONSTANT = ir.Literal(60, ir.I64)  # of reciprocal rank fusion, where none is given
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
        message = f"{what} is a text in the query itself"
        raise self.queries.binding.error("C009", message, self.at(position))

    def at(self, position: int) -> Located:
        return (self.clause.args or ())[position].at

    def words(self, position: int, prop: Property) -> ir.Bm25:
        query = self.constant(position)
        if not types.is_string(query.type):
            message = f"a search for words takes a text, not {types.name_of(query.type)}"
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
            message = "what is searched for is the same for all rows: a literal or a parameter"
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


PROCEDURES: dict[str, tuple[int, Callable[[Search, str], ir.Op]]] = {
    "omnigraph.search.text": (4, _text),
    "omnigraph.search.vector": (4, _vector),
    "omnigraph.search.hybrid": (6, _hybrid),
}


# --- the schema ----------------------------------------------------------------------------------------------------

Facts = list[tuple[object, ...]]
TEXTS = ir.STRINGS.with_nullable(True)


def _nodes(catalog: Catalog) -> Facts:
    return [
        (n.name, tuple(n.implements), tuple(n.properties), tuple(n.key or ()))
        for n in catalog.nodes.values()
    ]


def _relationships(catalog: Catalog) -> Facts:
    return [
        (labels_of_edge(e)[-1], e.from_type, e.to_type, tuple(e.properties))
        for e in catalog.edges.values()
    ]


def _properties(catalog: Catalog) -> Facts:
    return [
        (kind.name, p.name, str(p.type.with_nullable(False)), p.type.nullable)
        for kind in catalog.entities()
        for p in kind.properties.values()
    ]


def _labels(catalog: Catalog) -> Facts:
    return [(name,) for name in sorted((*catalog.nodes, *catalog.interfaces))]


def _types(catalog: Catalog) -> Facts:
    return [(name,) for name in sorted({labels_of_edge(e)[-1] for e in catalog.edges.values()})]


def _keys(catalog: Catalog) -> Facts:
    return [(name,) for name in sorted({p for kind in catalog.entities() for p in kind.properties})]


Told = tuple[Callable[[Catalog], Facts], tuple[tuple[str, ir.ValueType], ...]]
SCHEMA: dict[str, Told] = {
    "omnigraph.schema.nodes": (
        _nodes,
        (
            ("label", types.STRING),
            ("interfaces", TEXTS),
            ("properties", TEXTS),
            ("key", TEXTS),
        ),
    ),
    "omnigraph.schema.relationships": (
        _relationships,
        (
            ("type", types.STRING),
            ("start", types.STRING),
            ("end", types.STRING),
            ("properties", TEXTS),
        ),
    ),
    "omnigraph.schema.properties": (
        _properties,
        (
            ("owner", types.STRING),
            ("property", types.STRING),
            ("type", types.STRING),
            ("nullable", types.BOOL),
        ),
    ),
    "db.labels": (_labels, (("label", types.STRING),)),
    "db.relationshiptypes": (_types, (("relationshipType", types.STRING),)),
    "db.propertykeys": (_keys, (("propertyKey", types.STRING),)),
}


def _bind_schema(queries: QueryBinder, flow: Flow, clause: ast.Procedure, told: Told) -> None:
    """The rows of a procedure about the schema."""
    binding = queries.binding
    facts, fields = told
    if clause.args:
        raise binding.error("C009", f"{clause.name} takes no arguments", clause.at)
    kinds = dict(fields)
    yields = _yielded(queries, flow, clause, tuple(kinds))
    row = ir.MapValue(fields)
    rows = [
        ir.MakeMap(tuple(ir.Literal(v, k) for v, (_, k) in zip(fact, fields, strict=True)), row)
        for fact in facts(binding.catalog)
    ]
    var = binding.fresh()
    flow.plan = ir.Unwind(flow.plan, ir.MakeList(tuple(rows), ir.ListValue(row)), var, row)
    flow.names |= {
        alias: ir.FieldOf(ir.ValueOf(var, row), name, kinds[name]) for name, alias in yields.items()
    }
    if clause.predicate is not None:
        queries.where(flow, clause.predicate)


def _yielded(
    queries: QueryBinder, flow: Flow, clause: ast.Procedure, known: tuple[str, ...]
) -> dict[str, str]:
    """What is yielded, and under which names."""
    binding = queries.binding
    yields = dict(clause.yields) or {name: name for name in known}
    for name, alias in yields.items():
        if name not in known:
            message = f"{clause.name} yields {', '.join(known)}, not `{name}`"
            raise binding.unknown("C007", message, clause.at, name, known)
        if alias in flow.names:
            raise binding.error("C008", f"`{alias}` is bound already", clause.at)
    return yields


def bind_procedure(queries: QueryBinder, flow: Flow, clause: ast.Procedure) -> None:
    """Add what a procedure finds to the flow."""
    binding = queries.binding
    if clause.name.lower() in SCHEMA:
        _bind_schema(queries, flow, clause, SCHEMA[clause.name.lower()])
        return
    known = PROCEDURES.get(clause.name.lower())
    if known is None:
        message = f"there is no procedure `{clause.name}`"
        raise binding.unknown("C011", message, clause.at, clause.name, (*PROCEDURES, *SCHEMA))
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
