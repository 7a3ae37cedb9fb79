"""Schemas of Kuzu and Neo4j become schemas that compile, and what is lost is named."""

from __future__ import annotations

import pytest

from omnigraph.lang.schema import catalog_of, compile_schema
from omnigraph.lang.schema.translate import SchemaNotUnderstood, translate_schema
from omnigraph.model.catalog import Catalog

KUZU = """
CREATE NODE TABLE User(name STRING, age INT64 DEFAULT 0, tags STRING[], vec FLOAT[384], born DATE,
                       price DECIMAL(18, 3), extra MAP(STRING, INT64), PRIMARY KEY (name));
CREATE NODE TABLE IF NOT EXISTS city(id SERIAL, name STRING PRIMARY KEY, pop UINT32); // a city
CREATE REL TABLE Follows(FROM User TO User, since TIMESTAMP);
CREATE REL TABLE LivesIn(FROM User TO city, MANY_ONE);
CREATE REL TABLE GROUP Likes(FROM User TO User, FROM User TO city, strength DOUBLE);
COPY User FROM 'user.csv';
"""
NEO4J = """
CREATE CONSTRAINT person_name IF NOT EXISTS FOR (p:Person) REQUIRE p.name IS UNIQUE;
CREATE CONSTRAINT FOR (p:Person) REQUIRE (p.first, p.last) IS NODE KEY;
CREATE CONSTRAINT FOR (p:Person) REQUIRE p.age IS :: INTEGER;
CREATE CONSTRAINT FOR (p:Person) REQUIRE p.tags IS :: LIST<STRING NOT NULL>;
CREATE CONSTRAINT FOR ()-[r:KNOWS]-() REQUIRE r.since IS NOT NULL;
CREATE CONSTRAINT ON (c:City) ASSERT c.name IS UNIQUE;
CREATE INDEX FOR (c:City) ON (c.country);
CREATE FULLTEXT INDEX titles FOR (n:Movie) ON EACH [n.title];
CREATE VECTOR INDEX plots FOR (m:Movie) ON m.vec OPTIONS {indexConfig: {`vector.dimensions`: 128}};
CREATE LOOKUP INDEX labels FOR (n) ON EACH labels(n);
"""


def translated(text: str) -> tuple[str, Catalog]:
    found = translate_schema(text)
    return found, catalog_of(compile_schema(found))


def types(catalog: Catalog, name: str) -> dict[str, str]:
    kind = catalog.entity(name)
    assert kind is not None
    return {prop.name: str(prop.type) for prop in kind.properties.values()}


def test_tables_of_kuzu() -> None:
    text, catalog = translated(KUZU)
    assert types(catalog, "User") == {
        "age": "I64?",
        "born": "Date?",
        "extra": "String?",
        "name": "String",
        "price": "F64?",
        "tags": "[String]?",
        "vec": "Vector(384)?",
    }
    assert catalog.nodes["User"].key == ("name",)
    assert types(catalog, "City") == {"id_": "I64?", "name": "String", "pop": "U32?"}
    assert types(catalog, "Follows") == {"since": "DateTime?"}
    ends = {e.name: (e.from_type, e.to_type) for e in catalog.edges.values()}
    assert ends["LikesUserCity"] == ("User", "City")
    assert "@card(0..1)" in text
    for lost in ("MAP(STRING, INT64)", "DEFAULT 0", "`id` is called `id_`", "`city`", "COPY User"):
        assert lost in text


def test_constraints_and_indices_of_neo4j() -> None:
    text, catalog = translated(NEO4J)
    person = catalog.nodes["Person"]
    assert (person.key, person.uniques) == (("first", "last"), (("name",),))
    assert (types(catalog, "Person")["age"], types(catalog, "Person")["tags"]) == (
        "I64?",
        "[String]?",
    )
    assert types(catalog, "Movie") == {"title": "String?", "vec": "Vector(128)?"}
    assert "// edge KNOWS: From -> To {" in text
    assert "not translated: CREATE LOOKUP INDEX" in text


@pytest.mark.parametrize("text", ["", "MATCH (n) RETURN n", "CREATE TABLE x (y int)", "(" * 9_999])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaNotUnderstood):
        translate_schema(text)


def test_hostile_statements_are_answered_at_once() -> None:
    with pytest.raises(SchemaNotUnderstood):
        translate_schema("CREATE CONSTRAINT " + "for (" * 15_000)
    with pytest.raises(SchemaNotUnderstood):
        translate_schema("CREATE NODE TABLE " + "a" * 100_001)
