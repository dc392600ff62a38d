"""The DAGs of a page's block, as a file that Airflow starts in each of three ways."""

from __future__ import annotations

import ast

__all__ = ["ASSET", "dag_ids", "started_in_each_way"]

ASSET = "test://start"
"""An event of this asset starts every DAG that no other asset schedules."""

IMPORTS = "from airflow.sdk import Asset, AssetOrTimeSchedule, CronTriggerTimetable\n"
# Its latest tick is made up for as soon as the DAG is unpaused; the next one is far off.
YEARLY = "CronTriggerTimetable('0 0 1 1 *', timezone='UTC', run_immediately=True)"
OF_A_SCHEDULE = {"schedule", "start_date", "catchup"}


def _is_dag(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("DAG", "dag")


class _EachWay(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        if not _is_dag(node):
            return node
        [assets] = [
            ast.unparse(each.value)
            for each in node.keywords
            if each.arg == "schedule" and isinstance(each.value, ast.List)
        ] or [f"[Asset({ASSET!r})]"]
        schedule = f"AssetOrTimeSchedule(timetable={YEARLY}, assets={assets})"
        kept = [each for each in node.keywords if each.arg not in OF_A_SCHEDULE]
        value = ast.parse(schedule, mode="eval").body
        node.keywords = [*kept, ast.keyword("schedule", value)]
        return node


def started_in_each_way(code: str) -> str:
    """The code, whose DAGs are scheduled by time and by an asset, and by nothing else."""
    return IMPORTS + ast.unparse(_EachWay().visit(ast.parse(code))) + "\n"


def dag_ids(code: str) -> dict[str, bool]:
    """The ids of the DAGs, and whether an asset of the block's own schedules them."""
    found: dict[str, bool] = {}
    tree = ast.parse(code)
    names = {
        id(decorator): node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_dag(node):
            name = names.get(id(node)) or ast.literal_eval(node.args[0])
            found[name] = any(isinstance(each.value, ast.List) for each in node.keywords)
    return found
