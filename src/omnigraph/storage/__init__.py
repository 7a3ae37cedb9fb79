"""The outside world: objects and tables, and what it costs to touch them.

`objects` is a small key-value store with create-only puts (local disk, S3, memory). `tables` says what may be asked of
tables and `lance` does it; `predicates` is the only place that writes filter text. `session` holds what is shared by
all handles of a process, and `metrics` counts every request.
"""
