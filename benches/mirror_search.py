"""What a search over a mirror costs, next to other ways of finding text with DuckDB.

Fills mirrors with messages of about 200 bytes in English, German, Russian and Chinese, publishes
them, and measures `Mirror.search` for a word that occurs, a rare one and one that does not occur.
The other ways find less, or the same at a higher price:

- ``read``: only reads the bodies, which every scan must;
- ``ILIKE``: folds case and no accents;
- ``fold``: ``contains(strip_accents(lower(body)), …)``, which folds both;
- ``pattern``: one regular expression with all variants of each character, also for ASCII texts.

Usage: ``python benches/mirror_search.py [--messages 1000000] [--rounds 3] [--threads 2]
[--languages english german russian chinese]``
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from backread.mirror import Mirror, folding
from backread.mirror.database import open_database
from backread.mirror.engine import quoted
from backread.mirror.publish import publish
from backread.mirror.store import Store

ENGLISH = """
the order came late and nobody answered my question about delivery please send invoice to office
thanks regards customer payment failed again yesterday website shows error login password
"""
GERMAN = """
die Bestellung kam zu spät und niemand hat meine Frage beantwortet bitte Rechnung ans Büro
schicken danke Grüße Kunde Zahlung schlug gestern wieder fehl Straße größer schön für über müssen
"""
RUSSIAN = """
заказ пришёл поздно и никто не ответил на мой вопрос о доставке пожалуйста отправьте счёт в офис
спасибо клиент оплата снова не прошла вчера сайт показывает ошибку
"""
CHINESE = "订单来得太晚没有人回答我关于交货的问题请把发票寄到办公室谢谢客户付款昨天又失败了"

LANGUAGES: dict[str, tuple[list[str], str, int, tuple[str, ...]]] = {
    "english": (ENGLISH.split(), " ", 32, ("invoice", "99990", "nowhere")),
    "german": (GERMAN.split(), " ", 29, ("GRUSSE", "99990", "nirgends")),
    "russian": (RUSSIAN.split(), " ", 17, ("счет", "99990", "нигде")),
    "chinese": ([*CHINESE], "", 63, ("发票", "99990", "哪里")),
}
"""Words, what is between them, how many a message has, and what is searched for."""


def fill(store: Store, messages: int, language: str) -> None:
    """Messages of 50 to a user, and a finished run that read them."""
    words, separator, count, _ = LANGUAGES[language]
    chosen = f"[{', '.join(map(quoted, words))}]"
    body = f" || {quoted(separator)} || ".join(
        f"({chosen})[1 + (hash(id * 31 + {place}) % {len(words)})::INT]" for place in range(count)
    )
    store.rows(
        "INSERT INTO users (id, first_seen_at) "
        f"SELECT id, now() FROM range({messages // 50}) AS ids(id)"
    )
    store.rows(
        "INSERT INTO messages (user_id, id, body, created_at, sender_type, first_seen_at) SELECT "
        f"id // 50, id, {body} || ' ' || (id % 99991)::VARCHAR, TIMESTAMPTZ '2024-01-01' + "
        "to_seconds((hash(id) % 60000000)::BIGINT), 'user', now() "
        f"FROM range({messages}) AS ids(id)"
    )
    store.rows(
        "INSERT INTO runs (run_id, state, started_at, ended_at) "
        "VALUES (1, 'finished', now(), now())"
    )


def ways(mirror: Mirror, word: str, threads: int) -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    folded = folding.fold(word)
    anything = folding.may_contain("body", [folded]).split(" ELSE ")[1].removesuffix(" END")
    conditions = {
        "read": "strlen(body) > 1000000",
        "ILIKE": f"body ILIKE {quoted(f'%{word}%')}",
        "fold": f"contains(strip_accents(lower(body)), {quoted(folded)})",
        "pattern": anything,
    }

    def query(condition: str) -> Callable[[], object]:
        text = (
            "SELECT user_id, id, body FROM messages WHERE deleted_at IS NULL "
            f"AND {condition} ORDER BY created_at DESC NULLS LAST, user_id, id LIMIT 50"
        )
        return lambda: mirror.sql(text, unrestricted=True).fetchall()

    mirror.sql(f"SET GLOBAL threads = {threads}", unrestricted=True)
    return {"search": lambda: mirror.search(word)} | {
        name: query(condition) for name, condition in conditions.items()
    }


def cost(action: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The fewest CPU seconds and the fewest seconds of some calls."""
    found = []
    for _ in range(rounds):
        start, before = time.perf_counter(), _cpu_seconds()
        action()
        found.append((_cpu_seconds() - before, time.perf_counter() - start))
    return min(each for each, _ in found), min(each for _, each in found)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--languages", nargs="+", choices=[*LANGUAGES], default=[*LANGUAGES])
    parser.add_argument("--ways", nargs="+", help="only these; default: all")
    options = parser.parse_args()
    print(f"{options.messages:,} messages, {options.threads} threads\n")
    print("| language | word | way | CPU s | s |\n|---|---|---|---|---|")
    for language in options.languages:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            with open_database(path) as connection:
                store = Store(path, connection)
                fill(store, options.messages, language)
                publish(store)
            mirror = Mirror(path)
            for word in LANGUAGES[language][3]:
                for name, action in ways(mirror, word, options.threads).items():
                    if options.ways and name not in options.ways:
                        continue
                    cpu, seconds = cost(action, options.rounds)
                    print(
                        f"| {language} | {word} | {name} | {cpu:.2f} | {seconds:.2f} |", flush=True
                    )


if __name__ == "__main__":
    main()
