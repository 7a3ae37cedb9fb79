"""The data pipeline on Spark: loads, exports, queries and analytics of any size. The only importer of pyspark.

Nothing here commits: tasks write files nobody sees, and the driver hands a plan to the publisher every write goes
through. In the order of control flow:

- `session`    the Spark session: given, active, configured or a quiet local one
- `pinned`     one state of a graph, as it travels to tasks
- `sources`    what a load is given, cut into pieces
- `rows`       a piece as rows, by the readers of `write.input`
- `stage`      what a task does with a piece: complete, check, write
- `images`     columns of table versions as DataFrames
- `verify`     rules about more than one row, as exact joins
- `load`       the whole of it
"""
