"""Graph records as lines of JSON: every strict error with its line, and the fast readings against the exact one."""

from __future__ import annotations

import io
import json
import math
import string
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import Violation
from omnigraph.lang.schema import catalog_of, compile_schema
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.changes import Incoming
from omnigraph.write.input import records
from omnigraph.write.input.exact import Record
from omnigraph.write.input.files import blocks_of
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import to_incoming
from omnigraph.write.input.problems import InputInvalid, Problems
from omnigraph.write.input.records import LineFormat, read_blocks

CATALOG = catalog_of(
    compile_schema(
        """
        node Thing {
          name: String?
          type: String?
          flag: Bool?
          small: I32?
          big: I64?
          count: U32?
          huge: U64?
          ratio: F64?
          part: F32?
          day: Date?
          moment: DateTime?
          shape: Vector(2)?
          words: [String]?
          numbers: [I64]?
          days: [Date]?
          mood: enum(glad, sad)?
          body: Blob?
        }
        node Other { label: String? }
        edge Links: Thing -> Other { weight: F64?  since: I64? }
        """
    )
)


def read(text: bytes | str, **options: Any) -> list[Incoming]:
    """The rows of a text; raises what a load would."""
    raw = text.encode() if isinstance(text, str) else text
    chosen = Options(**options)
    problems = Problems()
    parts = read_blocks(
        blocks_of(io.BytesIO(raw), None, chosen), LineFormat(CATALOG, chosen), problems
    )
    found = to_incoming(parts)
    problems.settle()
    return found


def problems_of(text: bytes | str, **options: Any) -> list[dict[str, Any]]:
    with pytest.raises(InputInvalid) as caught:
        read(text, **options)
    found = caught.value.details["violations"]
    assert isinstance(found, list)
    return found


def thing(**data: Any) -> str:
    return json.dumps({"type": "Thing", "data": data})


def only(text: str, column: str, **options: Any) -> list[Any]:
    """The values of one column of the only type in a text."""
    (incoming,) = read(text, **options)
    values = incoming.rows[column].to_pylist()
    assert isinstance(values, list)
    return values


# --- what is refused -----------------------------------------------------------------------------------------------

BAD_LINES = [
    ("{", "not JSON"),
    ("// note", "not JSON"),
    ("[1]", "one JSON object"),
    ("5", "one JSON object"),
    ('{"type":"Thing"} {"type":"Thing"}', "not JSON"),
    ('{"type":"Thing","type":"Thing"}', "'type' is duplicated"),
    ('{"type":"Thing","data":{"name":"a","name":"b"}}', "'name' is duplicated"),
    ('{"type":"Thing","data":{"ratio":NaN}}', "NaN"),
    ('{"type":"Thing","data":{"ratio":-Infinity}}', "Infinity"),
    ('{"type":"Thing","data":{"ratio":1e999}}', "too large"),
    ('{"type":"Thing","data":{"ratio":.5}}', "not JSON"),
    ('{"type":"Thing","data":{"ratio":01}}', "not JSON"),
    ('{"type":"Thing","data":{"name":"a\tb"}}', "not JSON"),
    ('{"type":"Thing","data":{"name":"\\ud800"}}', "surrogate"),
    ("{'type':'Thing'}", "not JSON"),
    ('{"data":{}}', "exactly one of 'type' and 'edge'"),
    ('{"type":"Thing","edge":"Links"}', "exactly one of 'type' and 'edge'"),
    ('{"type":"Thing","colour":1}', "'colour'"),
    ('{"type":"Thing","from":"a"}', "'from'"),
    ('{"type":"Thing","_rowid":1}', "'_rowid' is reserved"),
    ('{"type":5}', "'type' of type String: expected a text"),
    ('{"type":"Thing","data":[]}', "'data' must be an object"),
    ('{"type":"Thing","data":null}', "'data' must be an object"),
    ('{"type":"thing"}', "unknown node type 'thing'; did you mean 'Thing'?"),
    ('{"edge":"Nope","from":"a","to":"b"}', "unknown edge type 'Nope'"),
    ('{"edge":"Links","from":"a"}', "'to' is missing"),
    ('{"edge":"Links","from":1,"to":"b"}', "'from' of type String: expected a text"),
    ('{"edge":"Links","from":"a","to":null}', "'to' of type String: expected a text"),
    ('{"edge":"Links","from":"a","to":"b","data":{"src":"a"}}', "'src'"),
    ('{"edge":"Links","from":"a","to":"b","data":{"from":"a"}}', "'from'"),
    ('{"type":"Thing","data":{"_rowaddr":1}}', "'_rowaddr' is reserved"),
    ('{"type":"Thing","data":{"nmae":"x"}}', "no property 'nmae'; did you mean 'name'?"),
    ('{"type":"Thing","data":{"id":5}}', "'id' of type String: expected a text"),
    ('{"type":"Thing","data":{"id":null}}', "'id' of type String: expected a text"),
    (thing(name=1), "'name' of type String?: expected a text, got the number 1"),
    (thing(flag="true"), "'flag' of type Bool?: expected"),
    (thing(flag=1), "'flag' of type Bool?: expected"),
    (thing(small="3"), "'small' of type I32?: expected"),
    (thing(small=True), "'small' of type I32?: expected"),
    ('{"type":"Thing","data":{"small":1.0}}', "'small' of type I32?: expected"),
    ('{"type":"Thing","data":{"small":1e2}}', "'small' of type I32?: expected"),
    (thing(small=2**31), "expected a whole number from -2147483648 to 2147483647"),
    (thing(big=2**63), "to 9223372036854775807"),
    (thing(count=-1), "to 4294967295"),
    (thing(huge=2**64), "to 18446744073709551615"),
    (thing(ratio="1.5"), "'ratio' of type F64?: expected"),
    (thing(part=1e39), "too large for F32"),
    (thing(day="2020-13-01"), "expected a date"),
    (thing(day="2020-1-1"), "expected a date"),
    (thing(day=1.5), "'day' of type Date?: expected"),
    (thing(day=10**12), "expected a date"),
    (thing(moment="yesterday"), "expected a date-time"),
    (thing(moment="2020-01-01T25:00:00Z"), "expected a date-time"),
    (thing(shape=[1]), "expected 2 numbers, got 1"),
    (thing(shape=[1, None]), "number"),
    (thing(shape=[1, "2"]), "number"),
    (thing(shape="x"), "expected a list of 2 numbers"),
    (thing(words=["a", None]), "contains a null"),
    (thing(words="a"), "'words' of type [String]?: expected"),
    (thing(numbers=[1, 2.0]), "'numbers' of type [I64]?: expected"),
    (thing(body="base64:***"), "base64"),
    (thing(body=5), "'body' of type Blob?: expected"),
    (thing(body="s3://bucket/key"), "OMNIGRAPH_BLOB_ALLOW"),
]


@pytest.mark.parametrize(("line", "words"), BAD_LINES)
@pytest.mark.parametrize("good_lines", [0, 50])
def test_a_bad_line_is_refused_by_its_number(line: str, words: str, good_lines: int) -> None:
    """Alone, and among lines that the fast readings take."""
    good = [thing(name=f"n{i}", small=i) for i in range(good_lines)]
    (problem,) = problems_of("\n".join([*good, "", line, *good]))
    assert words in problem["message"]
    assert problem["line"] == good_lines + 2


def test_bytes_that_are_no_utf_8_are_refused_by_line() -> None:
    lines = [thing(name="é").encode(), b'{"type":"Thing","data":{"name":"\xff"}}']
    (problem,) = problems_of(b"\n".join(lines * 1))
    assert (problem["line"], "UTF-8" in problem["message"]) == (2, True)
    good = [thing(name=f"n{i}").encode() for i in range(50)]
    assert problems_of(b"\n".join([*good, lines[1]]))[0]["line"] == 51


def test_all_problems_are_listed_up_to_a_bound() -> None:
    found = problems_of("\n".join(thing(small=str(i)) for i in range(7)))
    assert [p["line"] for p in found] == list(range(1, 8))
    assert len(problems_of("\n".join(thing(small=str(i)) for i in range(500)))) == 100


def test_a_line_over_the_limit_is_refused_by_the_limits_name() -> None:
    long = thing(name="x" * 2000)
    (problem,) = problems_of(
        thing(name="a") + "\n" + long, line_bytes_max=1000, line_structure_max=100
    )
    assert "line_bytes_max" in problem["message"]
    with pytest.raises(InputInvalid, match="line_bytes_max"):
        read(thing(name="x" * 50_000), line_bytes_max=1000, block_bytes=512)


def test_a_line_with_too_much_structure_is_refused_by_the_limits_name() -> None:
    many = thing(numbers=list(range(200)))
    (problem,) = problems_of(many, line_structure_max=150)
    assert "line_structure_max" in problem["message"]
    quoted = thing(name="," * 500)
    assert only(quoted, "name", line_structure_max=150) == ["," * 500]


def test_an_object_over_two_lines_is_refused() -> None:
    text = '{"type":"Thing","data":\n{"type":"x"}} {"type":"Thing"}\n' * 5
    assert [p["line"] for p in problems_of(text)] == list(range(1, 11))


# --- what is accepted ------------------------------------------------------------------------------------------------


def test_values_of_every_type() -> None:
    (incoming,) = read(
        thing(
            name="é\u0000\U0001f600",
            flag=True,
            small=-(2**31),
            big=2**63 - 1,
            count=2**32 - 1,
            huge=2**64 - 1,
            ratio=1,
            part=0.5,
            day="2020-02-29",
            moment="2020-01-01T00:00:00.123456+02:00",
            shape=[1, 2.5],
            words=["a", "b"],
            numbers=[],
            days=["1970-01-02", 2],
            mood="other",
            body="base64:aGk=",
        )
    )
    row = incoming.rows.to_pylist()[0]
    assert row["moment"].isoformat() == "2019-12-31T22:00:00.123000+00:00"
    assert row["day"].isoformat() == "2020-02-29"
    assert [day.isoformat() for day in row["days"]] == ["1970-01-02", "1970-01-03"]
    plain = {k: v for k, v in row.items() if k not in ("moment", "day", "days")}
    assert plain == {
        "name": "é\u0000\U0001f600",
        "flag": True,
        "small": -(2**31),
        "big": 2**63 - 1,
        "count": 2**32 - 1,
        "huge": 2**64 - 1,
        "ratio": 1.0,
        "part": 0.5,
        "shape": [1.0, 2.5],
        "words": ["a", "b"],
        "numbers": [],
        "mood": "other",
        "body": b"hi",
    }


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2020-01-01", "2020-01-01T00:00:00+00:00"),
        ("2020-01-01T10:00:00", "2020-01-01T10:00:00+00:00"),
        ("2020-01-01T10:00:00Z", "2020-01-01T10:00:00+00:00"),
        ("2020-01-01 10:00:00+01:30", "2020-01-01T08:30:00+00:00"),
        ("2020-01-01T10:00:00.9999999Z", "2020-01-01T10:00:00.999000+00:00"),
        (0, "1970-01-01T00:00:00+00:00"),
        (-1, "1969-12-31T23:59:59.999000+00:00"),
    ],
)
@pytest.mark.parametrize("count", [1, 20])
def test_date_times_are_instants_in_whole_milliseconds(text: object, iso: str, count: int) -> None:
    found = only("\n".join([thing(moment=text)] * count), "moment")
    assert [value.isoformat() for value in found] == [iso] * count


def test_numbers_json_lacks_are_read_as_exports_write_them() -> None:
    found = only("\n".join(thing(ratio=v) for v in ("NaN", "Infinity", "-Infinity", 1)), "ratio")
    assert math.isnan(found[0])
    assert found[1:] == [math.inf, -math.inf, 1.0]


def test_blank_lines_and_carriage_returns_do_not_matter() -> None:
    text = "\r\n" + "\r\n\r\n".join(thing(name=f"n{i}") for i in range(10)) + "\r\n  \n\t\n"
    (incoming,) = read(text)
    assert incoming.rows["name"].to_pylist() == [f"n{i}" for i in range(10)]
    assert incoming.origin.lines is not None
    assert incoming.origin.lines.to_pylist() == list(range(2, 22, 2))


def test_a_field_left_out_is_told_from_a_null() -> None:
    text = "\n".join([thing(name="a"), thing(name=None), thing(), thing(name="b")] * 5)
    (incoming,) = read(text)
    assert incoming.rows["name"].to_pylist() == ["a", None, None, "b"] * 5
    assert incoming.absent["name"].to_pylist() == [False, False, True, False] * 5


def test_a_null_is_seen_under_an_escaped_name_and_under_a_name_of_the_envelope() -> None:
    escaped = '{"type":"Thing","data":{"n\\u0061me":null}}'
    (incoming,) = read("\n".join([thing(name="a"), escaped, thing()] * 5))
    assert incoming.absent["name"].to_pylist() == [False, False, True] * 5
    (incoming,) = read("\n".join([thing(type="a"), thing(type=None), thing()] * 5))
    assert incoming.absent["type"].to_pylist() == [False, False, True] * 5


def test_types_may_be_mixed_and_keep_the_order_of_their_lines() -> None:
    lines = []
    for i in range(30):
        lines.append(
            json.dumps({"edge": "LINKS" if i % 2 else "Links", "from": f"t{i}", "to": "o"})
        )
        lines.append(json.dumps({"data": {"label": f"l{i}"}, "type": "Other"}))
        lines.append(thing(name=f"n{i}") if i % 3 else thing(name=f"n\n{i}", small=i))
    found = {incoming.type_name: incoming for incoming in read("\n".join(lines))}
    assert set(found) == {"Links", "Other", "Thing"}
    assert found["Links"].rows["src"].to_pylist() == [f"t{i}" for i in range(30)]
    assert found["Links"].edge
    assert found["Other"].rows["label"].to_pylist() == [f"l{i}" for i in range(30)]
    names = [f"n{i}" if i % 3 else f"n\n{i}" for i in range(30)]
    assert found["Thing"].rows["name"].to_pylist() == names
    assert found["Thing"].origin.lines is not None
    assert found["Thing"].origin.lines.to_pylist() == list(range(3, 91, 3))


def test_a_record_without_fields_is_a_row() -> None:
    (incoming,) = read('{"type":"Thing"}\n{"type":"Thing","data":{}}\n' * 5)
    assert incoming.rows.num_rows == 10


def test_small_blocks_read_like_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    text = "\n".join(thing(name=f"näme {i}", small=i) for i in range(500))
    whole, cut = read(text), read(text, block_bytes=700)
    assert cut[0].rows.to_pylist() == whole[0].rows.to_pylist()
    assert cut[0].origin.lines == whole[0].origin.lines


# --- the fast readings against the exact one ----------------------------------------------------------------------


@contextmanager
def only_exact() -> Iterator[None]:
    """Leave every line to the exact reading."""
    kept = records._by_template, records._by_type
    records._by_template = lambda lines, form, parts: lines
    records._by_type = lambda lines, form, parts, most: lines
    try:
        yield
    finally:
        records._by_template, records._by_type = kept


texts = st.text(
    st.one_of(st.sampled_from('ab"\\:,{}[] null'), st.characters(exclude_categories=["Cs"])),
    max_size=8,
)
numbers = st.one_of(
    st.integers(-(2**65), 2**65),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 1e300, 3.5e38]),
)
anything = st.one_of(
    st.none(), st.booleans(), numbers, texts, st.lists(st.one_of(numbers, st.none()), max_size=3)
)
FITTING: dict[str, st.SearchStrategy[Any]] = {
    "name": texts,
    "type": texts,
    "flag": st.booleans(),
    "small": st.integers(-(2**31), 2**31 - 1),
    "big": st.integers(-(2**63), 2**63 - 1),
    "count": st.integers(0, 2**32 - 1),
    "huge": st.integers(0, 2**64 - 1),
    "ratio": st.one_of(
        st.floats(allow_nan=False, allow_infinity=False), st.integers(-9, 9), st.just("NaN")
    ),
    "day": st.one_of(st.dates().map(str), st.integers(-1000, 1000)),
    "moment": st.one_of(
        st.datetimes().map(lambda d: d.isoformat() + "Z"),
        st.datetimes().map(lambda d: d.isoformat() + "+05:30"),
        st.integers(-(10**12), 10**12),
    ),
    "shape": st.lists(st.sampled_from([0, 1.5, -2]), min_size=2, max_size=2),
    "words": st.lists(texts, max_size=3),
    "numbers": st.lists(st.integers(-9, 9), max_size=3),
    "id": texts,
}


@st.composite
def record_lines(draw: st.DrawFn, *, broken: bool) -> list[str]:
    """Lines as programs write them: a few forms, repeated; some lines of their own."""
    names = st.lists(st.sampled_from(sorted(FITTING)), unique=True, max_size=4)
    forms = draw(st.lists(names, min_size=1, max_size=3))
    spaces = draw(st.sampled_from([(", ", ": "), (",", ":")]))
    lines = []
    for _ in range(draw(st.integers(1, 24))):
        data = {}
        for name in draw(st.sampled_from(forms)):
            value = draw(st.one_of(FITTING[name], st.none()) if name != "id" else FITTING[name])
            data[name] = draw(anything) if broken and draw(st.integers(0, 9)) == 0 else value
        head: dict[str, Any] = {"type": "Thing"}
        if draw(st.integers(0, 5)) == 0:
            data = {"label": draw(texts)}
            head = {"type": "Other"}
        elif draw(st.integers(0, 5)) == 0:
            data = {"since": draw(FITTING["big"])}
            head = {"edge": "Links", "from": draw(texts), "to": draw(texts)}
        ascii_only = draw(st.booleans())
        record = {**head, "data": data} if draw(st.integers(0, 9)) else {"data": data, **head}
        line = json.dumps(record, separators=spaces, ensure_ascii=ascii_only)
        if broken and draw(st.integers(0, 9)) == 0:
            at = draw(st.integers(0, len(line)))
            junk = draw(st.sampled_from([*list(string.punctuation + " 0n"), '"a":1,', "\t"]))
            line = line[:at] + junk + line[at + draw(st.integers(0, 2)) :]
        lines.append(line.replace("\n", " ") if broken else line)
    return lines


Reading = tuple[dict[str, Any], list[tuple[int | None, str]]]


def reading_of(text: str | bytes, rows_of: NodeOrEdgeType | None = None) -> Reading:
    """Everything a reading says, so that two can be compared: rows, what was left out, lines, problems."""
    options, problems = Options(), Problems()
    raw = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    form = LineFormat(CATALOG, options, rows_of)
    try:
        parts = list(read_blocks(blocks_of(io.BytesIO(raw), None, options), form, problems))
    except InputInvalid:
        parts = []
    found: list[Violation] = problems.found
    said = [(problem.line, problem.message) for problem in found]
    rows = {} if said else {i.type_name: _comparable(i) for i in to_incoming(parts)}
    return rows, said


def _comparable(incoming: Incoming) -> Any:
    table: pa.Table = incoming.rows
    assert incoming.origin.lines is not None
    given_rows = []
    for row, values in enumerate(table.to_pylist()):
        left_out = {name for name, mask in incoming.absent.items() if mask[row].as_py()}
        fields = {
            name: repr(value)
            for name, value in values.items()
            if name not in left_out and not (name == "id" and value is None)
        }
        given_rows.append((incoming.origin.lines[row].as_py(), fields))
    return given_rows


@given(record_lines(broken=False))
@settings(max_examples=150, deadline=None)
def test_valid_lines_read_alike_fast_and_exactly(lines: list[str]) -> None:
    text = "\n".join(lines)
    fast = reading_of(text)
    with only_exact():
        exact = reading_of(text)
    assert fast == exact
    assert not fast[1]


@given(record_lines(broken=True))
@settings(max_examples=250, deadline=None)
def test_any_lines_read_alike_fast_and_exactly(lines: list[str]) -> None:
    text = "\n".join(lines)
    fast = reading_of(text)
    with only_exact():
        exact = reading_of(text)
    assert fast == exact


@given(record_lines(broken=False))
@settings(max_examples=100, deadline=None)
def test_what_was_read_can_be_written_and_read_again(lines: list[str]) -> None:
    """Records to Arrow to records to Arrow: nothing is lost on the way."""
    first, _ = reading_of("\n".join(lines))
    again = []
    for incoming in read("\n".join(lines)):
        lines_of = incoming.origin.lines
        assert lines_of is not None
        for row, values in enumerate(incoming.rows.to_pylist()):
            fields = {
                name: _json_value(value)
                for name, value in values.items()
                if not (name in incoming.absent and incoming.absent[name][row].as_py())
                and name not in ("src", "dst")
                and not (name == "id" and value is None)
            }
            head: dict[str, Any] = {"type": incoming.type_name}
            if incoming.edge:
                head = {"edge": incoming.type_name, "from": values["src"], "to": values["dst"]}
            again.append((lines_of[row].as_py(), json.dumps({**head, "data": fields})))
    second, problems = reading_of("\n".join(line for _, line in sorted(again)))
    assert (second, problems) == (first, [])


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def test_lines_of_one_form_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast readings take what programs write; only the first line of a form is read exactly."""
    exact: list[bytes] = []
    inner = LineFormat.exactly

    def counted(self: LineFormat, line: bytes) -> Record:
        exact.append(line)
        return inner(self, line)

    monkeypatch.setattr(LineFormat, "exactly", counted)
    lines = [thing(id=f"t{i}", name=f"n{i}", small=i, ratio=i / 7) for i in range(1000)]
    lines += [
        json.dumps({"edge": "Links", "from": f"t{i}", "to": "o", "data": {"since": i}})
        for i in range(999)
    ]
    assert [i.rows.num_rows for i in read("\n".join(lines) + "\n")] == [1000, 999]
    assert len(exact) == 2
    exact.clear()
    nested = [thing(name=f"a\\b{i}", shape=[i, 1], words=["é"], flag=None) for i in range(1000)]
    assert read("\n".join(nested) + "\n")[0].rows.num_rows == 1000
    assert exact == []


# --- ids beside data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", ["", ', "words": ["a"], "day": null', ', "name": "\\u0041"'])
def test_an_id_may_stand_beside_data(others: str) -> None:
    """However a line is read: by its form, by Arrow or exactly."""
    rows = [f'{{"type": "Thing", "id": "t{n}", "data": {{"small": {n}}}}}' for n in range(8)]
    rows += [f'{{"type": "Thing", "id": "t8", "data": {{"small": 8{others}}}}}']
    rows += ['{"type": "Thing", "data": {"id": "t9", "small": 9}}']
    (incoming,) = read("\n".join(rows))
    ids = incoming.rows["id"].to_pylist()
    assert ids == [f"t{n}" for n in incoming.rows["small"].to_pylist()]
    (links,) = read(
        '{"edge": "Links", "id": "l", "from": "a", "to": "b", "data": {"weight": null}}'
    )
    assert links.rows["id"].to_pylist() == ["l"]


def test_an_id_in_both_places_must_be_the_same() -> None:
    same = '{"type": "Thing", "id": "a", "data": {"id": "a"}}'
    other = '{"type": "Thing", "id": "a", "data": {"id": "b"}}'
    assert only(same, "id") == ["a"]
    assert only("\n".join([same] * 8), "id") == ["a"] * 8
    found = problems_of("\n".join([same] * 8 + [other]))
    assert [(p["line"], p["property"]) for p in found] == [(9, "id")]
    assert problems_of('{"type": "Thing", "id": 1, "data": {}}')[0]["property"] == "id"


# --- the compatible body -------------------------------------------------------------------------------------------


def test_a_compatible_reading_ignores_what_it_does_not_know() -> None:
    lines = [thing(name=f"n{n}", small=n) for n in range(8)]
    lines += [thing(name="x", small="one", unknown=1), thing(name=3, words="w", flag="yes")]
    (incoming,) = read("\n".join(lines), compatible=True)
    assert incoming.rows["name"].to_pylist() == [f"n{n}" for n in range(8)] + ["x", None]
    assert incoming.rows["small"].to_pylist() == [*range(8), None, None]
    assert "unknown" not in incoming.rows.column_names
    many = "\n".join([thing(name="x", unknown="u")] * 20)
    assert only(many, "name", compatible=True) == ["x"] * 20
    problems_of("\n".join(lines))


@pytest.mark.parametrize(
    "data",
    [
        {"_rowid": 1},
        {"day": "2025-13-01"},
        {"body": "https://example.com/x"},
        {"body": "base64:?"},
        {"shape": [1]},
        {"small": 1 << 40},
    ],
)
def test_a_compatible_reading_refuses_what_is_spelt_wrong(data: dict[str, Any]) -> None:
    assert problems_of(thing(**data), compatible=True)
