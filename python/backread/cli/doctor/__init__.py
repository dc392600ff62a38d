"""``doctor``: checks the settings, the way to the service, its answer, and a mirror."""

from backread.cli.doctor.command import doctor

__all__ = ["doctor"]
