"""A graph behind `http(s)://host/graphs/id`: a `Graph` whose verbs are requests.

In the order of control flow:

- `graph`      the verbs; each is one request, or a few for paged results
- `feed`       changes, page by page
- `results`    rows, differences, the tables of a state; the bytes of a blob in ranges
- `jobs`       work that continues after its request: progress and results
- `sources`    the input of a load as a stream of bytes
- `credentials`  the token of each server
- `transport`  requests: tokens, safe retries, failures as our errors

The wire format is defined in `omnigraph.wire`.
"""
