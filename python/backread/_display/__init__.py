"""Words and HTML that the classes share; each class renders itself in its own module."""
