"""A local mirror of the service: a folder that `Mirror.sync` fills and `Mirror.sql` reads.

Layers, each of which imports only those before it::

    engine, report, schema, known, progress, lock, lazy
    memory, published_lists, source, manifest, merge, migrate, queries <- those above
    service, publish, deletions, database, views <- those above
    store, commit, given_users, snapshot_reader <- those above
    runs, conversation, table <- finish_run, export <- synchronize <- mirror

The folder contains ``mirror.duckdb`` (the tables and the state of the sync, opened only by the
writer), ``published`` (the Parquet files for readers) and ``sync.lock``. DuckDB is installed with
``pip install "backread[mirror]"`` and imported when a mirror is first used.
"""

from backread.mirror.conversation import Conversation
from backread.mirror.export import ExportProgress, ExportReport
from backread.mirror.mirror import Mirror
from backread.mirror.report import SyncProgress, SyncReport
from backread.mirror.table import MirrorTable, MirrorTables

__all__ = [
    "Conversation",
    "ExportProgress",
    "ExportReport",
    "Mirror",
    "MirrorTable",
    "MirrorTables",
    "SyncProgress",
    "SyncReport",
]
