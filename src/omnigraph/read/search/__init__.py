"""Search inside a query: full text, BM25 and vectors over the columns of one table version.

In: a property's column as the reader has it (`source.py` says what is asked of the reader), a query, and positions when
other filters came first. Out: truth values, scores or distances by position. No answer depends on what is stored: the
same rows are found with all of it, some or none.

- `analyzer.py`: text to words, the same for indices and queries.
- `inverted.py`: the inverted form of texts, read word by word. `stored_text.py`: the same as files.
- `segments.py`: which of them make up a table version, stored or built. `storing.py`: files that are missing, made.
- `queries.py`: what a query looks for: its words, their synonyms, the signs of `search_query`.
- `text.py`: any word, all words, beginnings, phrase, fuzzy, BM25.
- `highlight.py`: texts with the words of a query marked.
- `vectors.py`: exact distances and the nearest vectors. `approximate.py`: most of them, through a stored index.
- `embed.py`: texts to vectors through the configured provider. `providers.py`, `remote.py`: the providers.
"""
