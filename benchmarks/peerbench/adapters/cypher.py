"""Kuzu and its successor Ladybug: one engine family, one Python interface."""

from __future__ import annotations

import importlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.loading import kuzu_tables
from benchmarks.peerbench.adapters.base import Adapter, Params, Rows, Unsupported
from benchmarks.peerbench.gen import DIM, EDGES, NODES

FOLLOWS = "-[:Follows]->"
START = "MATCH (a:Person {id: $person})-[:Follows]->"
OLDER = "(b:Person) WHERE b.age > $age RETURN count(DISTINCT b.id)"
HOME = "(p:Person)-[:LivesIn]->(c:City)"
COUNTRY = f"{HOME}-[:CityIn]->(:State)-[:StateIn]->(o:Country)"
TASTE = "(c:City)<-[:LivesIn]-(p:Person)-[:HasInterest]->(i:Interest)"

QUERIES = {
    "point": "MATCH (p:Person {id: $person}) RETURN p.name, p.age",
    "hop1": START + OLDER,
    "hop2": f"{START}(:Person){FOLLOWS}{OLDER}",
    "hop3": f"{START}(:Person){FOLLOWS}(:Person){FOLLOWS}{OLDER}",
    "reach": "MATCH (a:Person {id: $person})-[:Follows*1..3]->(b:Person) WHERE b.id <> $person "
    "RETURN count(DISTINCT b.id)",
    "shortest": "MATCH (a:Person {id: $person})-[e:Follows* SHORTEST 1..5]->(b:Person {id: $other}) RETURN length(e)",
    "q1": f"MATCH (f:Person){FOLLOWS}(p:Person) RETURN p.id AS id, count(f.id) AS n ORDER BY n DESC, id LIMIT 3",
    "q2": f"MATCH (f:Person){FOLLOWS}(p:Person) WITH p, count(f.id) AS n ORDER BY n DESC LIMIT 1 "
    "MATCH (p)-[:LivesIn]->(c:City) RETURN p.name, c.city, n",
    "q3": f"MATCH {COUNTRY} WHERE o.country = $country RETURN c.city, avg(p.age) AS a ORDER BY a LIMIT 5",
    "q4": f"MATCH {COUNTRY} WHERE p.age >= $low AND p.age <= $high "
    "RETURN o.country, count(*) AS n ORDER BY n DESC",
    "q5": f"MATCH {TASTE} WHERE i.interest = $interest AND p.gender = $gender AND c.country = $country "
    "RETURN count(*)",
    "q6": f"MATCH {TASTE} WHERE i.interest = $interest AND p.gender = $gender "
    "RETURN c.id, count(*) AS n ORDER BY n DESC LIMIT 5",
    "q7": f"MATCH (s:State)<-[:CityIn]-{TASTE} WHERE p.age >= $low AND p.age <= $high AND s.country = $country "
    "AND i.interest = $interest RETURN s.id, count(*) AS n ORDER BY n DESC LIMIT 1",
    "q8": f"MATCH (:Person){FOLLOWS}(:Person){FOLLOWS}(:Person) RETURN count(*)",
    "q9": f"MATCH (a:Person){FOLLOWS}(b:Person){FOLLOWS}(c:Person) WHERE b.age < $high AND c.age > $low "
    "RETURN count(*)",
    "vector": f"{START}(:Person){FOLLOWS}(b:Person) WITH DISTINCT b "
    f"RETURN array_cosine_similarity(b.emb, CAST($vector AS FLOAT[{DIM}])) AS s, b.id ORDER BY s DESC LIMIT 10",
    "text": f"CALL QUERY_FTS_INDEX('Person', 'bios', $word) WITH node AS n {START}(:Person){FOLLOWS}(n) "
    "RETURN DISTINCT n.id",
}


class Kuzu(Adapter):
    package = "kuzu"
    queries = QUERIES

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.module: Any = importlib.import_module(self.package)
        self.database: Any = self.module.Database(str(place / "graph.db"))
        self.connection: Any = self.module.Connection(self.database)
        for extension in ("FTS", "JSON"):
            with suppress(RuntimeError):  # what is missing shows itself where it is used
                self.connection.execute(f"LOAD EXTENSION {extension}")

    @property
    def version(self) -> str:
        return str(self.module.__version__)

    def load(self, files: Path, form: str) -> None:
        for statement in kuzu_tables():
            self.connection.execute(statement)
        for name in (*NODES, *EDGES):
            self._copy(name, files / f"{name}.{'json' if form == 'ndjson' else form}")

    def _copy(self, name: str, file: Path) -> None:
        """Copy a file; edges in JSON need a sub-query, because a bare copy wants columns called from and to."""
        source = f"'{file}'"
        if file.suffix == ".json" and name in EDGES:
            since = ", since" if name == "Follows" else ""
            source = f"(LOAD FROM {source} RETURN src, dst{since})"
        try:
            self.connection.execute(f"COPY {name} FROM {source}")
        except RuntimeError as refused:
            raise Unsupported(str(refused)) from refused

    def prepare(self) -> None:
        """The text index. Vectors need none: their job compares few of them, exactly."""
        try:
            self.connection.execute(
                "CALL CREATE_FTS_INDEX('Person', 'bios', ['bio'], stemmer := 'none')"
            )
        except RuntimeError as missing:
            self.queries = {job: text for job, text in QUERIES.items() if job != "text"}
            raise Unsupported("no text index: its extension is not installed") from missing

    def rows(self, text: str, params: Params) -> Rows:
        found: Rows = self.connection.execute(text, dict(params)).get_all()
        return found

    def close(self) -> None:
        self.connection.close()
        self.database.close()


class Ladybug(Kuzu):
    package = "ladybug"
