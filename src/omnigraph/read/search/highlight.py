"""Texts with the words of a query marked. Intended for results: it processes texts one by one."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.model.catalog import Property
from omnigraph.model.columns import one_array
from omnigraph.read.search.analyzer import words_as_written
from omnigraph.read.search.queries import QueryReader


def highlighted(
    texts: pa.Array | pa.ChunkedArray, query: str, prop: Property, marks: tuple[str, str]
) -> pa.StringArray:
    """The texts, with every word that the query of a `search_query` would find between the two marks."""
    column = one_array(texts).cast(pa.string())
    lists = words_as_written(column)
    found = _marked(lists.flatten().unique().to_pylist(), query, QueryReader.of(prop))
    shown = [
        None if text is None else _with_marks(text, words, found, marks)
        for text, words in zip(column.to_pylist(), lists.to_pylist(), strict=True)
    ]
    return pa.array(shown, pa.string())


def _marked(distinct: list[str | None], query: str, reading: QueryReader) -> frozenset[str]:
    """The words of the texts, as written, that the query matches."""
    clauses = [clause for clause in reading.clauses(query) if clause.sign != "-"]
    words = set(reading.expanded(word for clause in clauses for word, _ in clause.words))
    begins = tuple(clause.begins for clause in clauses if clause.begins is not None)
    written = [word for word in distinct if word]
    stems = reading.analyzer.normalise(written)
    return frozenset(
        word
        for word, stem in zip(written, stems, strict=True)
        if stem in words or (begins and " ".join(reading.beginnings(word)).startswith(begins))
    )


def _with_marks(text: str, words: list[str], found: frozenset[str], marks: tuple[str, str]) -> str:
    """The words come in the order of the text."""
    parts, end = [], 0
    for word in words:
        start = text.index(word, end)
        shown = (marks[0], word, marks[1]) if word in found else (word,)
        parts += [text[end:start], *shown]
        end = start + len(word)
    return "".join([*parts, text[end:]])
