"""Prints the report of the service that BACKREAD_BASE_URL and the other two settings name."""

from backread import Client

from response_times.analysis import WEEKDAYS, read


def main() -> None:
    """Reads everything once and prints what it adds up to."""
    with Client() as client:
        report = read(client)
    print(f"{report.messages} messages of {len(report.users)} users")
    for day in WEEKDAYS:
        if day in report.median_by_weekday:
            print(f"{day:<10} {report.median_by_weekday[day]}")
    for each in report.waiting[:10]:
        print(f"user {each.user_id} waits since {each.since:%Y-%m-%d %H:%M}")
    if report.doubt is not None:
        print(f"this may not be all: {report.doubt}")


if __name__ == "__main__":
    main()
