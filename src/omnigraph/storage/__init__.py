"""Stores: objects and tables, and what it costs to use them.

`objects` is a small key-value store with create-only puts: S3, memory, and `local` on a disk. `disk` keeps every stored
name inside its graph and translates disk errors; `probe` tests whether a store gives the required guarantees. `tables`
is the interface of tables and `lance` implements it. `lru` is the bounded cache that all handles of a process share,
and `metrics` counts every request. `retry` retries HTTP requests to other servers.
"""
