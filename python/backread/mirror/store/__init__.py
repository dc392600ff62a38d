"""The writer's database: its files, tables and lock."""
