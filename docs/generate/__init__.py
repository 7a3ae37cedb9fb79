"""The pages of the reference that are made from code: `python -m docs.generate docs/reference`.

- `pages`       commands, error codes, settings, metrics
- `python_api`  classes and functions, from signatures and docstrings
- `parity`      what each command is called in Python and over HTTP
"""
