"""`Mirror.figures`: volume, response times, workload and more, from the published snapshot."""

from backread._report.figures import Coverage, Figures, FiguresProgress, ResponseFigures, Totals

__all__ = ["Coverage", "Figures", "FiguresProgress", "ResponseFigures", "Totals"]
