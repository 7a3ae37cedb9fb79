"""Would the tests notice? Small changes to the sources, one at a time, each judged by the tests that run its line.

- `mutants`     every change there is to a module: operators, conditions, numbers, statements
- `reach`       which tests run which lines, and how long each takes
- `judge`       one change and its tests in a process of their own
- `kept`        verdicts that were given, until a source or a test they rest on is another
- `run`         `python -m tests.mutation.run`: a seeded sample of each room, the survivors, the score
- `equivalent.txt`  changes that change nothing anybody could see, each with its reason
"""
