"""One command, one module, one `COMMAND`: a verb, or a group of verbs.

branch, changes, cherry_pick, cleanup, clone, config, demo, diff, doctor, explain, explore, export, fmt, init, jobs,
lint, load, log, merge, mutate, optimize, pipeline, policy, query, reset, revert, schema, serve, shell, show, tag,
upgrade, version. Heavy packages are imported when a command runs.
"""
