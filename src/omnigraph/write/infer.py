"""A schema proposed from data: types of columns, keys, and edges where values of one table are keys of another.

The proposal is text to edit: a schema, and a pipeline file that loads the same files by it. A type is proposed only if
the readers of loads can read every sampled value as it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from omnigraph.errors import OptionInvalid
from omnigraph.lang.schema import words
from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType, Scalar
from omnigraph.values.columns import is_list, is_text, text_column
from omnigraph.values.misfit import Misfit
from omnigraph.write.input.files import blocks
from omnigraph.write.input.input_files import input_files
from omnigraph.write.input.json_lines import JsonLines
from omnigraph.write.input.mapping import RowMapping
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import InputPart
from omnigraph.write.input.preview import preview
from omnigraph.write.input.problems import Problems
from omnigraph.write.input.sources import LINES, read_file
from omnigraph.write.input.tables import RawRows, suffix_of

ROWS_MAX = 1_000_000  # of a table, read
SAMPLE_ROWS = 1_000  # that rule out most types
CANDIDATES = (Scalar.BOOL, Scalar.I64, Scalar.F64, Scalar.DATE, Scalar.DATETIME)
PADDED = r"^-?0[0-9]"  # a text like 007 is not a number
ZONE = r"([Zz]|[+-][0-9]{2}:?[0-9]{2})$"
ENDS = (("from", "to"), ("src", "dst"), ("source", "target"))
PLAIN = re.compile(r"[A-Za-z_][\w./*-]*")
YAML_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
PLURALS = (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("s", ""))
UNLIKE_THEIR_PLURAL = {"people": "person", "children": "child", "men": "man", "women": "woman",
                       "series": "series", "species": "species"}  # fmt: skip
KEY_NAMES = ("id", "key", "code", "uuid", "email", "name")


@frozen
class ColumnGuess:
    """A column, and the property it would be."""

    column: str
    name: str
    type: str
    optional: bool
    values: pa.Array = field(repr=False, compare=False)  # as texts, for comparisons
    unique: bool = False
    lacks_zone: bool = False  # date-times of which some have no time zone

    def declared(self) -> str:
        """The property as a schema writes it."""
        return f"{self.name}: {self.type}{'?' if self.optional else ''}"


@frozen
class TableGuess:
    """A table: its columns, the one that names its rows, and those that name rows of other tables."""

    path: str
    name: str
    columns: tuple[ColumnGuess, ...]
    key: ColumnGuess | None
    is_json: bool = False

    def is_called(self, column: ColumnGuess) -> bool:
        """Whether the name of another table's column refers to this one."""
        said = re.sub(r"_?(id|key|code)$", "", column.name.lower())
        own = self.name.lower()
        return (
            said == own or said.endswith("_" + own) or column.name == (self.key and self.key.name)
        )


Reference = tuple[ColumnGuess, TableGuess]


@frozen
class ProposedSchema:
    """The proposal, as texts to edit."""

    schema: str
    pipeline: str


def infer(
    files: Mapping[str, str] | Sequence[str], options: Options | None = None
) -> ProposedSchema:
    """Propose a schema for files: paths, or type names with paths. `pipeline` is a pipeline file that loads them.

    >>> from omnigraph import infer
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp(), "people.csv")
    >>> _ = file.write_text("name,age\\nAda,36\\n")
    >>> print(infer([str(file)]).schema, end="")
    node Person {
      name: String @key
      age: I64
    }
    """
    named = files.items() if isinstance(files, Mapping) else [(None, path) for path in files]
    if not named:
        raise OptionInvalid("there are no files to read")
    tables = [_table(name, path, options or Options()) for name, path in named]
    _refuse_one_name(tables)
    references = {table.name: list(_references(table, tables)) for table in tables}
    return ProposedSchema(_schema(tables, references), _pipeline(tables, references))


def _refuse_one_name(tables: Sequence[TableGuess]) -> None:
    first: dict[str, TableGuess] = {}
    for table in tables:
        other = first.setdefault(table.name, table)
        if other is not table:
            raise OptionInvalid(
                f"{other.path} and {table.path} would both be the type {table.name}",
                help="Name the types: Type=FILE.",
            )


# --- tables ------------------------------------------------------------------------------------------------------


class _Collected:
    """A shape that keeps the raw rows."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []

    def parts(self, raw: RawRows, _problems: Problems) -> Iterator[InputPart]:
        self.tables.append(raw.table)
        yield from ()


def _table(name: str | None, path: str, options: Options) -> TableGuess:
    found = _Collected()
    is_json = False
    for file in input_files(path):
        if suffix_of(file.name) in LINES and file.part is None:
            is_json = True
            found.tables += _json_tables(file.name, options)
        else:
            list(read_file(file, found, options, Problems()))
        if sum(table.num_rows for table in found.tables) >= ROWS_MAX:
            break
    rows = pa.concat_tables(found.tables, promote_options="permissive").slice(0, ROWS_MAX)
    taken: set[str] = set()
    columns = tuple(_column(n, one_array(rows[n]), taken) for n in rows.column_names)
    if name is None:
        name = _type_name(path, are_edges=_names_ends(columns))
    return TableGuess(path, name, columns, _key(name, columns), is_json)


def _json_tables(file: str, options: Options) -> Iterator[pa.Table]:
    seen = preview(file, SAMPLE_ROWS)
    if seen.graph_records:
        raise OptionInvalid(f"{file} holds graph records, which name their types themselves")
    members = tuple((name, f'$."{name}"') for name in seen.columns)
    opener, problems = JsonLines(RowMapping(type="any", json=members), options), Problems()
    for block in blocks(file, options):
        raw = opener.rows(block, problems)
        problems.settle()
        if raw is not None:
            yield raw.table


def _column(column: str, values: pa.Array, taken: set[str]) -> ColumnGuess:
    name = re.sub(r"\W+", "_", column.strip()).strip("_").lower() or "column"
    name = f"c_{name}" if name[0].isdigit() else name
    while name in taken or name in words.STRUCTURAL["edge"] - {"id"}:
        name += "_"
    taken.add(name)
    known = values.drop_null()
    texts = (
        known.cast(pa.string()) if not is_list(known.type) else known.slice(0, 0).cast(pa.string())
    )
    unique = bool(len(values)) and not values.null_count and len(pc.unique(texts)) == len(values)
    kind = _type_of(known)
    unzoned = kind == str(Scalar.DATETIME) and _lacks_zone(known.type, texts)
    return ColumnGuess(column, name, kind, values.null_count > 0, texts, unique, unzoned)


def _lacks_zone(kind: pa.DataType, texts: pa.StringArray) -> bool:
    if at.is_timestamp(kind):
        return kind.tz is None
    return not pc.all(pc.match_substring_regex(texts, ZONE), min_count=0).as_py()


def _type_of(values: pa.Array) -> str:
    kind = values.type
    if is_list(kind):
        return f"[{_type_of(values.flatten())}]"
    if is_text(kind) or at.is_dictionary(kind):
        return _text_type(values.cast(pa.string()))
    if at.is_boolean(kind):
        return "Bool"
    if at.is_integer(kind):
        return "U64" if at.is_uint64(kind) else "I64"
    if at.is_floating(kind) or at.is_decimal(kind):
        return "F64"
    if at.is_date(kind):
        return "Date"
    if at.is_timestamp(kind):
        return "DateTime"
    return "Blob" if at.is_binary(kind) or at.is_large_binary(kind) else "String"


def _text_type(texts: pa.StringArray) -> str:
    """The first type all texts can be read as."""
    if not len(texts):
        return "String"
    lists = pc.all(pc.starts_with(texts, "[")).as_py()
    items = (*CANDIDATES, Scalar.STRING) if lists else CANDIDATES
    for kind in (PropType(scalar, is_list=lists) for scalar in items):
        if all(_reads(part, kind) for part in (texts.slice(0, SAMPLE_ROWS), texts)):
            return str(kind)
    return "String"


def _reads(texts: pa.StringArray, kind: PropType) -> bool:
    numeric = kind.scalar in (Scalar.I64, Scalar.F64)
    if numeric and pc.any(pc.match_substring_regex(texts, PADDED)).as_py():
        return False
    try:
        text_column(texts, kind)
    except (Misfit, pa.ArrowInvalid):
        return False
    return True


def _key(name: str, columns: Sequence[ColumnGuess]) -> ColumnGuess | None:
    """The column that names the rows: a unique one with the name of a key, else the first unique text."""
    unique = [c for c in columns if c.unique and c.type in ("String", "I64", "U64", "Date")]
    wanted = [*KEY_NAMES[:4], f"{name.lower()}_id", name.lower(), *KEY_NAMES[4:]]
    by_name = {c.name: c for c in unique}
    for word in wanted:
        if word in by_name:
            return by_name[word]
    if _names_ends(columns):
        return None
    return next((c for c in unique if c.type == "String"), None)


def _names_ends(columns: Sequence[ColumnGuess]) -> bool:
    return any(c.name in chain(*ENDS) or c.column.lower() in chain(*ENDS) for c in columns)


def _references(table: TableGuess, tables: Iterable[TableGuess]) -> Iterator[Reference]:
    """Columns whose values are all keys of a table, and named like it; texts need no such name if there are several."""
    for column in table.columns:
        if column is table.key or not len(column.values):
            continue
        values = pc.unique(column.values)
        for other in tables:
            if (
                other.key is None
                or not pc.all(pc.is_in(values, value_set=other.key.values)).as_py()
            ):
                continue
            end = column.column.lower() in chain(*ENDS)
            distinctive = column.type == "String" and len(values) > 1 and other is not table
            if end or other.is_called(column) or distinctive:
                yield column, other
                break


def _ends(table: TableGuess, references: Sequence[Reference]) -> tuple[Reference, Reference] | None:
    """The two columns that make the rows of a table edges; None if they are nodes."""
    by_column = {column.column.lower(): (column, other) for column, other in references}
    for a, b in ENDS:
        if a in by_column and b in by_column:
            return by_column[a], by_column[b]
    if table.key is None and len(references) == 2:
        return references[0], references[1]
    return None


# --- texts -------------------------------------------------------------------------------------------------------


def _schema(tables: Sequence[TableGuess], references: Mapping[str, Sequence[Reference]]) -> str:
    nodes, edges = [], []
    for table in tables:
        found = references[table.name]
        ends = _ends(table, found)
        named = {column.column for column, _ in (ends or found)}
        rest = [c for c in table.columns if c.column not in named]
        if ends is not None:
            (_, first), (_, second) = ends
            own = [c for c in rest if c.name != "id"]
            body = "".join(f"  {c.declared()}\n" for c in own)
            edges.append(
                f"edge {table.name}: {first.name} -> {second.name}"
                + (f" {{\n{body}}}" if body else "")
            )
            continue
        nodes.append(_node(table, rest))
        edges += [
            f"edge {_edge_name(table, column)}: {table.name} -> {other.name} {{ @key(src, dst) }}"
            for column, other in found
        ]
    return "\n\n".join([*nodes, *edges]) + "\n"


def _node(table: TableGuess, columns: Iterable[ColumnGuess]) -> str:
    lines = []
    for column in columns:
        if column.name == "id":
            continue  # every row has one
        mark = " @key" if column is table.key else ""
        lines.append(f"  {column.declared()}{mark}\n")
    return f"node {table.name} {{\n{''.join(lines)}}}"


def _edge_name(table: TableGuess, column: ColumnGuess) -> str:
    return table.name + _camel(re.sub(r"_?(id|key|code)$", "", column.name) or column.name)


def _pipeline(tables: Sequence[TableGuess], references: Mapping[str, Sequence[Reference]]) -> str:
    lines = ["graph: GRAPH", "mode: merge", *_zone(tables), "sources:"]
    for table in tables:
        lines += [f"  - path: {_yaml(table.path)}"]
        if table.is_json:
            members = ", ".join(_yaml(column.column) for column in table.columns)
            lines.append(f"    json: [{members}]")
        lines.append("    rows:")
        lines += _rows(table, references[table.name])
    return "\n".join(lines) + "\n"


def _zone(tables: Sequence[TableGuess]) -> Iterator[str]:
    """Times without a zone have to be given one, which only whoever knows the files can say."""
    files = [_file_name(table.path) for table in tables if any(c.lacks_zone for c in table.columns)]
    if files:
        yield f"assume_timezone: UTC  # times in {', '.join(files)} have no zone: name the right one"


def _file_name(path: str) -> str:
    return " ".join(Path(path.rstrip("/")).name.split())


def _rows(table: TableGuess, references: Sequence[Reference]) -> Iterator[str]:
    ends = _ends(table, references)
    named = {column.column for column, _ in (ends or references)}
    values = [(c.name, c.column) for c in table.columns if c.column not in named]
    if ends is not None:
        (first, _), (second, _) = ends
        values = [("from", first.column), ("to", second.column), *values]
        yield from _row(table.name, values)
        return
    yield from _row(table.name, values)
    for column, _ in references:
        if table.key is None:
            continue  # the row an edge starts at would be unknown
        pair = [("from", table.key.column), ("to", column.column)]
        where = f'"{column.column}" IS NOT NULL' if column.optional else None
        yield from _row(_edge_name(table, column), pair, where)


def _row(name: str, values: Iterable[tuple[str, str]], where: str | None = None) -> Iterator[str]:
    yield f"      - type: {name}"
    if where is not None:
        yield f"        where: {_yaml(where)}"
    pairs = ", ".join(f"{_yaml(prop)}: {_yaml(column)}" for prop, column in values)
    yield f"        values: {{{pairs}}}"


def _yaml(text: str) -> str:
    plain = PLAIN.fullmatch(text) is not None and text.lower() not in YAML_WORDS
    return text if plain else "'" + text.replace("'", "''") + "'"


def _type_name(path: str, *, are_edges: bool) -> str:
    """`data/order_items.csv` as OrderItem; a file of edges keeps its word, maybe a verb: `knows.csv` as Knows."""
    stem = Path(path.rstrip("/")).name.partition(".")[0]
    before, under, last = re.sub(r"\W+", "_", stem).rpartition("_")
    return _camel(before + under + (last if are_edges else _singular(last))) or "Row"


def _singular(word: str) -> str:
    if word.lower() in UNLIKE_THEIR_PLURAL:
        single = UNLIKE_THEIR_PLURAL[word.lower()]
        return single.capitalize() if word[0].isupper() else single
    for plural, single in PLURALS:
        if word.endswith(plural) and not word.endswith(("ss", "us", "is")):
            return word.removesuffix(plural) + single
    return word


def _camel(text: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in text.split("_") if part)
