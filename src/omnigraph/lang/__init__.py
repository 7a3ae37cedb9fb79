"""The two languages: text in, checked values out; no input or output, no storage.

What both stand on:

- `source`       a text, its lines and columns
- `diagnostics`  findings about a text: collected, sorted, rendered, raised together
- `lexer`        text to tokens
- `cursor`       walking over tokens: take, expect, recover
- `codes`        the catalogue of syntax codes
- `grammar`      the grammar for the manuals, read from the parsers' docstrings

The languages:

- `schema`       the schema language `.pg`: text to catalog, and from one schema to the next
- `query`        the query language `.gq`: text to checked queries

From a checked query to what an engine runs:

- `ir`           the operators and expressions of a plan; `tree` walks them, `bindings` says what their rows bind
- `lower`        checked query to plan
- `pushdown`     conditions on one variable to predicates a table answers
- `rewrite`      plans to cheaper plans
- `evaluate`     the meaning of expressions, with `cast` for conversions
- `outline`      a plan as text
"""

import omnigraph.lang.codes  # noqa: F401  every diagnostic looks its code up in the catalogue
