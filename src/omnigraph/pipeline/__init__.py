"""The data pipeline on Spark: loads, exports, queries and analytics of any size. The only importer of pyspark.

Nothing here commits: tasks write unpublished files, and the driver hands a plan to the publisher that all writes use.
In the order of control flow:

- `engine`            which plane a load, a query or an export runs on
- `session`           the Spark session: given, active, configured or a quiet local one
- `failures`          failures of Spark as our errors; `log_file` where its own messages go
- `deadlines`         jobs that end with their query
- `jvm_cds`           the class archive that speeds up the next start
- `pinned`            one state of a graph, serialised for tasks
- `spec`              pipeline files
- `lineage`           inputs and outputs of a run, as OpenLineage events
- `databases`         tables and queries of databases
- `sources`           the input of a load, cut into pieces
- `rows`              a piece as rows, by the readers of `write.input`
- `progress`          progress of tasks
- `stage`             the task for a piece: complete, check, write
- `row_addresses`     the stored rows a load changes or removes
- `gather`            groups rows of one id, if a load chooses between them
- `table_versions`    columns of table versions as DataFrames
- `lookups`           verification of few new rows, by look-ups
- `screen`            verification of many, partition by partition: whether there is any violation
- `verify`            the violations, as exact joins; `facts` the basis of the verdict
- `violation_report`  all violations, if they exceed the report
- `judging`           staged rows as a valid write
- `aside`             the quarantine: rows left out, and their file
- `job_costs`         the cost of a load, for its report
- `load`              the whole load
- `frames`            nodes and edges as DataFrames
- `source`            the format `omnigraph` of Spark programs
- `sql_tables`        a graph as a schema of Spark SQL
- `changes`           the changes of a branch, as batches and streams
- `streams`           streams into a graph, one commit per micro-batch
- `export`            parts of files, written by tasks
- `query`             the operators of a query as DataFrames; `unsupported` those without any
- `rowset`            their rows, and expressions over them
- `native`            expressions with the same meaning in Spark
- `searches`          text and vector search inside tasks
- `scans`             nodes and edges as rows
- `walks`             hops and paths
- `ranks`             rankings and their fusion
- `blocks`            a network as arrays, for iterative measures
- `block_steps`       the steps of each measure in a round
- `analytics`         measures of whole graphs
- `maintain`          fragments rewritten and indices built
"""
