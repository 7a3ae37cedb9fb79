"""Graphs over HTTP: a request comes in, is recognised, allowed and bounded, becomes one call of a `Graph`, and is
answered.

In the order of control flow:

- `settings`    what is served and with which limits, from flags or a file
- `boot`        settings to graphs, policies, stored queries and tokens; then uvicorn
- `app`         one request from its first byte to its last: the only module that sees ASGI
- `table`       what a route is, and how a path is matched; `routes` is the table of all of them
- `origins`     what web pages of others send; refused where there are no tokens
- `identity`    bearer tokens: who is asking
- `access`      which policy guards which graph; the guard itself is `policy/guard`
- `limits`      how much at once: requests and loads of an actor, of the process; `turns` threads actors share
- `bodies`      request bodies: unpacked within bounds, decoded to structs, or spooled to disk
- `multipart`   Arrow tables in a body of several parts; `lines` the records of a JSON body, `spooled` what a load reads
- `calls`       what a handler is given, and what it gives back
- `routes/`     the handlers by noun; each is one call of a graph
- `jobs`        work that outlives its request
- `wire`        the shapes of requests and answers
- `negotiation` media types and encodings a client would rather have
- `errors`      failures to statuses and bodies: the one place that knows both
- `tokens`      positions in a change feed, as opaque texts
- `references`  addresses a load may be read from
- `stored`      queries kept in `.gq` files
- `telemetry`   counts, durations, the access log, spans
- `openapi`     the description of all this, made from the table of routes
"""
