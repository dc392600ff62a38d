"""`Mirror.figures`: volume, response times, workload and more, from the published snapshot."""

from backread.mirror.figures.model import (
    AttachmentFigures,
    Coverage,
    Figures,
    FiguresProgress,
    HourFigures,
    InvitationFigures,
    LongConversation,
    OperatorFigures,
    PeriodFigures,
    ResponseBucket,
    ResponseFigures,
    StateFigures,
    Totals,
    UnprovedList,
)

__all__ = [
    "AttachmentFigures",
    "Coverage",
    "Figures",
    "FiguresProgress",
    "HourFigures",
    "InvitationFigures",
    "LongConversation",
    "OperatorFigures",
    "PeriodFigures",
    "ResponseBucket",
    "ResponseFigures",
    "StateFigures",
    "Totals",
    "UnprovedList",
]
