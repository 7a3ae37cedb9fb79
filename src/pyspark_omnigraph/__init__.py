"""Lets Spark discover the format `omnigraph`: it looks for packages whose names begin with `pyspark_`.

A Spark too old for the format must still discover other formats: nothing is registered there.
"""

from contextlib import suppress

from omnigraph.pipeline.session import SparkTooOld

with suppress(SparkTooOld):
    from omnigraph.pipeline.source import FoundSource

    DefaultSource = FoundSource  # the name Spark looks for
