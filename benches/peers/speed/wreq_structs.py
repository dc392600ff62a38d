"""wreq with msgspec structs; with ``untracked``, out of the sight of the garbage collector."""

import pages
import structs
import wreq_pages
from measured import measure

measure(lambda: pages.run(wreq_pages.read(structs)))
