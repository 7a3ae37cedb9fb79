"""Graphs described by a folder: what should be there, what is there, and how one becomes the other.

In the order of control flow:

- `files`      `cluster.yaml` and what it names, read and checked: the resources that are wanted
- `resources`  what a resource is, and the errors of this room
- `ledger`     what was applied, as a series of revisions that are only ever added to
- `observed`   what the graphs are like at the moment
- `plan`       the changes between all three, to look at, to keep in a file, and to apply exactly
- `apply`      makes them, one after the other; run again, it goes on where it was interrupted
- `report`     what was applied, and where the graphs differ from it
- `serving`    what a server needs of the applied revision
"""
