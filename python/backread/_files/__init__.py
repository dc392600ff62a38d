"""Files that are private, whole or not there, and where they may be."""
