"""How fast users are answered, by weekday, and who still waits."""

from response_times.analysis import Report, Waiting, read, read_async

__all__ = ["Report", "Waiting", "read", "read_async"]
