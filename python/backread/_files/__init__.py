"""Private, atomically written files, and checks of their paths."""
