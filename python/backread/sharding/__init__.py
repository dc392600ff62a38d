"""Splits a reading into shards that can be read on several machines.

`plan` reads the list of users once and splits it; a `Shard` names some of those users and their
service. It contains no rows and no secret, and is sent as a pickle or as JSON. Each row is in
exactly one shard. `join_reports` says what all shards prove together.
"""

from backread.sharding.joining import join_reports
from backread.sharding.planning import Plan, plan
from backread.sharding.shard import Shard

__all__ = ["Plan", "Shard", "join_reports", "plan"]
