"""What a fuzzer starts from: small valid inputs of every target, and words it may put together."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.core import records
from omnigraph.lang.schema import compile_schema, encode_ir
from omnigraph.model.tokens import Footprint
from omnigraph.server.routes import ROUTES, feed
from tests.fuzz.documents import BODIES
from tests.fuzz.targets import PARAMETERS, STORED
from tests.server import world
from tests.unit.lang.cypher.test_both_languages import PAIRS
from tests.unit.lang.cypher.test_errors import CASES as CASES_OF_CYPHER
from tests.unit.lang.query.casefile import rules
from tests.unit.write import test_load_records as loading

FOUND = Path(__file__).parent / "found"
CASES = Path(__file__).parents[1] / "cases"
CHAIN = "0123456789abcdef"
YAML = (
    world.GRAPH_RULES,
    world.SERVER_RULES,
    "version: 1\ncases:\n  - {id: a, actor: b, action: read, branch: main, expect: deny}\n",
    "defaults: {store: s3://b/g}\noperator: {actor: ada}\nservers: {p: {url: http://x}}\naliases: {q: r}\n",
    "graphs:\n  people: {uri: s3://b/p, queries: [q], policy: p.yaml}\nlimits: {threads_max: 2}\n",
    "branch: x\ncreate_from: main\nsources:\n  - records: d/*.jsonl\n  - {type: P, path: p.csv, columns: {A: b}}\n",
    "sources:\n  - type: K\n    jdbc: {url: 'jdbc:x', dbtable: f}\nthen: {optimize: true, merge_into: main}\n",
    "a: 2020-01-01\nb: 1e400\nc: !!binary aGk=\nd: &x [1]\ne: *x\nf: 0x1F\ng: ~\n",
)
JSON_BODY = (
    b'{"query":"query q() { match { $p: Person } return { $p.name } }","params":{"a":1},"max_rows":3}',
    b'{"data":"{}","mode":"merge","from":"main"}',
    b'{"name":"b","from":"main"}',
    b'{"source":"b","strategy":{"*":"ours"},"resolutions":[{"type":"A","id":"x","take":"ours"}]}',
    b'{"schema_source":"node A { a: I32 }","allow_data_loss":true}',
    b'{"type_names":["A"],"branch":null}',
)


def seeds(name: str) -> list[bytes]:
    """The inputs to start from: what once broke something, then valid ones."""
    kept = sorted((FOUND / name).glob("*"))
    made: Iterable[bytes] = MAKERS.get(name, lambda: ())()
    return [*(file.read_bytes() for file in kept), *made, b""]


def _schemas() -> Iterable[bytes]:
    yield (CASES / "schema" / "harbour.pg").read_bytes()
    yield from (text.encode() for text in _chunks(CASES / "schema" / "rules.txt"))


def _queries() -> Iterable[bytes]:
    yield PARAMETERS.encode()
    yield from (case.text.encode() for case in rules())


def _cypher() -> Iterable[bytes]:
    yield from (text.encode() for text, _ in PAIRS)
    yield from (case[0].encode() for case in CASES_OF_CYPHER)
    yield b"MATCH (p:Port)-[l:Lane*0..2]->(q) WITH p, collect(q) AS qs UNWIND qs AS x RETURN x.name"
    yield b"UNWIND $c AS x MERGE (p:Port {code: $b}) ON CREATE SET p.name = toString(x)"
    yield b"RETURN datetime('2015-07-21T21:40[Europe/Oslo]') + duration({days: $a}) * 1e9, time($b)"
    yield b"RETURN date.truncate('week', date('2015-W30'), {day: 2}).year, duration('P1Y2.5M-3DT4H')"
    yield b"RETURN [x IN range(1, $a) WHERE x > 0 | {k: x}], reduce(s = 0, x IN [1] | s + x)"


def _chunks(file: Path) -> list[str]:
    chunks = re.split(r"(?m)^# .*\n", file.read_text())[1:]
    return [chunk.partition("\n=> ")[0] for chunk in chunks]


def _values() -> Iterable[bytes]:
    texts = ("1", "-0.0", "1e400", '"2020-01-01T00:00:00.5+01:00"', '"2020-01-01"', "[1,2]", "true")
    return (text.encode() for text in (*texts, '["2020-01-01"]', "[0.5,1]", '"NaN"', "null"))


def _records() -> Iterable[bytes]:
    good = [loading.thing(name=f"n{i}", small=i, ratio=i / 2) for i in range(5)]
    yield "\n".join(good).encode()
    edge = '{"edge":"Links","from":"a","to":"b","data":{"since":1}}'
    yield "\n".join([*good, edge] * 2).encode()
    yield from (line.encode("utf-8", "replace") for line, _ in loading.BAD_LINES)


def _rows() -> Iterable[bytes]:
    yield b"\n".join(b'{"name":"n%d","small":%d,"day":"2020-01-0%d"}' % (i, i, i) for i in range(6))
    yield b'{"from":"a","to":"b","since":1,"weight":0.5}\n' * 5


def _stored() -> Iterable[bytes]:
    change = records.TableChange(inserted=1, touched="=AAAAAAAAAAA=", inserted_ids=("a",))
    member = records.Member("load", "op", "ada", "why", "key", "print", {"t": change}, {"n": 1})
    entry = records.TableEntry("node", "A", "nodes/1-x", "7", 3)
    made: dict[Any, list[records.Struct]] = {
        records.GraphStamp: [records.GraphStamp(1, "g", CHAIN, 1)],
        records.ChainObject: [
            records.Commit(
                *("g", CHAIN, 1, "main", (f"{CHAIN}.0",), 5, "load", "ab" * 32, 0, f"{CHAIN}.1"),
                tables={"t": entry},
                members=(member,),
                recent=(records.Recent("op", 1),),
                merged={CHAIN: f"{CHAIN}.0"},
            ),
            records.Seal(CHAIN, 2, "op", "ada", 4),
            records.Tombstone(CHAIN, 1, "main", (), 5, "load", f"{CHAIN}.1", ("op",), ("key",)),
        ],
        records.RefState: [
            records.LiveRef(CHAIN, "op", False, CHAIN, 3),
            records.DeletedRef(CHAIN, "op"),
        ],
        records.GcRecord: [records.GcRecord(1, {CHAIN: 2}, (CHAIN,), ((CHAIN, 1),), ("p",))],
        records.StoredSchema: [records.StoredSchema("node A {}", "{}")],
        records.KeyClaim: [records.KeyClaim("op", "print", "main", CHAIN, 2)],
        records.StoredPlan: [
            records.StoredPlan("p", "op", "load", "main", 0, 1, ("t",), {"a": [1]})
        ],
    }
    for number, kind in enumerate(STORED):
        for thing in made[kind]:
            yield bytes([number]) + records.unpack(records.encode(thing), "seed")
            yield bytes([number]) + records.encode(thing)


def _footprints() -> Iterable[bytes]:
    for count in (0, 3, 600):
        yield (
            Footprint.of(np.arange(count, dtype=np.uint64) * np.uint64(2**40 + 9))
            .to_text()
            .encode()
        )
    yield b"*"


def _names() -> Iterable[bytes]:
    texts = (f"{CHAIN}.7", f"{CHAIN}.7.1", "main", "review/hä fen", "_46ix_20a_2fb", "+a/b", "../x")
    return (text.encode() for text in texts)


def _bodies() -> Iterable[bytes]:
    return (bytes([n]) + body for n in range(len(BODIES)) for body in JSON_BODY)


def _query_strings() -> Iterable[bytes]:
    yield b"branch=main&limit=5&kind=node&kind=edge&type=A&op=insert&cursor=x&start=now"
    yield b"entity=node&type=A&id=x&property=p&snapshot=%C3%A9&a=1&b=2&maintenance=true"


def _packed() -> Iterable[bytes]:
    import zstandard

    yield b"\1" + gzip.compress(b"a" * 100)
    yield b"\1" + gzip.compress(bytes(200_000)) * 2
    yield b"\2" + zstandard.compress(b"a" * 100_000)
    yield b"\0plain"


def _parts() -> Iterable[bytes]:
    table = pa.table({"id": ["a", "b"], "n": pa.array([1, None]), "l": [["x"], []]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    head = b'--b\r\nContent-Disposition: attachment; name="A"\r\n\r\n'
    yield head + sink.getvalue().to_pybytes() + b"\r\n--b--\r\n"
    yield head + b"x\r\n--b\r\nContent-Disposition: form-data\r\n\r\n\r\n--b--\r\n"


def _cursors() -> Iterable[bytes]:
    position = feed.Position("cursor", "g", "main", "f", f"{CHAIN}.3", 2)
    yield feed.token_of(position).encode()
    yield msgspec.json.encode(position)


def _requests() -> Iterable[bytes]:
    for number, route in enumerate(ROUTES):
        body = JSON_BODY[number % len(JSON_BODY)] if route.body is not None else b""
        yield bytes([number]) + b"?branch=main\n" + body


def _resolutions() -> Iterable[bytes]:
    yield b'{"strategy":"ours","resolutions":[{"type":"Thing","id":"a","field":"small","value":1}]}'
    values = ('"2020-01-01"', "[1,2]", '["a"]', "1e400", '"base64:aGk="', "null", "-1")
    for name in ("day", "moment", "shape", "words", "big", "huge", "part", "mood", "body", "flag"):
        for value in values:
            yield (
                '{"strategy":{"A":"theirs"},"resolutions":[{"type":"Thing","id":"a",'
                f'"field":"{name}","value":{value}}}]}}'
            ).encode()


MAKERS: dict[str, Callable[[], Iterable[bytes]]] = {
    "schema_text": _schemas,
    "query_text": _queries,
    "cypher_text": _cypher,
    "parameters": _values,
    "ndjson": _records,
    "plain_rows": _rows,
    "stored_object": _stored,
    "stored_schema": lambda: [encode_ir(compile_schema(t.decode())) for t in list(_schemas())[:1]],
    "footprint": _footprints,
    "names": _names,
    "http_body": _bodies,
    "query_string": _query_strings,
    "packed_body": _packed,
    "multipart": _parts,
    "feed_cursor": _cursors,
    "load_reference": lambda: [b"s3://bucket/graph/uploads/a", b"s3://other/in/b", b"file:///x/y"],
    "http_request": _requests,
    "resolutions": _resolutions,
    "yaml_documents": lambda: [text.encode() for text in YAML],
    "token_file": lambda: [b'{"ada":"t1","grace":"t2"}', b'{"a":[1]}'],
    "error_answer": lambda: [
        b'{"error":"x","error_code":"query_invalid","kind":"conflict","details":{"a":1},"help":"h",'
        b'"span":{"start":0,"end":1,"line":1,"column":1}}'
    ],
}
WORDS = (
    *("node", "edge", "interface", "enum", "String", "I32", "Vector(2)", "@key", "@unique", "->"),
    *("query", "match", "return", "optional", "not", "insert", "update", "delete", "where", "$p"),
    *('"type"', '"data"', '"edge"', '"from"', '"to"', "null", "\\u0000", "\\ud800", "1e400"),
    *("Thing", "Links", "9223372036854775808", "-0.0", "NaN", "2020-02-30", "base64:"),
    *("version:", "- &a", "*a", "<<:", "!!python/object:", "%2e%2e", "\r\n--b", "{{{{", "[[[["),
)
