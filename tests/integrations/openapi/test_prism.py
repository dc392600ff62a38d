"""Prism as the service, and between backread and the mock."""

import json

import pytest

from backread import Client
from backread.errors import ServerError, StatusError
from backread.models import OperatorSender, OtherSender, UserSender

SECRET = "mock_for_prism"


def test_backread_reads_what_prism_makes_of_the_document(start_prism, document):
    schemas = json.loads(document.read_bytes())["components"]["schemas"]
    [page] = schemas["MessagePage"]["examples"]
    with Client(start_prism("mock"), SECRET, "acme", max_retries=0) as client:
        users = client.users.list(strict=True)
        [user] = users
        assert users.report.certificate == "snapshot"
        assert client.users.get(user.id) == user
        messages = client.messages.list(user.id, strict=True).to_list()
        assert [type(one.sender) for one in messages] == [UserSender, OperatorSender, OtherSender]
        assert client.messages.get(user.id, messages[0].id) == messages[0]
        assert list(client.messages.list(user.id, as_dict=True)) == page["messages"]


def test_prism_refuses_another_vendors_media_type(start_prism):
    with (
        Client(start_prism("mock"), SECRET, "other", max_retries=0) as client,
        pytest.raises(StatusError) as refused,
    ):
        client.users.page()
    assert refused.value.status_code == 406


def test_prism_finds_the_mocks_answers_as_documented(start_prism, service):
    url = start_prism("proxy", service.url, "--errors")
    with Client(url, service.secret, "acme", max_retries=0) as client:
        assert len(client.messages.all().to_list()) == service.world.total_messages

    # Prism answers 500 in place of what is not as documented.
    with (
        service.lane(dialect="nulls=null") as odd,
        Client(url, odd.secret, "acme", max_retries=0) as client,
        pytest.raises(ServerError, match="500"),
    ):
        client.users.list().to_list()
