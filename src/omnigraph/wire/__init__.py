"""The wire format, defined once for the server and its clients.

- `requests`      bodies and query strings
- `contracts`     the versions of the Rust project whose clients are supported
- `answers`       responses: `of` makes one from the result of a verb, `value` restores the result
- `reading`       responses to queries
- `review`        both, for checks and proposals; `maintenance` responses of maintenance
- `feed`, `jobs`  pages of the change feed, and records of jobs
"""
