"""The outside world: objects and tables, and what it costs to touch them.

`objects` is a small key-value store with create-only puts: S3, memory, and `local` on a disk, whose refusals `disk`
tells apart. `paths` keeps every stored name inside its graph, and `probe` finds out whether a store keeps its promises.
`tables` says what may be asked of tables and `lance` does it; `predicates` is the only place that writes filter text.
`session` holds what all handles of a process share, and `metrics` counts every request.
"""
