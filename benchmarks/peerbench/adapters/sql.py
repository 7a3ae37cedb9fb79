"""DuckDB and SQLite: joins and recursive queries over one table per type."""

# ruff: noqa: S608 (queries are put together from parts that are all written here)

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.peerbench.adapters.base import Adapter, Params, Rows, Unsupported
from benchmarks.peerbench.gen import DIM, EDGES, NODES

FOLLOWED = "SELECT dst AS n FROM Follows WHERE src = $person"


def _older(walk: str) -> str:
    return f"SELECT count(DISTINCT p.id) FROM ({walk}) s JOIN Person p ON p.id = s.n WHERE p.age > $age"


def _further(walk: str) -> str:
    """One hop on, without duplicates in between."""
    return f"SELECT DISTINCT f.dst AS n FROM ({walk}) s JOIN Follows f ON f.src = s.n"


def _levels(hops: int) -> str:
    return (
        "WITH RECURSIVE r(n, d) AS (SELECT CAST($person AS BIGINT), 0 UNION "
        f"SELECT f.dst, d + 1 FROM r JOIN Follows f ON f.src = r.n WHERE d < {hops})"
    )


HOMES = "Person p JOIN LivesIn l ON l.src = p.id JOIN CityIn ci ON ci.src = l.dst"
COUNTRIES = f"{HOMES} JOIN StateIn si ON si.src = ci.dst JOIN Country o ON o.id = si.dst"
TASTES = (
    "HasInterest h JOIN Interest i ON i.id = h.dst JOIN Person p ON p.id = h.src "
    "JOIN LivesIn l ON l.src = p.id"
)
TOP = "SELECT dst, count(*) AS n FROM Follows GROUP BY dst ORDER BY n DESC, dst LIMIT"

QUERIES = {
    "point": "SELECT name, age FROM Person WHERE id = $person",
    "hop1": _older(FOLLOWED),
    "hop2": _older(_further(FOLLOWED)),
    "hop3": _older(_further(_further(FOLLOWED))),
    "reach": f"{_levels(3)} SELECT count(DISTINCT n) FROM r WHERE d > 0 AND n <> $person",
    "shortest": f"{_levels(5)} SELECT min(d) FROM r WHERE n = $other AND d > 0 HAVING min(d) > 0",
    "q1": f"{TOP} 3",
    "q2": f"SELECT p.name, c.city, t.n FROM ({TOP} 1) t JOIN Person p ON p.id = t.dst "
    "JOIN LivesIn l ON l.src = p.id JOIN City c ON c.id = l.dst",
    "q3": f"SELECT l.dst, avg(p.age) AS a FROM {COUNTRIES} WHERE o.country = $country "
    "GROUP BY l.dst ORDER BY a LIMIT 5",
    "q4": f"SELECT o.country, count(*) AS n FROM {COUNTRIES} WHERE p.age BETWEEN $low AND $high "
    "GROUP BY o.country ORDER BY n DESC",
    "q5": f"SELECT count(*) FROM {TASTES} JOIN City c ON c.id = l.dst "
    "WHERE i.interest = $interest AND p.gender = $gender AND c.country = $country",
    "q6": f"SELECT l.dst, count(*) AS n FROM {TASTES} WHERE i.interest = $interest AND p.gender = $gender "
    "GROUP BY l.dst ORDER BY n DESC LIMIT 5",
    "q7": f"SELECT s.id, count(*) AS n FROM {TASTES} JOIN CityIn ci ON ci.src = l.dst JOIN State s ON s.id = ci.dst "
    "WHERE p.age BETWEEN $low AND $high AND s.country = $country AND i.interest = $interest "
    "GROUP BY s.id ORDER BY n DESC LIMIT 1",
    "q8": "SELECT count(*) FROM Follows a JOIN Follows b ON a.dst = b.src",
    "q9": "SELECT count(*) FROM Follows a JOIN Person p ON p.id = a.dst JOIN Follows b ON b.src = a.dst "
    "JOIN Person c ON c.id = b.dst WHERE p.age < $high AND c.age > $low",
}
NEAREST = (
    f"WITH h AS ({_further(FOLLOWED)}) SELECT p.id FROM h JOIN Person p ON p.id = h.n "
    f"ORDER BY array_cosine_distance(p.emb, CAST($vector AS FLOAT[{DIM}])) LIMIT 10"
)
MATCHING = f"{_further(FOLLOWED)} WHERE f.dst IN (SELECT rowid FROM bios WHERE bios MATCH $word)"


class DuckDB(Adapter):
    queries = {**QUERIES, "vector": NEAREST}

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        import duckdb

        self.version_of_package = duckdb.__version__
        self.connection = duckdb.connect(str(place / "graph.duckdb"))

    @property
    def version(self) -> str:
        return str(self.version_of_package)

    def load(self, files: Path, form: str) -> None:
        run = self.connection.execute
        run(
            "CREATE TABLE Person(id BIGINT PRIMARY KEY, name VARCHAR, gender VARCHAR, age BIGINT, "
            f"bio VARCHAR, emb FLOAT[{DIM}])"
        )
        for name in (*NODES, *EDGES):
            file = files / f"{name}.{'json' if form == 'ndjson' else form}"
            source = f"'{file}'" if form == "parquet" else f"read_ndjson('{file}')"
            into = "INSERT INTO Person" if name == "Person" else f"CREATE TABLE {name} AS"
            run(f"{into} SELECT * FROM {source}")
        run("CREATE INDEX follows_src ON Follows(src)")
        run("CHECKPOINT")

    def rows(self, text: str, params: Params) -> Rows:
        found: Rows = self.connection.execute(text, dict(params)).fetchall()
        return found

    def close(self) -> None:
        self.connection.close()


class SQLite(Adapter):
    queries = {**QUERIES, "text": MATCHING}

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.connection = sqlite3.connect(place / "graph.sqlite", isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -500000"):
            self.connection.execute(f"PRAGMA {setting}")

    @property
    def version(self) -> str:
        return sqlite3.sqlite_version

    def load(self, files: Path, form: str) -> None:
        if form != "parquet":
            raise Unsupported("no reader for NDJSON")
        self.connection.execute("BEGIN")
        for name in (*NODES, *EDGES):
            self._fill(name, files / f"{name}.parquet")
        for name in EDGES:
            self.connection.execute(f"CREATE INDEX {name}_out ON {name}(src, dst)")
            self.connection.execute(f"CREATE INDEX {name}_in ON {name}(dst, src)")
        self.connection.execute("COMMIT")
        self.connection.execute("ANALYZE")

    def _fill(self, name: str, file: Path) -> None:
        table = pq.read_table(file)
        columns = [column for column in table.column_names if column != "emb"]
        kinds = {"id": "INTEGER PRIMARY KEY", "src": "INTEGER", "dst": "INTEGER", "age": "INTEGER"}
        typed = ", ".join(f"{column} {kinds.get(column, 'TEXT')}" for column in columns)
        self.connection.execute(f"CREATE TABLE {name}({typed})")
        marks = ", ".join("?" for _ in columns)
        values = zip(*(table[column].to_pylist() for column in columns), strict=True)
        self.connection.executemany(f"INSERT INTO {name} VALUES ({marks})", values)

    def prepare(self) -> None:
        self.connection.execute(
            "CREATE VIRTUAL TABLE bios USING fts5(bio, content='Person', content_rowid='id')"
        )
        self.connection.execute("INSERT INTO bios(bios) VALUES ('rebuild')")

    def rows(self, text: str, params: Params) -> Rows:
        return self.connection.execute(text, dict(params)).fetchall()

    def close(self) -> None:
        self.connection.close()
