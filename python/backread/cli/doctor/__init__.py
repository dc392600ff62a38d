"""``doctor``: checks the installation, the settings, the way to the service, and a mirror."""

from __future__ import annotations

from backread.cli.doctor.command import doctor

__all__ = ["doctor"]
