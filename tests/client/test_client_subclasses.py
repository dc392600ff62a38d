"""Subclasses of the clients, with attributes and an ``__init__`` of their own."""

import copy
import pickle
from typing import Any

import pytest

from backread import AsyncClient, Client


class Tenant:
    def __init__(self, tenant: str, **options: Any) -> None:
        super().__init__(**options)
        self.tenant = tenant
        self.tags = ["new"]


class SyncTenant(Tenant, Client):
    pass


class AsyncTenant(Tenant, AsyncClient):
    pass


@pytest.fixture
def client(each_face, backread_server, monkeypatch):
    monkeypatch.setenv("BACKREAD_BASE_URL", backread_server.url)
    monkeypatch.setenv("BACKREAD_API_SECRET", backread_server.secret)
    monkeypatch.setenv("BACKREAD_VENDOR", backread_server.vendor)
    client = {Client: SyncTenant, AsyncClient: AsyncTenant}[each_face.kind]("ada", max_retries=2)
    yield client
    each_face.close(client)


@pytest.mark.parametrize(
    "duplicate",
    [
        lambda client: client.with_options(timeout=3),
        copy.copy,
        copy.deepcopy,
        lambda client: pickle.loads(pickle.dumps(client)),
    ],
    ids=["with_options", "copy", "deepcopy", "pickle"],
)
def test_a_copy_has_the_attributes_of_the_subclass(each_face, client, duplicate):
    other = duplicate(client)
    assert type(other) is type(client)
    assert (other.tenant, other.tags) == ("ada", ["new"])
    assert each_face.call(other.users.get, 42).id == 42
    each_face.close(other)


def test_only_a_deep_copy_has_its_own_lists(client):
    client.itself = client
    deep, shallow = copy.deepcopy(client), copy.copy(client)
    assert deep.itself is deep
    deep.tags.append("deep")
    shallow.tags.append("shallow")
    assert client.tags == ["new", "shallow"]


def test_a_subclass_chooses_what_it_pickles(each_face, client, monkeypatch):
    monkeypatch.setattr(Tenant, "__getstate__", lambda self: {"tenant": self.tenant}, raising=False)
    other = pickle.loads(pickle.dumps(client))
    assert vars(other) == {"tenant": "ada"}
    each_face.close(other)
