"""Values shared by every room: what a graph is made of, without any input or output.

In the order of use: `frozen` makes immutable classes; `names` parses names; `types` are the types of
properties and `columns` their Arrow columns; `catalog` is the checked schema; `changes` are the changes of a write;
`keys` derives ids; `instants` are times as stored; `tokens` are the footprints two writes are compared by; `limits`
holds every bound with its unit; `embedding` says how texts become vectors; `yaml_text` reads handwritten YAML.
"""
