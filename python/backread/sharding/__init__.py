"""One reading in parts: what `plan` finds, each `Shard` reads, on this machine or on others.

A plan reads the list of users once and cuts it; a shard names some of those users, and where their
service is. It holds no data and no secret, and travels by pickle or as JSON. Each row is in one
shard alone. `join_reports` says what all of them prove together.
"""

from backread.sharding.joining import join_reports
from backread.sharding.planning import Plan, plan
from backread.sharding.shard import Shard

__all__ = ["Plan", "Shard", "join_reports", "plan"]
