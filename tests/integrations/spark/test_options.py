"""The options of a read, which may come from a query: none of them says where the secret goes."""

import base64
import re

import clusters
import deltalake
import pytest
from pyspark.errors import AnalysisException, PySparkException

from backread import LandingError, landing
from backread.integrations.spark import BackreadDataSource, land, register
from backread.integrations.spark.options import IN_CODE
from backread.testing import World
from conftest import SECRET, land_here
from helpers.doc_pages import ROOT, Document, of_kind
from helpers.scripted_server import ScriptedServer, answer


def test_a_query_does_not_say_where_the_secret_goes(spark, serve, tmp_path):
    server = serve(World(seed=13, users=20, messages_per_user=(0, 5)))
    register(spark, base_url=server.url)
    other = tmp_path / "other-secret"
    other.write_text("mock_of_another_service")
    with ScriptedServer(lambda request: answer(403)) as elsewhere:
        view = "CREATE TEMPORARY VIEW taken USING backread OPTIONS (`{}` '{}')"
        table = "CREATE TABLE taken USING backread TBLPROPERTIES ('{}'='{}')"
        reader, stream = spark.read.format("backread"), spark.readStream.format("backread")
        # Each of them by another way and in another spelling: all are one to Spark's parser.
        calls = {
            "base_url": lambda: spark.sql(view.format("BASE_URL", elsewhere.url)),
            "secret_file": lambda: spark.sql(table.format("secret_file", other)),
            "proxy": lambda: spark.sql(view.format("Proxy", elsewhere.url)),
            "ca_bundle": lambda: reader.option("caBundle", str(other)).load(),
            "allow_http": lambda: stream.option("allow-http", "true").load(),
        }
        assert calls.keys() == set(IN_CODE)
        for name, call in calls.items():
            with pytest.raises(PySparkException) as caught:
                call()
            said = str(caught.value)
            assert "decides where the secret goes, so a read or a query may not set it" in said
            assert f"pass it in code: register(spark, {name}=...)" in said
            assert SECRET not in said
        with pytest.raises(AnalysisException, match="there is no option path"):
            spark.read.format("backread").load(elsewhere.url)
        assert elsewhere.requests == []
    assert server.calls().count == 0
    # It may set the others.
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW people USING backread "
        "OPTIONS (resource 'users', maxRetries '1', user_agent 'report/1')"
    )
    assert spark.sql("SELECT id FROM people").count() == 20


def test_without_register_the_environment_says_where_the_service_is(spark, service):
    spark.dataSource.register(BackreadDataSource)
    with pytest.raises(AnalysisException, match="base_url"):
        spark.read.format("backread").option("base_url", "http://127.0.0.1:9").load()
    frame = spark.read.format("backread").option("resource", "users").load()
    assert frame.count() == service.world.total_users


def test_frames_and_landed_runs_have_pseudonyms_and_no_bodies(spark, service, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(base64.b64encode(bytes(range(7, 39))))
    key.chmod(0o600)
    register(spark, pseudonymise=str(key), drop_bodies=True, check=False)
    source = spark.read.format("backread")
    users = source.option("resource", "users").load().collect()
    messages = source.option("resource", "messages").load().collect()
    assert any(user["name"] for user in users)
    assert all(user["name"] in (None, "") or user["name"].startswith("name-") for user in users)
    assert len(messages) == service.world.total_messages
    assert {row["body"] for row in messages} == {None}

    landed = tmp_path / "landed"
    first = land(spark, landed, resource="users", check=False, pseudonymise=key, redact=True)
    emails = landing.dataset(landed, first).to_table()["email"].to_pylist()
    assert any(emails)
    assert all(email.startswith("email-") for email in emails if email)
    with pytest.raises(LandingError, match="none of these"):
        land(spark, landed, resource="users", check=False)


BLOCKS = Document(ROOT / "docs/how-to/spark.md").blocks


@of_kind(BLOCKS, "spark")
def test_block_runs_alone(block, spark, service, tmp_path, capsys):
    messages = service.world.total_messages
    lands = re.search(r"\bland\(", block.code) is not None
    if "/data/landed" in block.code and not lands:
        with service.client() as client:
            land_here(client, tmp_path / "landed")

    code = re.sub(r"/data\b", str(tmp_path), block.code)
    clusters.patiently(lambda: block.execute(code))
    printed = capsys.readouterr().out

    if lands:
        number, rows, _, *others = printed.split()
        assert (int(rows), others) == (messages, [rows, number])
    elif ".show()" in block.code:
        # What the cells of the last column count.
        cells = re.findall(r"\|\s*(\d+)\|$", printed, re.MULTILINE)
        assert cells
        assert "only showing" in printed or sum(map(int, cells)) == messages
    elif "merge_into_delta" in block.code:
        table = deltalake.DeltaTable(tmp_path / "messages").to_pyarrow_table()
        assert table.num_rows == messages
    else:
        pytest.fail("nothing shows what this block did")
