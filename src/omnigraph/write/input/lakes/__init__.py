"""Tables of a lake: Delta and Iceberg, read from their own metadata.

Both become a list of Parquet files and, of each, what the table says about it: what its columns are called now, values
it does not hold, and rows that were deleted.

In the order of control flow:

- `delta`     the log of a Delta table as the files of its newest version
- `iceberg`   the metadata of an Iceberg table as the files of its current snapshot
- `parts`     one such file, and its rows as those of the table
- `bitmaps`   the rows of a file that were deleted, as both formats store them
"""
