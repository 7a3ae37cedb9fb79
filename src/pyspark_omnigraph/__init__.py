"""Makes Spark find the format `omnigraph` by itself: it looks for packages whose names begin with `pyspark_`.

A Spark that is too old for the format must still find those of others: nothing is offered there.
"""

from contextlib import suppress

from omnigraph.pipeline.session import SparkTooOld

with suppress(SparkTooOld):
    from omnigraph.pipeline.source import FoundSource

    DefaultSource = FoundSource  # the name Spark looks for
