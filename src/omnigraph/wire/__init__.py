"""What goes over the wire, defined once for the server and for its clients.

- `requests`      bodies and query strings
- `contracts`     the versions of the Rust project whose clients are understood
- `answers`       answers: `of` makes one of what a verb returns, `value` gives back what it was made of
- `reading`       answers to queries
- `review`        both, about checks and proposals; `maintenance` answers about that
- `feed`, `jobs`  pages of the change feed, and what is known of a job
"""
