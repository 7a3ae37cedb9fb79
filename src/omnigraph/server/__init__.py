"""Graphs over HTTP: a request is received, authenticated, authorised and bounded, becomes one call of a `Graph`, and
is answered.

In the order of control flow:

- `settings`       the graphs to serve and the limits, from flags or a file
- `clusters`       the same from the applied revision of a cluster
- `boot`           settings to graphs, policies, stored queries and tokens; then uvicorn; new settings on SIGHUP
- `supervisor`     several processes: accepts connections and hands them to workers; `worker` is one of them,
                   `listening` their messages to each other
- `protocol`       HTTP on a connection, with size limits
- `app`            one request from its first byte to its last, on Starlette
- `routing`        what a route is, and how a path is matched; `routes` is the table of all of them
- `access`         who may send requests: tokens, cross-origin pages, policies; the guard itself is `policy/guard`
- `oidc`           tokens of OpenID Connect issuers, and the keys that verify them
- `limits`         concurrency limits: requests and loads per actor and in total; `counts` what is held, in all workers
- `threads`        thread pools: one shared by requests, one that schedules actors in turn
- `bodies`         request bodies: decompressed within limits, decoded to structs, or spooled to disk
- `load_sources`   what a load reads: lines or tables in a body, or an address
- `request`        what a handler receives, and what it returns
- `routes/`        the handlers by noun; each is one call of a graph
- `jobs`           work that outlives its request
- `wire`           the shapes of requests and responses
- `errors`         failures to statuses and bodies: the one place that knows both
- `stored_queries` queries kept in `.gq` and `.cypher` files
- `telemetry`      counts, durations, the access log, spans; `slow_queries` the log of those, `log` the format of lines
- `openapi`        the OpenAPI description, generated from the table of routes
"""
