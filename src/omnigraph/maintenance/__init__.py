"""What keeps a graph in order while others use it.

- `collection`  removes commits and files that nothing refers to any more, beside writers and beside itself
- `reviews`     what is left of proposals that ended, and of checks on commits that are gone
- `upkeep`      does what is due, by hand or in the background of a process: tables, indices, topology, expiry, history
- `status`      what the store knows of that: the policy of retention, which process maintains, what it did
- `embedding`   makes vectors that are missing, batch by batch
- `doctor`      checks whether everything a graph needs is there and fits
- `jobs`        records of long operations that outlive the process that runs them
"""
