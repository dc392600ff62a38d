"""What `ServiceProfile` is made of: its findings, their words, and how two profiles differ."""
