"""backread in other programs: `backread.integrations.airflow` and `backread.integrations.spark`.

Each imports its system only when it is used; none of them is imported by backread itself.
"""
