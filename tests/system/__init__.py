"""The whole system beside a model of it: the same random work done to both, and every answer compared.

The model is dictionaries, and slow. Read it in this order:

- `values`: what cells hold, the values worth trying, and the two equalities (as stored, and as compared);
- `schema`: types and properties with their identities, the edits of a schema, its text;
- `rules`: which rules of a schema a state breaks;
- `merging`: three states to one, as facts of the schema and then row by row and cell by cell;
- `model`: branches, commits, tags, keys; every verb, as a few lines;
- `policy`: who may do what.

A program is a list of steps, each a verb and its arguments. `generate` draws one from a seed with the model alone,
`world` does it to the real system through all its doors, `observe` and `reads` ask for what is there, `run` compares,
`shrink` takes steps away from a failing program. `planted` puts bugs into the real system; each has to be found.
`test_laws` tests what must hold of any history. `python -m tests.system.replay SEED` does one sequence again.
"""
