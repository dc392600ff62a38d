"""A local mirror of the service: a folder that `Mirror.sync` fills and `Mirror.sql` reads.

Layers, each of which imports only those before it::

    engine, report, schema, known, progress, lock, lazy, layout
    memory, published_lists, row_stream, unfinished_run, folding <- those above
    source, merge, queries, views <- those above
    service, manifest, deletions, database <- those above
    store, commit, given_users, snapshot_reader, interruptible_reader, parquet_files, ranges,
    rejects <- those above
    views_database <- publish <- those above
    runs, conversation, summary, table, changes <- finish_run, export, windows <- purge <- retention
    synchronize, forget, search, figures <- arguments <- mirror, people (with people_tables)

The folder contains ``mirror.duckdb`` (the tables and the state of the sync, opened only by the
writer), ``published`` (the Parquet files for readers), ``chats.duckdb`` (views over them, for other
programs) and ``sync.lock``. DuckDB is installed with
``pip install "backread[mirror]"`` and imported when a mirror is first used.
"""

from backread.mirror.changes import Changes
from backread.mirror.conversation import Conversation
from backread.mirror.export import ExportProgress, ExportReport
from backread.mirror.figures import Figures, FiguresProgress
from backread.mirror.mirror import Mirror
from backread.mirror.report import ForgetReport, SyncFigures, SyncProgress, SyncReport
from backread.mirror.search import SearchHit, SearchResults
from backread.mirror.table import MirrorTable, MirrorTables
from backread.mirror.unfinished_run import UnfinishedRun

__all__ = [
    "Changes",
    "Conversation",
    "ExportProgress",
    "ExportReport",
    "Figures",
    "FiguresProgress",
    "ForgetReport",
    "Mirror",
    "MirrorTable",
    "MirrorTables",
    "SearchHit",
    "SearchResults",
    "SyncFigures",
    "SyncProgress",
    "SyncReport",
    "UnfinishedRun",
]
