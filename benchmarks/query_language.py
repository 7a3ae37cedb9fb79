"""How long queries take to compile: `python -m benchmarks.query_language`.

Prints the median processor time of several runs. Budgets: 1,000 queries of usual size, from text to plan, within 1.5 s;
one in Cypher within 2 ms.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from omnigraph.lang.cypher import compile_cypher
from omnigraph.lang.query import compile_query, format_queries, lint_queries, parse_queries
from omnigraph.lang.schema import catalog_of, compile_schema

RUNS = 7
QUERIES = 1_000

SCHEMA = """
node Person { name: String @key  age: I32?  bio: String? @index  face: Vector(4)?  joined: Date? }
node Company { name: String @key  size: I64? }
node Paper { title: String @key  abstract: String? @index  year: I32? }
edge Knows: Person -> Person { since: Date?  weight: F64? }
edge WorksAt: Person -> Company { role: String? }
edge Wrote: Person -> Paper
edge Cites: Paper -> Paper
"""

TEMPLATES = (
    """query lookup_{i}($name: String) {{
  match {{ $p: Person {{ name: $name }} }}
  return {{ $p.name, $p.age, $p.bio }}
}}""",
    """query friends_{i}($name: String, $low: I32) @description("friends of friends") {{
  match {{
    $p: Person {{ name: $name }}
    $p knows{{1,2}} $f
    $f.age > $low
    $f worksAt $c
    not {{ $f wrote $_ }}
  }}
  return {{ $f.name as friend, $c.name as company, $f.age as age }}
  order {{ age desc, friend }}
  limit 20
}}""",
    """query degrees_{i}() {{
  match {{
    $p: Person
    $p wrote $w
    $w cites $x
    $x.year >= 2000 and ($x.year < 2020 or $x.title contains "graph")
    optional {{ $p $k:knows $q $k.weight > 0.5 }}
  }}
  return {{ $p.name as name, count(distinct $x) as cited, avg($k.weight) as weight }}
  having {{ cited > 2 }}
  order {{ cited desc }}
  limit 50
}}""",
    """query search_{i}($q: Vector(4), $words: String) {{
  match {{
    $p: Person
    $p.joined > date("2015-01-01")
    $p wrote $w
    search($w.abstract, $words)
  }}
  return {{ $p.name as name, $w.title as title, nearest($p.face, $q) as distance }}
  order {{ distance }}
  limit 10
}}""",
    """query change_{i}($name: String, $age: I32) {{
  insert Person {{ name: $name, age: $age, joined: date("2024-01-01") }}
  insert Knows {{ from: $name, to: "Ada", weight: 0.5 }}
  update Person set {{ age: coalesce(age, 0) + 1 }} where name = $name or age is null
}}""",
)

CYPHER: dict[str, dict[str, object]] = {
    "MATCH (p:Person {name: $name}) RETURN p.name, p.age, p.bio": {"name": "Ada"},
    """MATCH (p:Person {name: $name})-[:Knows*1..2]->(f:Person)-[:WorksAt]->(c:Company)
WHERE f.age > $low AND NOT EXISTS { (f)-[:Wrote]->() }
RETURN f.name AS friend, c.name AS company, f.age AS age ORDER BY age DESC, friend LIMIT 20""": {
        "name": "Ada",
        "low": 30,
    },
    """MATCH (p:Person)-[:Wrote]->(w:Paper)-[:Cites]->(x:Paper)
WHERE x.year >= 2000 AND (x.year < 2020 OR x.title CONTAINS 'graph')
OPTIONAL MATCH (p)-[k:Knows]->(q:Person) WHERE k.weight > 0.5
WITH p, count(DISTINCT x) AS cited, avg(k.weight) AS weight WHERE cited > 2
RETURN p.name AS name, cited, weight ORDER BY cited DESC LIMIT 50""": {},
    """MATCH (a:Person {name: $name}) MERGE (b:Person {name: 'Ada'})
CREATE (a)-[:Knows {weight: 0.5}]->(b) SET a.age = coalesce(a.age, 0) + 1""": {"name": "Bob"},
}


def median_ms(work: Callable[[], object]) -> float:
    """The median processor time of several runs, in milliseconds."""
    times = []
    for _ in range(RUNS):
        started = time.process_time()
        work()
        times.append((time.process_time() - started) * 1000)
    return statistics.median(times)


def main() -> None:
    catalog = catalog_of(compile_schema(SCHEMA))
    texts = [TEMPLATES[i % len(TEMPLATES)].format(i=i) for i in range(QUERIES)]
    whole = "\n".join(texts)
    characters = sum(map(len, texts)) // len(texts)

    def compile_all() -> None:
        for text in texts:
            compile_query(text, catalog)

    print(f"{QUERIES} queries of {characters} characters on average")
    print(f"  compile         {median_ms(compile_all):8.1f} ms  (budget 1500 ms)")
    print(f"  parse as a file {median_ms(lambda: parse_queries(whole)):8.1f} ms")
    print(f"  format          {median_ms(lambda: format_queries(whole)):8.1f} ms")
    print(f"  lint            {median_ms(lambda: lint_queries(whole, catalog)):8.1f} ms")
    for text, params in CYPHER.items():
        spent = median_ms(lambda t=text, p=params: compile_cypher(t, catalog, p))  # type: ignore[misc]
        print(f"  Cypher of {len(text):3} characters {spent:8.2f} ms  (budget 2 ms)")


if __name__ == "__main__":
    main()
