"""Exports the published snapshot to the files of other tools; see `Mirror.export`.

Layers, each of which imports only those before it::

    cells <- job <- plan, target
    copying, databases, xlsx, person <- those above
    run <- those above
"""

from backread.mirror.export.job import Codec, ExportFormat, ExportProgress, ExportReport

__all__ = ["Codec", "ExportFormat", "ExportProgress", "ExportReport"]
