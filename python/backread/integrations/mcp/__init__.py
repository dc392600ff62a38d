"""A server of the Model Context Protocol (MCP) over a mirror, for programs with language models.

``backread mcp FOLDER`` runs it; `create_server` builds it for a program of your own. It only reads
the mirror. Requires the extra ``mcp`` (``pip install "backread[mcp]"``).

Layers, each of which imports only those before it::

    answers <- tools <- server
"""

from backread.integrations.mcp.server import create_server, serve

__all__ = ["create_server", "serve"]
