"""The data pipeline on Spark: loads, exports, queries and analytics of any size. The only importer of pyspark.

Nothing here commits: tasks write files nobody sees, and the driver hands a plan to the publisher every write goes
through. In the order of control flow:

- `engine`            which plane a load, a query or an export runs on
- `session`           the Spark session: given, active, configured or a quiet local one
- `failures`          what goes wrong on a cluster, in our words
- `jvm_cds`           what makes the next one start quicker
- `pinned`            one state of a graph, as it travels to tasks
- `spec`              pipeline files
- `lineage`           what a run of one read and wrote, as OpenLineage events
- `databases`         tables and queries of databases
- `sources`           what a load is given, cut into pieces
- `rows`              a piece as rows, by the readers of `write.input`
- `progress`          how far tasks are
- `stage`             what a task does with a piece: complete, check, write
- `gather`            rows of one id brought together, where a load chooses between them
- `table_versions`    columns of table versions as DataFrames
- `lookups`           few new rows, judged by look-ups
- `screen`            many, compared partition by partition: whether anything is wrong at all
- `verify`            what is wrong, as exact joins; `facts` what the verdict rests on
- `violation_report`  everything that is wrong, when a report has no room for it
- `judging`           staged rows as a valid write
- `aside`             rows that are left out, and the file they are written to
- `job_costs`         what it cost, for its report
- `load`              the whole of it
- `frames`            nodes and edges as DataFrames
- `source`            the format `omnigraph` of Spark programs
- `sql_tables`        a graph as a schema of Spark SQL
- `changes`           what a branch changed, as batches and streams
- `streams`           streams into a graph, a commit for each micro-batch
- `export`            parts of files, written by tasks
- `query`             the operators of a query as DataFrames
- `rowset`            their rows, and expressions over them
- `native`            those expressions that Spark means the same by
- `searches`          texts and vectors inside tasks
- `scans`             nodes and edges as rows
- `walks`             hops and paths
- `ranks`             rankings and their fusion
- `blocks`            a network as arrays, for measures that go round by round
- `block_steps`       what blocks do in a round of each
- `analytics`         measures of whole graphs
- `maintain`          fragments rewritten and indices built
"""
