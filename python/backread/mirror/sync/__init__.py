"""One run: what is read is committed in batches, the run is closed, and published."""
