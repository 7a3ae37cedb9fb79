"""The languages: text in, checked values out; no input or output, no storage.

Shared by all:

- `source`       a text, its lines and columns
- `diagnostics`  findings about a text: collected, sorted, rendered, raised together
- `lexer`        text to tokens
- `cursor`       walking over tokens: take, expect, recover
- `codes`        the catalogue of syntax codes

The languages:

- `schema`       the schema language `.pg`: text to catalog, and from one schema to the next
- `query`        the query language `.gq`: text to checked queries
- `checks`       checks of a graph, as queries of a `.gq` text
- `cypher`       openCypher: text to plans; `languages` tells which of the two a text is in

From a checked query to what an engine runs:

- `ir`           the operators and expressions of a plan; `tree` walks them, `bindings` says what their rows bind
- `lower`        checked query to plan
- `rewrite`      plans to cheaper plans
- `cast`         values of one type as values of another; the meaning of expressions is in `omnigraph.expressions`
- `plan_text`    a plan as text, its conditions as they were written
"""

import omnigraph.lang.codes  # noqa: F401  every diagnostic looks its code up in the catalogue
