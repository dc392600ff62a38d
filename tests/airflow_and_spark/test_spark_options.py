"""The options of Spark's data source: text that is understood, or refused in one sentence."""

import inspect
import re

import pytest

from backread import Client, ConfigurationError
from backread._client.privacy import Privacy
from backread.integrations.spark.options import (
    CLIENT,
    IN_CODE,
    LANDED,
    PRIVACY,
    SERVICE,
    LandedOptions,
    ServiceOptions,
    parse_options,
    parse_registered,
)
from helpers.doc_pages import ROOT, Document

PAGE = ROOT / "docs/how-to/spark.md"


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def bare(name: str) -> str:
    return name.replace("_", "")


def test_text_becomes_what_is_meant():
    options = parse_options(
        {
            "resource": "Users",
            "maxConcurrency": "4",
            "rate_limit": "2.5",
            "DEADLINE": "none",
            "timeout": "7",
            "strict": "TRUE",
            "shards": "3",
        }
    )
    assert isinstance(options, ServiceOptions)
    assert (options.resource, options.shards, options.strict) == ("users", 3, True)
    assert options.client == {
        "max_concurrency": 4,
        "rate_limit": 2.5,
        "deadline": None,
        "timeout": 7.0,
    }


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"shard": "2"}, "there is no option shard; the options are allow_http, base_url"),
        ({"Path": "/x", "allow_http": "true"}, "option allow_http decides where the secret goes"),
        ({"shards": "0"}, "option shards must be 1 or more, not '0'"),
        ({"strict": "perhaps"}, "option strict must be true or false, not 'perhaps'"),
        ({"timeout": "soon"}, "option timeout must be a number, or none for no limit, not 'soon'"),
        ({"landing": "/x", "vendor": "a"}, "option vendor is for reading the service"),
        ({"run": "1"}, "option run is for reading landed runs, with option landing"),
        ({"vendor": " "}, "option vendor must be text"),
    ],
)
def test_what_does_not_fit_is_one_sentence(given, text):
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        parse_options(given)


@pytest.mark.parametrize("name", ["api_secret", "apiSecret", "token"])
def test_a_secret_is_refused_and_not_repeated(name):
    with pytest.raises(ConfigurationError, match="BACKREAD_API_SECRET") as caught:
        parse_options({name: "hunter2"})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY") as caught:
        parse_registered({"proxy": "http://me:hunter2@proxy:3128"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", [*IN_CODE, *PRIVACY])
@pytest.mark.parametrize("spelled", [str.upper, camel, bare])
def test_what_decides_where_the_secret_goes_or_what_is_hidden_is_no_option_of_a_read(name, spelled):
    """However a query spells it: Spark's options know no case."""
    assert set(IN_CODE) == {"base_url", "secret_file", "proxy", "ca_bundle", "allow_http"}
    given = {spelled(name): "http://127.0.0.1:9/hunter2"}
    advice = f"pass it in code: register(spark, {name}=...)"
    with pytest.raises(ConfigurationError, match=re.escape(advice)) as caught:
        parse_options(given, {name: "/registered"})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="is for reading the service; leave it out"):
        parse_options({**given, "landing": "/x"})


def test_register_takes_the_choice_of_privacy():
    registered = {"pseudonymise": "/key", "redact": "true"}
    options = parse_options({"resource": "users"}, registered)
    assert isinstance(options, ServiceOptions)
    assert options.privacy == Privacy("/key", drop_bodies=False, redact=True)
    assert parse_registered({"redact": "false"}).privacy is None


def test_code_gives_them_to_register():
    registered = {
        "base_url": "https://chat.example.com",
        "secret_file": "/run/secret",
        "proxy": "http://proxy:3128",
        "ca_bundle": "/ca.pem",
        "allow_http": "true",
        "timeout": "5",
    }
    assert parse_registered(registered) == parse_options({}, registered)
    options = parse_options({"TimeOut": "7", "resource": "users"}, registered)
    assert isinstance(options, ServiceOptions)
    assert (options.resource, options.secret_file) == ("users", "/run/secret")
    assert options.client == {
        "base_url": "https://chat.example.com",
        "proxy": "http://proxy:3128",
        "ca_bundle": "/ca.pem",
        "allow_http": True,
        "timeout": 7.0,
    }
    with pytest.raises(ConfigurationError, match="option landing is for reading landed runs"):
        parse_registered({"landing": "/x"})
    # Those of landed runs name no service.
    assert parse_options({"landing": "/x"}, registered) == LandedOptions("/x")


@pytest.mark.skipif(not PAGE.exists(), reason="the wheel check takes no pages along")
def test_the_page_has_every_option():
    cells = Document(PAGE).table("option")
    assert set(re.findall(r"\w+", " ".join(cells))) == set(SERVICE) | set(LANDED)
    assert set(CLIENT) == set(inspect.signature(Client).parameters) - {
        *("api_secret", "api_secret_file", "headers", "service")
    }
