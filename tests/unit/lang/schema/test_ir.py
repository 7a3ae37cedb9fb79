"""The stored form of a schema: canonical, bounded, strict."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import Corrupt, FormatUnsupported
from omnigraph.lang.schema import catalog_of, compile_schema, decode_ir, encode_ir

from .casefile import HARBOUR, rules

STORED = encode_ir(compile_schema(HARBOUR))
VALID = [case.text for case in rules() if all(e.severity == "warning" for e in case.expected)]


@pytest.mark.parametrize("text", [HARBOUR, *VALID])
def test_what_is_stored_is_read_back(text: str) -> None:
    ir = compile_schema(text)
    assert decode_ir(encode_ir(ir)) == ir
    assert encode_ir(decode_ir(encode_ir(ir))) == encode_ir(ir)


def test_the_same_schema_gives_the_same_bytes() -> None:
    one = compile_schema("node A { a: String b: I32 }")
    other = compile_schema("node A { b: I32 a: String }")
    assert encode_ir(one) == encode_ir(other)


def test_the_catalog_has_every_type_by_name() -> None:
    catalog = catalog_of(compile_schema(HARBOUR))
    assert sorted(catalog.nodes) == ["Crew", "Log", "Port", "Vessel"]
    assert sorted(catalog.edges) == ["Calls", "Lane", "Mentors", "Serves"]
    port = catalog.nodes["Port"]
    assert list(port.properties) == ["code", "depth", "label", "opened", "region", "tags"]
    assert (port.key, port.indices, port.implements) == (("code",), (("label",),), ("Named",))
    assert (port.ranges[0].minimum, port.ranges[0].maximum) == (0.0, 60.0)
    assert port.checks[0].pattern == "^[A-Z]{3}$"
    assert catalog.edges["Serves"].cardinality.maximum == 1
    assert catalog.edges["Mentors"].uniques == (("dst", "src"),)


def damaged(**changes: object) -> bytes:
    document = json.loads(STORED)
    document.update(changes)
    return json.dumps(document, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b"\xff\xfe",
        STORED[:-1],
        STORED + b" ",
        STORED.replace(b'"property_id":', b'"property_ids":', 1),
        damaged(extra=1),
        damaged(nodes=[{"name": "A"}]),
        b"[" * 100_000,
    ],
)
def test_damage_is_reported(data: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_ir(data)


def test_repeated_identities_are_damage() -> None:
    one = encode_ir(compile_schema("node A { a: String b: String }"))
    assert b'"property_id":3' in one
    with pytest.raises(Corrupt, match="identities"):
        decode_ir(one.replace(b'"property_id":3', b'"property_id":2'))


def test_another_version_is_named() -> None:
    with pytest.raises(FormatUnsupported, match="99"):
        decode_ir(damaged(version=99))


@given(st.integers(0, len(STORED) - 1), st.binary(max_size=3))
def test_changed_bytes_are_another_schema_or_damage(index: int, piece: bytes) -> None:
    data = STORED[:index] + piece + STORED[index + 1 :]
    try:
        written = encode_ir(decode_ir(data))
    except (Corrupt, FormatUnsupported):
        written = data
    assert written == data
