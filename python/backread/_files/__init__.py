"""Private, atomically written files, checks of their paths, and work that no signal cuts in two."""
