"""Reading what is to be loaded: from files, streams, tables and Python records to `Incoming` rows of the schema.

In the order of control flow:

- `options`     how to read
- `sources`     what a load may be given, and which reader it takes
- `declared`    several sources together, as pipeline files name them
- `mapping`     one wide table as rows of several types
- `expressions` the SQL its values are made by
- `change_records`  what happened elsewhere, as rows with an order that may delete
- `json_lines`  lines of JSON as columns, for both
- `files`       paths, patterns and addresses; compressed or not; blocks of whole lines
- `input_files` the files of rows a path stands for: plain, in folders, of tables of a lake
- `lakes`       Delta and Iceberg tables, as their files and what the tables say of them
- `folders`     folders of parts, and the columns their names hold
- `records`     lines of JSON, by the fastest reading that is certain
- `lines`       the lines of a block by their positions
- `template`    the first reading: lines that differ in their values alone
- `arrow_json`  the second: lines of one type, by Arrow
- `exact`       the third: one line at a time, every rule and every error
- `json_arrays` one array of JSON as lines
- `tables`      Arrow, pandas, polars, Parquet, CSV, ORC
- `avro`        Avro
- `unpacking`   Parquet and Arrow files, if what comes of them fits
- `parts`       rows of one type on their way to `Incoming`
- `problems`    what is wrong, gathered up to a bound
- `quarantine`  the file of rows that a load leaves out
- `preview`     the first rows of a file, before anybody says what they are
"""
