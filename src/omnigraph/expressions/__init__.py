"""The semantics of expressions: one tree (`lang.ir`), evaluated for one row, for whole columns, and by the table store.

`scalar` is the reference: the value for one row of Python values. `arrow` computes the same for whole columns, wherever
their rows come from: bindings of a pattern, rows a statement changes, rows staged before, another version of a type, a
batch inside a Spark task. `filters` writes a condition as filter text of the table store, and leaves the rest
to `arrow`.

`composite` computes lists, maps, references and iteration over lists, on `lists` split by their offsets;
`shapes` has the Arrow types of such values, `standard` the functions of mathematics and texts, and `temporal` those of
durations and times.

`comparing` is the single definition of equality and order of values; `functions` holds arithmetic, texts,
times and casts on columns. The rules are written for users in docs/reference/query-language.md, "Comparison and
arithmetic".
"""
