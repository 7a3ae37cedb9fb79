"""The verbs that change a graph. Each is a function that returns a plan; `graph.py` publishes it.

What several verbs need:

- `resolve`          from input to `Changes`: ids, whole rows, new and changed ones; from `Changes` to table actions
- `repeats`          of several rows with one id, the one to use
- `removal`          the edges of deleted nodes
- `input`            files, tables and Python values to rows; their errors
- `assign`           the values a mutation assigns, in the property's type
- `matching`         the rows a condition selects, and the reads this depends on; `resting` the same for patterns
- `embed`            vectors for the texts of a write
- `stored_rules`     whether stored rows obey the rules of a schema change
- `infer`            a schema proposed from files

The verbs:

- `mutate`           the statements of a mutation query, and several writes as one commit
- `changing`         the changes for each row of a pattern
- `load`             rows of many types together
- `apply_schema`     a new schema, and the tables changed with it
- `apply_checks`     new checks
- `merge`            the changes of another branch
- `undo`             revert, cherry-pick and reset
- `maintain`         compaction and indices
- `clone`            a copy in another place
"""
