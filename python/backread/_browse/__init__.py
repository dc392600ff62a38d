"""The local page of ``backread browse``: people and their conversations in a browser.

``server`` has the sockets, ``site`` decides who may see what, ``api`` answers the script's requests
with markup from ``lists`` and ``bubbles``. The script puts it into the page.
"""

from backread._browse.server import BrowseServer

__all__ = ["BrowseServer"]
