"""wreq with the dictionaries of orjson."""

import dicts
import pages
import wreq_pages
from measured import measure

measure(lambda: pages.run(wreq_pages.read(dicts)))
