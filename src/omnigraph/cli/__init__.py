"""The command line: data on stdout, everything else on stderr.

In the order of control flow:

- `main`       from a command line to an exit code; `version` without importing anything
- `spellings`  command lines of the Rust project, translated to ours
- `app`        the table of all commands, and the typer application made from it
- `words`      which of the positional words of a command is the graph
- `options`    options that several commands share
- `completing` what Tab in a shell offers
- `suggesting` corrections of mistyped names
- `context`    resolves the graph, branch, point in time and query

The commands, imported one module at a time:

- `graphs`     init, clone, doctor, upgrade, version; `installed` the list of `doctor --install`
- `data`       query, mutate, shell, load, infer, export; `pipelines` pipeline
- `branches`   branch, merge, tag
- `history`    log, show, diff, changes, revert, cherry-pick, reset
- `review`     propose, proposals, review, comment, approve, check, stats, blame
- `maintenance` optimize, embed, cleanup, maintain, retention
- `languages`  schema, lint, fmt, explain
- `entities`   snapshot, blob
- `clusters`   cluster
- `serving`    serve, explore, jobs, policy, config; `servers` graphs, queries, login, logout, profile
- `demo`       the tour
- `shell`      the interactive shell behind `omnigraph shell`

What they print:

- `output`     results in every format, with `table` for terminals
- `shapes`     JSON in the form of the Rust project
- `commits`    commits, changes and plans as text
- `removals`   descriptions of what a command will remove; confirmation
- `progress`   progress of long operations, and the effects of Ctrl-C
- `exits`      exit codes by kind of error
"""
