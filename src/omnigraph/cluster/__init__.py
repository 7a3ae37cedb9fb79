"""Graphs described by a folder: the desired state, the actual state, and how to get from one to the other.

In the order of control flow:

- `files`      `cluster.yaml` and the files it names, read and checked: the desired resources
- `resources`  resources, and the errors of this package
- `ledger`     what was applied, as an append-only series of revisions
- `observed`   the current state of the graphs
- `plan`       the changes between all three, to review, to save in a file, and to apply exactly
- `apply`      makes them, one after the other; run again, it continues where it was interrupted
- `report`     what was applied, and where the graphs differ from it
- `serving`    the applied revision for a server
"""
