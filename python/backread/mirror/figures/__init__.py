"""`Mirror.figures`: volume, response times, workload and more, from the published snapshot."""

from backread.mirror.figures.model import (
    Coverage,
    Figures,
    FiguresProgress,
    ResponseFigures,
    Totals,
)

__all__ = ["Coverage", "Figures", "FiguresProgress", "ResponseFigures", "Totals"]
