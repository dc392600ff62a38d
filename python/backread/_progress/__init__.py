"""Progress bars and what they write."""
