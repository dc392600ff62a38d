"""Without a package that landing needs, its tests are left out."""

from importlib.util import find_spec

NEEDED = ("duckdb", "pyarrow")

collect_ignore_glob = [] if all(map(find_spec, NEEDED)) else ["test_landing*.py"]
