"""Integrations: `backread.integrations.airflow`, `.spark` and `.mcp`.

Each imports its system only on use, and backread itself imports neither.
"""
