"""The client, and the listings that it gives."""
