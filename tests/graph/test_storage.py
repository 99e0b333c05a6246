"""Payloads in S3-compatible storage: a real S3 server on loopback, asked through django-storages."""

import io
import json
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from django.utils import timezone

from memory.graph.models import Body, Trigger
from memory.ops import export, teams
from memory.tenants import rls
from memory.tenants.models import Tenant
from tests.conftest import Agent, free_port
from tests.graph.test_payload import LOG, put, read

BUCKET = "payloads"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of an S3 server of our own."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}/moto-api/", timeout=2).close()
                break
            except OSError:
                assert server.poll() is None, "the S3 server ended at once"
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture
def bucket(s3: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An empty bucket that the settings name."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    options = {"bucket_name": BUCKET, "endpoint_url": s3, "region_name": "us-east-1", "addressing_style": "path"}
    backend = {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}
    settings.STORAGES = {**settings.STORAGES, "payloads": backend}
    settings.PAYLOADS_IN_STORAGE = True
    resource = boto3.resource("s3", endpoint_url=s3, region_name="us-east-1")
    made = resource.create_bucket(Bucket=BUCKET)
    yield made
    made.objects.all().delete()


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


def test_a_large_payload_lies_in_the_bucket(client: Any, bucket: Any, acme: Any, bound: Any) -> None:
    big = "".join(f"entry {n}\n" for n in range(5000))
    trg = client.post("triggers", {"source": "ci", "payload": big, "summary": "x"}).json()["trigger_id"]
    assert put(client, trg, LOG).status_code == 201
    assert client.get(f"triggers/{trg}/payload").content.decode() == big
    assert read(client, trg).content == LOG and read(client, trg, lines="7").content == b"line 7 of the build\n"
    names = [one.key for one in bucket.objects.all()]
    assert len(names) == 2 and all(name.startswith(f"{acme.pk}/") for name in names)
    with bound(acme):
        assert {(body.codec, bytes(body.content)) for body in Body.objects.all()} == {("s3", b"")}


def test_a_batch_goes_there_too(client: Any, bucket: Any) -> None:
    line = '{"source":"ci","id":"trg_b","payload":"' + "z" * 20_000 + '"}'
    assert client.post("triggers/batch", line, content_type="application/x-ndjson").json()["accepted"] == 1
    assert len(client.get("triggers/trg_b/payload").content) == 20_000
    assert len(list(bucket.objects.all())) == 1


def test_a_small_one_stays_in_its_row(client: Any, bucket: Any) -> None:
    client.post("triggers", {"source": "ci", "payload": {"a": 1}})
    assert list(bucket.objects.all()) == []


def test_teams_share_no_object(client: Any, api: Any, globex_agent: Agent, bucket: Any) -> None:
    for one in (client, api(globex_agent)):
        one.post("triggers", {"source": "ci", "payload": "same " * 5000})
    assert len(list(bucket.objects.all())) == 2


def test_an_export_takes_payloads_out_of_the_bucket(client: Any, bucket: Any, acme: Any) -> None:
    client.post("triggers", {"source": "ci", "payload": "same " * 5000})
    [team] = teams.on_server("acme")
    with zipfile.ZipFile(io.BytesIO(b"".join(export.streamed(team)))) as packed:
        [line] = packed.read("tables/graph_body.ndjson").splitlines()
    body = json.loads(line)
    assert body["content"] == "same " * 5000 and body["codec"] == ""


def test_a_removed_team_leaves_nothing_in_the_bucket_and_others_keep_theirs(
    client: Any, api: Any, globex_agent: Agent, bucket: Any, acme: Any, globex: Any
) -> None:
    for one in (client, api(globex_agent)):
        one.post("triggers", {"source": "ci", "payload": "same " * 5000})
    by = teams.Operator("server", "the server")
    [team] = teams.on_server("acme")
    teams.mark(team, by=by)
    with rls.tenant_scope(str(acme.pk)):
        Tenant.objects.filter(pk=acme.pk).update(delete_at=timezone.now() - timedelta(seconds=1))
    assert teams.remove_due() == ["acme"]
    [left] = bucket.objects.all()
    assert left.key.startswith(f"{globex.pk}/")
    with rls.tenant_scope(str(globex.pk)):
        [trigger] = Trigger.objects.values_list("public_id", flat=True)
    assert api(globex_agent).get(f"triggers/{trigger}/payload").content.decode() == "same " * 5000
