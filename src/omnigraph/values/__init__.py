"""Values: from input to a value of a property's type, and back to text. One definition for every entry point.

Parameters, literals and defaults, records and lines of JSON, tables, cells of CSV, assignments and the resolutions of a
merge all read here; `docs/reference/values.md` describes the same in words.

- `spelling`  the texts of dates, times, bytes and numbers; values in their JSON shape
- `misfit`    errors about a value that is not one of its type
- `reading`   one value: the definition
- `columns`   the same for whole Arrow columns, which a test proves equal to `reading`
- `temporal`  durations, local times and time zones, which queries compute with and no property holds
"""
