"""The verbs that change a graph. Each is a function that returns a plan; `graph.py` publishes it.

What several verbs need:

- `resolve`          what somebody gave to `Changes`: ids, whole rows, new and changed ones; `Changes` to table actions
- `repeats`          of several rows with one id, the one that counts
- `removal`          the edges of nodes that go
- `input`            files, tables and Python values to rows; what is wrong with them
- `assign`           the values a mutation assigns, in the property's type
- `matching`         the rows a condition selects, and what finding them rested on; `resting` the same of patterns
- `embed`            vectors for the texts a write brings
- `stored_rules`     whether stored rows obey the rules a schema change brings
- `infer`            a schema proposed from files

The verbs:

- `mutate`           the statements of a mutation query; `changing` what is done for each row of a pattern
- `load`             rows of many types at once
- `together`         several of these as one commit
- `apply_schema`     another schema, and the tables changed with it
- `apply_checks`     other checks
- `merge`            what another branch did
- `undo`             taking commits back, or over
- `maintain`         the same rows in better order, and indices
- `clone`            a copy in another place
"""
