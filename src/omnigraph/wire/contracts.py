"""The contracts of the Rust project that its HTTP clients, and parsers of its CLI output, were written for."""

CONTRACTS = ("0.10", "0.13")
NEWEST = "0.13"  # in which a record has its id beside its type
OLDEST = "0.10"  # in which a bare node variable returns the id
HTTP_API = "omnigraph-http-api"  # the header that names one
