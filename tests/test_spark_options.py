"""The options of Spark's data source: text that is understood, or refused in one sentence."""

from __future__ import annotations

import re

import pytest

from backread import Client, ConfigurationError
from backread.integrations.spark.options import (
    CLIENT,
    LANDED,
    SERVICE,
    LandedOptions,
    ServiceOptions,
    parse_options,
)
from documents import ROOT, Document

PAGE = ROOT / "docs/spark.md"


def test_text_becomes_what_is_meant() -> None:
    options = parse_options(
        {
            "resource": "Users",
            "maxConcurrency": "4",
            "rate_limit": "2.5",
            "DEADLINE": "none",
            "timeout": "7",
            "allow_http": "TRUE",
            "shards": "3",
        }
    )
    assert isinstance(options, ServiceOptions)
    assert (options.resource, options.shards, options.strict) == ("users", 3, False)
    assert options.client == {
        "max_concurrency": 4,
        "rate_limit": 2.5,
        "deadline": None,
        "timeout": 7.0,
        "allow_http": True,
    }


def test_landing_makes_it_about_landed_runs() -> None:
    assert parse_options({"landing": "/x", "run": "3"}) == LandedOptions("/x", run=3)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"shard": "2"}, "there is no option shard; did you mean shards?"),
        ({"quux": "2"}, "there is no option quux; there are allow_http, base_url"),
        ({"path": "/x"}, "load() takes no path; option landing names the folder"),
        ({"strict": "perhaps"}, "option strict must be true or false, not 'perhaps'"),
        ({"shards": "0"}, "option shards must be 1 to 10000, not '0'"),
        ({"workers": "10001"}, "option workers must be 1 to 10000, not '10001'"),
        ({"timeout": "soon"}, "option timeout must be seconds, or none for no bound, not 'soon'"),
        ({"landing": "/x", "vendor": "a"}, "option vendor is for reading the service"),
        ({"run": "1"}, "option run is for reading landed runs, with option landing"),
        ({"base_url": " "}, "option base_url must be some text"),
    ],
)
def test_what_does_not_fit_is_one_sentence(given: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        parse_options(given)


@pytest.mark.parametrize(
    "name", ["api_secret", "apiSecret", "API_SECRET", "token", "password", "secret", "Api-Key"]
)
def test_a_secret_is_refused_and_not_repeated(name: str) -> None:
    with pytest.raises(ConfigurationError, match="BACKREAD_API_SECRET") as caught:
        parse_options({name: "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_a_proxy_with_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY") as caught:
        parse_options({"proxy": "http://me:hunter2@proxy:3128"})
    assert "hunter2" not in str(caught.value)


def test_every_argument_of_a_client_is_an_option_but_the_secret() -> None:
    import inspect

    assert set(CLIENT) == set(inspect.signature(Client).parameters) - {"api_secret"}


@pytest.mark.skipif(not PAGE.exists(), reason="the wheel check takes no pages along")
def test_the_page_has_every_option() -> None:
    cells = Document(PAGE).table("option")
    assert set(re.findall(r"\w+", " ".join(cells))) == set(SERVICE) | set(LANDED)
