"""A graph behind `http(s)://host/graphs/id`: a `Graph` whose verbs are requests.

In the order of control flow:

- `graph`      the verbs; each is one request, or a few for what comes in pages
- `feed`, `blobs`  what is read piece by piece: changes, bytes
- `results`    results that came as a whole: rows, differences, what a state consists of
- `jobs`       work that goes on when the request is answered: how far it is, what came of it
- `stored`     queries that are stored beside a server, and what its policy allows
- `sources`    what a load was given, as a stream of bytes
- `credentials`  which token goes to which server
- `transport`  requests: tokens, retries that depend on what may have happened, failures as our errors

What goes over the wire is defined in `omnigraph.wire`.
"""
