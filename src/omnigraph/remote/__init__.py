"""A graph behind `http(s)://host/graphs/id`: a `Graph` whose verbs are requests.

In the order of control flow:

- `graph`      the verbs; each is one request, or a few for paged results
- `feed`, `blobs`  results read piece by piece: changes, bytes
- `results`    results received as a whole: rows, differences, the tables of a state
- `jobs`       work that continues after its request: progress and results
- `stored`     stored queries of a server, and what its policy allows
- `sources`    the input of a load as a stream of bytes
- `credentials`  the token of each server
- `transport`  requests: tokens, safe retries, failures as our errors

The wire format is defined in `omnigraph.wire`.
"""
