"""Graphs over HTTP: a request comes in, is recognised, allowed and bounded, becomes one call of a `Graph`, and is
answered.

In the order of control flow:

- `settings`       what is served and with which limits, from flags or a file
- `clusters`       the same from what was applied to a cluster
- `boot`           settings to graphs, policies, stored queries and tokens; then uvicorn; new settings on SIGHUP
- `supervisor`     several processes: accepts connections and hands them to workers; `worker` is one of them,
                   `listening` what they say to each other
- `protocol`       HTTP on a connection, within bounds
- `app`            one request from its first byte to its last, on Starlette
- `routing`        what a route is, and how a path is matched; `routes` is the table of all of them
- `access`         who may ask at all: tokens, pages from elsewhere, policies; the guard itself is `policy/guard`
- `oidc`           tokens of OpenID Connect issuers, and the keys they are checked with
- `limits`         how much at once: requests and loads of an actor, of everybody; `counts` what is held, in all workers
- `threads`        those that requests share, and those that actors take turns with
- `bodies`         request bodies: unpacked within bounds, decoded to structs, or spooled to disk
- `load_sources`   what a load reads: lines or tables in a body, or an address
- `request`        what a handler is given, and what it gives back
- `routes/`        the handlers by noun; each is one call of a graph
- `jobs`           work that outlives its request
- `wire`           the shapes of requests and answers
- `errors`         failures to statuses and bodies: the one place that knows both
- `stored_queries` queries kept in `.gq` and `.cypher` files
- `telemetry`      counts, durations, the access log, spans; `slow_queries` the log of those, `log` how lines look
- `openapi`        the description of all this, made from the table of routes
"""
