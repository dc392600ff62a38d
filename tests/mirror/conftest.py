"""Without a package that they need, these tests are left out."""

from importlib.util import find_spec

NEEDED = ("duckdb", "pyarrow", "rich", "typer", "xlsxwriter")

collect_ignore_glob = [] if all(map(find_spec, NEEDED)) else ["*"]
