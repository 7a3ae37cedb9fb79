"""The two languages: text in, checked values out; no input or output, no storage.

In the order of control flow:

- `source`       a text, its lines and columns
- `diagnostics`  findings about a text: collected, sorted, rendered, raised together
- `lexer`        text to tokens, shared by both languages
- `cursor`       walking over tokens: take, expect, recover
- `codes`        the catalogue of syntax codes
- `grammar`      the grammar for the manuals, read from the parsers' docstrings
- `schema`       the schema language `.pg`
- `query`        the query language `.gq`
"""

import omnigraph.lang.codes  # noqa: F401  every diagnostic looks its code up in the catalogue
