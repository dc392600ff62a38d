"""The privacy arguments of the operators: a path that each worker has, and plain switches."""

import pytest

from backread.integrations.airflow.values import check_privacy


def test_what_the_operators_take():
    check_privacy(None, False, False)
    check_privacy("/run/secrets/chats.key", True, True)


@pytest.mark.parametrize(
    ("arguments", "kind", "why"),
    [
        (("chats.key", False, False), ValueError, "absolute path"),
        (("{{ params.key }}", False, False), ValueError, "absolute path"),
        ((b"0" * 32, False, False), ValueError, "absolute path"),
        ((None, "True", False), TypeError, "drop_bodies must be True or False"),
        ((None, False, 1), TypeError, "redact must be True or False"),
    ],
)
def test_what_they_refuse(arguments, kind, why):
    with pytest.raises(kind, match=why):
        check_privacy(*arguments)
