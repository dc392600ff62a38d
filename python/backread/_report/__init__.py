"""The report of `Figures` as one HTML page with charts, which runs no script."""
