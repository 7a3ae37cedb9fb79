"""A graph behind `http(s)://host/graphs/id`, with the verbs of a local one.

In the order of control flow:

- `graph`      the verbs; each is one request, or a few for what comes in pages
- `branch`     the same bound to a branch, and blocks that are one request
- `feed`, `blobs`  what is read piece by piece: changes, bytes
- `jobs`       work that goes on when the request is answered: how far it is, what came of it
- `sources`    what a load was given, as a stream of bytes
- `transport`  requests: tokens, retries that depend on what may have happened, failures as our errors
- `shapes`     answers back into the values local graphs answer with
"""
