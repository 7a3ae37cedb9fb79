"""Reading input to load: from files, streams, tables and Python records to `Incoming` rows of the schema.

In the order of control flow:

- `options`     how to read
- `sources`     what a load accepts, and which reader it uses
- `mapping`     one wide table as rows of several types, and several sources together, as pipeline files name them
- `expressions` the SQL for its values
- `change_records`  changes from other systems, as rows with an order that may delete
- `json_lines`  lines of JSON as columns, for both
- `files`       paths, patterns and addresses; compressed or not; blocks of whole lines
- `input_files` the files of rows a path stands for: plain, in folders, of tables of a lake
- `lakes`       Delta and Iceberg tables, as their files and table metadata
- `folders`     folders of parts, and the columns their names hold
- `records`     lines of JSON, by the fastest reading that is safe
- `lines`       the lines of a block by their positions
- `template`    the first reading: lines that differ only in their values
- `arrow_json`  the second: lines of one type, by Arrow
- `exact`       the third: one line at a time, every rule and every error
- `json_arrays` one array of JSON as lines
- `tables`      Arrow, pandas, polars, Parquet, CSV, ORC
- `avro`        Avro
- `unpacking`   Parquet and Arrow files, if their content fits
- `parts`       rows of one type on their way to `Incoming`
- `problems`    errors, collected up to a bound
- `quarantine`  the file of rows rejected by a load
- `preview`     the first rows of a file, before their type is known
"""
