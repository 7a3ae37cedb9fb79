"""Search inside a query: full text, BM25 and vectors over the columns of one table version.

In: a property's column as the reader has it (`source.py` declares what the reader must provide), a query, and positions
when other filters came first. Out: truth values, scores or distances by position. No answer depends on which indices
are stored: the same rows are found with all of them, some or none.

- `analyzer.py`: text to words, the same for indices and queries.
- `inverted.py`: the inverted form of texts, read word by word. `stored_text.py`: the same as files.
- `segments.py`: which of them make up a table version, stored or built. `storing.py`: makes missing files.
- `queries.py`: what a query looks for: its words, their synonyms, the signs of `search_query`.
- `text.py`: any word, all words, beginnings, phrase, fuzzy, BM25.
- `highlight.py`: texts with the words of a query marked.
- `vectors.py`: exact distances and the nearest vectors. `approximate.py`: most of them, through a stored index.
- `embed.py`: texts to vectors through the configured provider. `providers.py`, `remote.py`: the providers.
"""
