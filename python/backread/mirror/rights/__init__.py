"""Removing people and expired rows for good."""
