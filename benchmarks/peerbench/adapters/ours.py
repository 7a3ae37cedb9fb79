"""omnigraph through its public verbs; every call starts from the text of the query."""

from __future__ import annotations

from pathlib import Path

from benchmarks.loading import SCHEMA
from benchmarks.peerbench.adapters.base import Adapter, Params, Rows
from benchmarks.peerbench.gen import DIM, EDGES, NODES

QUERIES = {
    "point": """query point($person: String) {
        match { $p: Person { id: $person } } return { $p.name as name, $p.age as age } }""",
    "hop1": """query hop1($person: String, $age: I64) {
        match { $a: Person { id: $person }  $a follows $b  $b.age > $age }
        return { count(distinct $b) as n } }""",
    "hop2": """query hop2($person: String, $age: I64) {
        match { $a: Person { id: $person }  $a follows $x  $x follows $b  $b.age > $age }
        return { count(distinct $b) as n } }""",
    "hop3": """query hop3($person: String, $age: I64) {
        match { $a: Person { id: $person }  $a follows $x  $x follows $y  $y follows $b  $b.age > $age }
        return { count(distinct $b) as n } }""",
    "reach": """query reach($person: String) {
        match { $a: Person { id: $person }  $a follows{1,3} $b } return { count(distinct $b) as n } }""",
    "shortest": """query shortest($person: String, $other: String) {
        match { $a: Person { id: $person }  $b: Person { id: $other }  $p = path $a follows{1,5} $b }
        return { length($p) as n } }""",
    "q1": """query q1() { match { $f: Person  $f follows $p }
        return { $p.@id as id, count($f) as n } order { n desc } limit 3 }""",
    "q2": """query q2() { match { $f: Person  $f follows $p  $p livesIn $c }
        return { $p.name as name, $c.city as city, count($f) as n } order { n desc } limit 1 }""",
    "q3": """query q3($country: String) {
        match { $p: Person  $p livesIn $c  $c cityIn $s  $s stateIn $o  $o.country = $country }
        return { $c.@id as city, avg($p.age) as n } order { n asc } limit 5 }""",
    "q4": """query q4($low: I64, $high: I64) {
        match { $p: Person  $p.age >= $low  $p.age <= $high  $p livesIn $c  $c cityIn $s  $s stateIn $o }
        return { $o.country as country, count(*) as n } order { n desc } }""",
    "q5": """query q5($gender: String, $country: String, $interest: String) {
        match { $p: Person { gender: $gender }  $p livesIn $c  $c.country = $country
                $p hasInterest $t  $t.interest = $interest }
        return { count(*) as n } }""",
    "q6": """query q6($gender: String, $interest: String) {
        match { $p: Person { gender: $gender }  $p hasInterest $t  $t.interest = $interest  $p livesIn $c }
        return { $c.@id as city, count(*) as n } order { n desc } limit 5 }""",
    "q7": """query q7($country: String, $low: I64, $high: I64, $interest: String) {
        match { $p: Person  $p.age >= $low  $p.age <= $high  $p hasInterest $t  $t.interest = $interest
                $p livesIn $c  $c cityIn $s  $s.country = $country }
        return { $s.@id as state, count(*) as n } order { n desc } limit 1 }""",
    "q8": """query q8() {
        match { $a: Person  $a follows $b  $b follows $c } return { count(*) as n } }""",
    "q9": """query q9($low: I64, $high: I64) {
        match { $a: Person  $a follows $b  $b.age < $high  $b follows $c  $c.age > $low }
        return { count(*) as n } }""",
    "vector": f"""query vector($person: String, $vector: Vector({DIM})) {{
        match {{ $a: Person {{ id: $person }}  $a follows $x  $x follows $b }}
        return distinct {{ nearest($b.emb, $vector) as distance, $b.id as id }} order {{ distance }} limit 10 }}""",
    "text": """query text($person: String, $word: String) {
        match { $a: Person { id: $person }  $a follows $x  $x follows $b  search($b.bio, $word) }
        return distinct { $b.id as id } }""",
}


class Omnigraph(Adapter):
    queries = QUERIES

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        # All of the engine is imported now, as peers do it, and not within a measured call.
        import omnigraph
        import omnigraph.core.create
        import omnigraph.operations
        import omnigraph.storage.lance

        self.module, self.uri = omnigraph, str(place / "graph")
        self.open = omnigraph.open

    @property
    def version(self) -> str:
        return self.module.__version__

    def load(self, files: Path, form: str) -> None:
        """Create the graph and load it, checked, as one commit."""
        self.graph = self.module.init(self.uri, schema=SCHEMA)
        tables = {name: files / f"{name}.parquet" for name in (*NODES, *EDGES)}
        source = tables if form == "parquet" else files / "graph.jsonl"
        self.graph.load(source, mode="append", engine="local")

    def reopen(self) -> None:
        self.graph = self.open(self.uri)

    def prepare(self) -> None:
        self.graph.optimize()
        self.reopen()

    def rows(self, text: str, params: Params) -> Rows:
        ids = {name: str(params[name]) for name in ("person", "other") if name in params}
        found = self.graph.query(text, {**params, **ids}).rows
        return [tuple(row.values()) for row in found]
