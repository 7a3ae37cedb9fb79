"""How far a load reads: blank lines cost nothing, a full report ends it, and what is reported is bounded and right."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import Violation
from omnigraph.lang.schema import catalog_of, compile_schema
from omnigraph.values.misfit import SHOWN_CHARACTERS_MAX
from omnigraph.write.input import files, lines, records
from omnigraph.write.input.files import blocks_of
from omnigraph.write.input.lines import PAD, LineBlock, lines_of, structural_characters
from omnigraph.write.input.options import Options
from omnigraph.write.input.problems import (
    PROBLEMS_MAX,
    Gathered,
    InputInvalid,
    Problems,
)
from omnigraph.write.input.records import LineFormat, read_blocks

CATALOG = catalog_of(compile_schema("node Person { name: String @key  age: I32? }"))
GOOD = '{"type":"Person","data":{"name":"a"}}'
SMALL = Options(block_bytes=64)


def _read(text: str, problems: Problems, options: Options = SMALL) -> int:
    """How many rows there were."""
    source = blocks_of(io.BytesIO(text.encode("utf-8", "surrogatepass")), None, options)
    rows = sum(part.rows for part in read_blocks(source, LineFormat(CATALOG, options), problems))
    problems.settle()
    return rows


def _refused(text: str, options: Options = SMALL) -> list[Violation]:
    problems = Problems()
    with pytest.raises(InputInvalid):
        _read(text, problems, options)
    return problems.found


@given(st.text("\n \t\rab", max_size=40))
def test_lines_are_stripped_and_numbered_as_text_is(text: str) -> None:
    raw = text.encode()
    expected = [
        (number, line.strip(" \t\r").encode())
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip(" \t\r")
    ]
    assert list(lines_of(LineBlock(raw + bytes(PAD), len(raw), 1)).each()) == expected


@given(st.recursive(st.text('a"\\{}[],:'), lambda inner: st.lists(inner, max_size=4)))
def test_structure_is_counted_outside_texts(value: object) -> None:
    def counted(part: object) -> int:
        if not isinstance(part, list):
            return 0
        return 2 + max(0, len(part) - 1) + sum(map(counted, part))

    line = json.dumps(value, separators=(",", ":")).encode()
    assert structural_characters(line) == 1 + counted(value)


def test_structure_is_counted_across_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PIECE_BYTES", 3)
    assert structural_characters(rb'{"a,:\"":["x,",1,2]}') == 1 + 2 + 1 + 2 + 2


def test_blocks_of_many_lines_are_cut_and_counted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LINES_MAX", 4)
    text = "\n".join(["", GOOD, ""] * 20) + "\nx"
    assert [problem.line for problem in _refused(text, Options())] == [61]
    assert _read("\n".join([GOOD, ""] * 50), Problems(), Options()) == 50


@pytest.mark.parametrize(
    "bad", ["{}", "x", '{"type":"T#"}', '{"a":1,"type":"T#"}', '{"edge":"E#"}']
)
def test_a_full_report_ends_the_reading(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line is bad: the first hundred are reported, and few more are looked at closely."""
    looked = [0]
    exactly = LineFormat.exactly

    def counting(self: LineFormat, line: bytes) -> object:
        looked[0] += 1
        return exactly(self, line)

    monkeypatch.setattr(LineFormat, "exactly", counting)
    text = "\n".join(bad.replace("#", str(number)) for number in range(20_000))
    found = _refused(text, Options())
    assert [problem.line for problem in found] == list(range(1, PROBLEMS_MAX + 1))
    assert looked[0] < 10 * PROBLEMS_MAX


def test_what_is_good_before_a_full_report_is_read_and_what_is_bad_is_in_order() -> None:
    text = "\n".join(["{}", GOOD] * 500)
    assert [problem.line for problem in _refused(text, Options())] == list(range(1, 200, 2))


def test_whoever_wants_everything_gets_everything() -> None:
    everything = Gathered()
    _read("\n".join(["{}"] * 1000), everything, Options())
    assert [problem.line for problem in everything.found] == list(range(1, 1001))


def test_few_bad_lines_among_many_forms_are_found() -> None:
    """More beginnings than are tried, and bad lines behind them."""
    spaced = [GOOD.replace(":", ":" + " " * (number % 60), 1) for number in range(600)]
    text = "\n".join([*spaced, "{}", *spaced, '{"type":"Nobody"}'])
    assert [problem.line for problem in _refused(text, Options())] == [601, 1202]
    assert _read("\n".join(spaced), Problems(), Options()) == 600


def test_long_lines_count_for_several() -> None:
    line = json.dumps({"type": "Person", "data": {"nothing": "x" * records.LONG_LINE_BYTES * 9}})
    found = _refused("\n".join([line] * 40), Options())
    assert [problem.line for problem in found] == list(range(1, PROBLEMS_MAX // 10 + 1))


def test_records_are_held_in_small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """One doubtful line leaves a block to the exact reading, which puts its rows together now and then."""
    monkeypatch.setattr(records, "RECORDS_MAX", 3)
    odd = '{"type":"Person","data":{"name":"a","age":null},"data":{}}'
    fine = [GOOD.replace("}}", f',"age":{number}}}}}') for number in range(10)]
    form = LineFormat(CATALOG, Options())
    good = "\n".join(fine).encode()
    parts = list(read_blocks(blocks_of(io.BytesIO(good), None, Options()), form, Problems()))
    monkeypatch.setattr(records, "_by_template", lambda lines, form, parts: lines)
    monkeypatch.setattr(records, "_by_type", lambda lines, form, parts, most: lines)
    slow = list(read_blocks(blocks_of(io.BytesIO(good), None, Options()), form, Problems()))
    assert [p.columns["age"].to_pylist() for p in slow] == [
        p.columns["age"].to_pylist() for p in parts
    ]
    assert _refused("\n".join([odd, *fine]))[0].line == 1


@pytest.mark.parametrize(
    "line",
    [
        r'{"type":"Person","data":{"\ud800":1}}',
        r'{"type":"Person","data":{"age":"\udc00"}}',
        r'{"type":"Person","data":{"age":["\udc00"]}}',
        '{"type":"' + "T" * 5000 + '"}',
        '{"type":"Person","data":{"age":[' + "1," * 5000 + "1]}}",
        '{"type":"Person","data":{"age":' + "[" * 900 + "]" * 900 + "}}",
    ],
    ids=["half a name", "half a text", "half in a list", "long name", "long list", "deep list"],
)
def test_what_is_reported_is_short_and_can_be_written(line: str) -> None:
    (problem,) = _refused(line)
    told = json.dumps(problem.to_json(), ensure_ascii=False).encode()
    assert len(told) < 4 * SHOWN_CHARACTERS_MAX


def test_the_first_member_that_occurs_twice_is_named() -> None:
    (problem,) = _refused('{"type":"Person","b":1,"a":1,"a":2,"b":2}')
    assert problem.property == "a"
