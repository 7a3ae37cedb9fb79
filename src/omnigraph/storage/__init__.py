"""Stores: objects and tables, and what it costs to use them.

`objects` is a small key-value store with create-only puts: S3, memory, and `local` on a disk. `disk` keeps every stored
name inside its graph and tells what a disk refuses; `probe` finds out whether a store keeps its promises. `tables` says
what may be asked of tables and `lance` does it. `lru` is the bounded cache that all handles of a process share, and
`metrics` counts every request. `retry` is how HTTP requests to other servers are sent again.
"""
