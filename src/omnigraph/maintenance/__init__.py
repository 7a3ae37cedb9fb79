"""Maintenance of a graph while it is in use.

- `collection`  removes unreferenced commits and files, concurrently with writers and other collections
- `reviews`     removes the events of ended proposals, and results of checks on removed commits
- `upkeep`      does due work, on request or in the background of a process: tables, indices, topology, expiry, history
- `status`      stored state of maintenance: the retention policy, which process maintains, what it did
- `embedding`   computes missing vectors, batch by batch
- `doctor`      checks whether everything a graph needs exists and is consistent
- `jobs`        records of long operations that outlive the process that runs them
"""
