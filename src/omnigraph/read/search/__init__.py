"""Search inside a query: full text, BM25 and vectors over the columns of one table version.

In: a property's column as the reader has it (`source.py` says what is asked of the reader), a query, and positions when
other filters came first. Out: truth values, scores or distances by position. Nothing here depends on stored indices:
the same rows are found with any of them or none.

- `analyzer.py`: text to words, the same for indices and queries.
- `segment.py`: the inverted form of a run of texts. `segments.py`: those of a table version, shared between versions.
- `text.py`: any word, all words, phrase, fuzzy, BM25. `fuzzy.py`: edit distances over a vocabulary.
- `vectors.py`: exact distances and the nearest vectors.
- `embed.py`: texts to vectors through the configured provider. `providers.py`, `remote.py`: the providers.
"""

from __future__ import annotations

from omnigraph.read.search.embed import embed_text, embed_texts
from omnigraph.read.search.text import Corpus, bm25, corpus_of, text_mask, text_match
from omnigraph.read.search.vectors import distances, nearest

__all__ = [
    "Corpus",
    "bm25",
    "corpus_of",
    "distances",
    "embed_text",
    "embed_texts",
    "nearest",
    "text_mask",
    "text_match",
]
