"""The command line: words in, verbs of a graph called, data on stdout and everything else on stderr.

In the order of control flow:

- `main`        from the words of a command line to an exit code; `version` without importing anything
- `app`         the commands and their help; each module of `commands` is one command
- `options`     what several commands accept
- `context`     which graph, branch and point in time are meant; queries from text or file
- `consent`     asking before something is lost
- `progress`    what long work says meanwhile, and `interrupt` what Ctrl-C leaves behind
- `output`      results in every format: `table` for people
- `commits`     how commits, merges and plans read
- `exits`       exit codes by kind of error
- `shell`       the interactive shell, with `completion` from the schema
- `parity`      what each command is called in Python and over HTTP
- `reference`   the pages of the reference that are made from code, with `api_reference` for Python
"""
