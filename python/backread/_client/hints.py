"""The core's rule for trusting the hints of users."""

from backread._backread import HintsEvidence, hints_evidence

__all__ = ["HintsEvidence", "hints_evidence"]
