"""Examples for the help of each command: what they do, and the line to type."""

from __future__ import annotations

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("Try it without a service: a mirror with made-up people", "backread demo chats"),
        ("Copy a service into a folder, and only what is new from then on", "backread sync chats"),
        ("Read a conversation of that folder", "backread show chats 42"),
    ),
    "users": (
        ("The first ten users, to look at", "backread users --limit 10 --format table"),
        ("All users as a file for a spreadsheet", "backread users --output users.csv --excel"),
        ("The e-mail addresses, by jq", "backread users | jq -r .email"),
    ),
    "user": (
        ("One user, with fields that backread does not know", "backread user 42"),
        ("The same, indented by jq", "backread user 42 | jq ."),
    ),
    "messages": (
        ("The messages of user 42, to look at", "backread messages 42 --format table"),
        (
            "The messages of all users as one file",
            "backread messages --all --output messages.parquet",
        ),
    ),
    "message": (
        ("Message 2 of user 42", "backread message 42 2"),
        ("Its text, by jq", "backread message 42 2 | jq -r .body"),
    ),
    "sync": (
        ("Copy the service, or what is new of it", "backread sync chats"),
        ("Also find out what was deleted", "backread sync chats --full"),
        (
            "What moved, where hints hold, in at most ten minutes",
            "backread sync chats --quick --max-seconds 600",
        ),
    ),
    "status": (
        ("What is proved, and what to do about the rest", "backread status chats"),
        (
            "For a monitor: 6 unless all was read in the last week",
            "backread status chats --max-staleness-days 7 --json",
        ),
    ),
    "runs": (
        ("The last ten syncs, and the one that is going on", "backread runs chats"),
        ("The last one alone", "backread runs chats --limit 1"),
    ),
    "report": (
        ("The main figures", "backread report chats"),
        ("All of them with charts, as a page", "backread report chats -o report.html --open"),
        (
            "Response times within opening hours",
            "backread report chats --timezone Europe/Berlin --opening-hours 'mon-fri 9-17'",
        ),
    ),
    "browse": (
        ("Read and search in the browser", "backread browse chats"),
        ("Only print the address", "backread browse chats --no-open"),
    ),
    "search": (
        ("Messages with both words", "backread search chats refund invoice"),
        ("With a phrase, in March", "backread search chats '\"not paid\"' --since 2026-03-01"),
        ("As JSON lines, for jq", "backread search chats refund --format json | jq .user_id"),
    ),
    "show": (
        ("The conversation of user 42", "backread show chats 42"),
        ("Its last ten messages", "backread show chats 42 --last 10"),
        ("A message that search has found", "backread show chats 42 --message 9"),
    ),
    "sql": (
        (
            "Who wrote most",
            'backread sql chats "SELECT name, messages FROM conversations ORDER BY 2 DESC LIMIT 5"',
        ),
        ("A query from a file, as CSV", "backread sql chats - --output days.csv < days.sql"),
        ("A whole table, as JSON lines", 'backread sql chats "FROM users" --format json'),
    ),
    "tables": (
        ("What there is", "backread tables chats"),
        ("The columns of messages", "backread tables chats messages"),
    ),
    "export": (
        ("A spreadsheet", "backread export chats chats.xlsx"),
        ("CSV files of one month", "backread export chats march --format csv --since 2026-03-01"),
        ("All about one person", "backread export chats person.json --user 42 --everything"),
    ),
    "changes": (
        ("Every row, and a cursor for the next time", "backread changes chats --output rows.jsonl"),
        (
            "What has changed since then",
            "backread changes chats --cursor-file cursor --output rows.jsonl",
        ),
    ),
    "forget": (
        ("Remove a person for good", "backread forget chats 42"),
        ("And from a landing folder", "backread forget chats 42 --landing landed"),
    ),
    "mock": (
        ("A fake of the service for tests", "backread mock --users 5000 --seed 7"),
        ("One that is hostile", "backread mock --dialect hostile --port 8080"),
    ),
    "demo": (
        ("Make a mirror of made-up people, and look around", "backread demo chats"),
        ("Then read one of them", "backread show chats 1471"),
    ),
    "probe": (
        ("What the service does, measured with GET requests", "backread probe"),
        ("Keep it, and compare later", "backread probe --save profile.json"),
        ("Exit with 8 if the service differs", "backread probe --against profile.json"),
    ),
    "doctor": (("Find out what is not installed, configured or reachable", "backread doctor"),),
    "mcp": (("Let an assistant read a mirror", "backread mcp chats"),),
}
"""By the name of the command; a command without an entry has none in its help."""
