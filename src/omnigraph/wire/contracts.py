"""What the server and its clients call things in HTTP; and the contracts of the Rust project that its HTTP clients, and
parsers of its CLI output, were written for."""

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
COMMIT_HEADER = "Omnigraph-Graph-Commit"  # of a response: the commit it is about
IF_COMMIT = "omnigraph-if-graph-commit"  # of a request: the head a write depends on

CONTRACTS = ("0.10", "0.13")
NEWEST = "0.13"  # in which a record has its id beside its type
OLDEST = "0.10"  # in which a bare node variable returns the id
HTTP_API = "omnigraph-http-api"  # the header that names one
