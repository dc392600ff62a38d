"""Integrations: `backread.integrations.airflow` and `backread.integrations.spark`.

Each imports its system only on use, and backread itself imports neither.
"""
