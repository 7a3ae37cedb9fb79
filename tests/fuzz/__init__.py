"""Any bytes for everything that reads: only our errors may come out.

- `ours`       what may come out of a target
- `targets`    what reads, as functions of bytes; each lets our errors pass and fails on everything else
- `documents`  targets that read files and answers of people, servers and operators
- `seeds`      small valid inputs to start from, and the words a fuzzer may put together
- `run`        `python -m tests.fuzz.run --seconds 3600`: coverage-guided, one process per target
- `found/`     inputs that once broke something; every run of the tests replays them
"""
