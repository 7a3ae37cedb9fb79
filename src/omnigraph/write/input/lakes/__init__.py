"""Tables of a lake: Delta and Iceberg, read from their own metadata.

Both become a list of Parquet files with the table's metadata for each: current column names, values the file does not
hold, and deleted rows.

In the order of control flow:

- `delta`     the log of a Delta table as the files of its newest version
- `iceberg`   the metadata of an Iceberg table as the files of its current snapshot
- `parts`     one such file, and its rows as those of the table
- `bitmaps`   the rows of a file that were deleted, as both formats store them
"""
