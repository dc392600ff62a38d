"""Prints who has waited longest for an answer: users who wrote last, and when.

Usage: ``python examples/unanswered.py FOLDER``; the folder is a mirror, made or brought up to date
first. The service comes from BACKREAD_BASE_URL, BACKREAD_API_SECRET and BACKREAD_VENDOR; without a
service, start ``backread mock`` and set what it prints. Needs ``pip install "backread[mirror]"``
(not on PyPI yet: see docs/how-to/install.md).
"""

import sys

from backread import Client, Mirror

UNANSWERED = """
    SELECT user_id, name, last_message_at, unread_by_operator
    FROM conversations
    WHERE last_sender_type = 'user'
    ORDER BY last_message_at
    LIMIT 10
"""


def main(folder: str) -> None:
    mirror = Mirror(folder)
    with Client() as client:
        report = mirror.sync(client)
    print(f"{report.users} users, {report.messages} messages, {report.requests} requests")
    for user_id, name, since, unread in mirror.sql(UNANSWERED).fetchall():
        print(f"{since:%Y-%m-%d %H:%M}  {user_id}  {name}  ({unread} unread)")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/unanswered.py FOLDER")
    main(sys.argv[1])
