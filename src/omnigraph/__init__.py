"""omnigraph: a lakehouse graph database for Python."""

__version__ = "0.1.0"
