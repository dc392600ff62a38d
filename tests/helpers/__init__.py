"""What tests share: servers, clients, rows, and processes.

``children/`` has programs that tests start as processes.
"""

from pathlib import Path

CHILDREN = Path(__file__).parent / "children"
