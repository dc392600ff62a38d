"""A local mirror of the service: a folder that `Mirror.sync` fills and `Mirror.sql` reads.

``mirror`` is the face. Below it, each folder imports only those after it: ``export`` and
``figures``, ``sync`` (one run), ``rights`` (forget, retention), ``published`` (Parquet files and
their readers), ``store`` (the writer's database).

The folder contains ``mirror.duckdb`` (the tables and the state of the sync, opened only by the
writer), ``published`` (the Parquet files for readers), ``chats.duckdb`` (views over them, for other
programs), ``files`` (attachments) and ``sync.lock``. DuckDB is installed with
``pip install "backread[mirror]"`` and imported when a mirror is first used.
"""

from backread.mirror.attachments import FailedFile, FilesProgress, FilesReport
from backread.mirror.export import ExportProgress, ExportReport
from backread.mirror.figures import Figures, FiguresProgress
from backread.mirror.mirror import Mirror
from backread.mirror.published.changes import Changes
from backread.mirror.published.conversation import Conversation
from backread.mirror.published.search import SearchHit, SearchResults
from backread.mirror.published.status import MirrorStatus
from backread.mirror.published.table import MirrorTable, MirrorTables
from backread.mirror.rights.forget import ForgetReport
from backread.mirror.sync.progress import UnfinishedRun
from backread.mirror.sync.report import SyncFigures, SyncProgress, SyncReport

__all__ = [
    "Changes",
    "Conversation",
    "ExportProgress",
    "ExportReport",
    "FailedFile",
    "Figures",
    "FiguresProgress",
    "FilesProgress",
    "FilesReport",
    "ForgetReport",
    "Mirror",
    "MirrorStatus",
    "MirrorTable",
    "MirrorTables",
    "SearchHit",
    "SearchResults",
    "SyncFigures",
    "SyncProgress",
    "SyncReport",
    "UnfinishedRun",
]
