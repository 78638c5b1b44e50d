"""`search.*`: an index that keeps up and never trips over a query, and results from strangers, cleaned."""

import asyncio
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstep import Plan
from everstep.adapters.net import Client
from everstep.adapters.net.guard import Guard
from everstep.adapters.search_index import FILE, search
from everstep.adapters.threads import Threads
from everstep.adapters.tools.result_cache import ResultCache
from everstep.adapters.tools.search import CONNECT_S, TOTAL_S, SearchTools, cleaned
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import ToolError
from everstep.testing import Sample, TestEngine, check_adapter
from everstep.testing.conformance.tool import failed
from everstep.testing.rig import Behaviour, HttpRig, answer, drip
from tests.unit.contexts import call_of, context
from tests.unit.passing import ends


def fill(root: Path) -> None:
    for path, text in {
        "a.md": "# Durable things\nA journal survives the crash.",
        "notes/b.txt": "Journal of a journey. Größe und Straße.",
        "page.html": "<title>The &amp; page</title><script>var journal</script><p>Crash <b>test</b></p>",
        "big.txt": "x" * 2_100_000,
        "binary.txt": "",
        ".everstep/secret.md": "journal",
        "image.png": "journal",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "binary.txt").write_bytes(b"\xff\xfejournal")
    (root / "link.md").symlink_to("/etc/hostname")


def paths(found: JsonObject) -> list[JsonValue]:
    results = found["results"]
    assert isinstance(results, list)
    return [row["path"] for row in results if isinstance(row, dict)]


@pytest.mark.req("T.5")
def test_an_index_that_keeps_up(tmp_path: Path) -> None:
    fill(tmp_path)
    found = search(tmp_path, "journal", glob="*", limit=10)
    assert sorted(map(str, paths(found))) == ["a.md", "notes/b.txt"]
    assert (found["indexed"], found["skipped"]) == (3, 2)
    assert paths(search(tmp_path, "GRÖSSE strasse", glob="*", limit=10)) in ([], ["notes/b.txt"])
    assert paths(search(tmp_path, "crash", glob="*.html", limit=10)) == ["page.html"]
    (tmp_path / "a.md").write_text("nothing any more")
    (tmp_path / "notes/b.txt").unlink()
    (tmp_path / "c.md").write_text("a new journal")
    assert paths(search(tmp_path, "journal", glob="*", limit=10)) == ["c.md"]
    (tmp_path / FILE).write_bytes(b"SQLite format 3\0 broken" * 100)
    assert paths(search(tmp_path, "journal", glob="*", limit=10)) == ["c.md"]


@settings(max_examples=60)
@given(query=st.text(max_size=60))
def test_no_query_is_a_mistake(query: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.getbasetemp() / "queries"
    root.mkdir(exist_ok=True)
    (root / "a.md").write_text("journal")
    for tricky in (query, f'"{query}', f"{query} AND OR NOT ( ) * : ^ - +", f"title:{query}"):
        search(root, tricky, glob="*", limit=3)


@pytest.mark.req("T.5")
async def test_the_plan_of_the_first_page(tmp_path: Path) -> None:
    """Offline, without configuration."""
    fill(tmp_path)
    plan = Plan("hello")
    hits = plan.step("hits", "search.local", {"query": "durable", "glob": "*.md"})
    note = plan.step("note", "file.write", {"path": "hello.txt", "text": f"Searched {hits.indexed} files"})
    plan.output(file=note.path)
    async with TestEngine(workspace=tmp_path) as engine:
        result = await (await engine.start(plan)).result()
    assert result.outputs == {"file": "hello.txt"}
    assert (tmp_path / "hello.txt").read_text() == "Searched 3 files"


ROWS: JsonValue = [
    {
        "title": "A <b>good</b> one",
        "url": "https://example.com/a?b=1",
        "content": "It &lt;i&gt;is&lt;/i&gt; fine\u202e",
        "publishedDate": "2026-01-01",
    },
    {"title": "script", "url": "javascript:alert(1)", "content": "x"},
    {"title": "x" * 10_000_000, "url": "http://example.com/", "content": "y" * 5_000},
    {"title": "odd", "url": "http://127.1/"},
    {"title": "", "url": "http://example.com/empty"},
    "no row",
    {"title": "no url"},
]


@pytest.mark.req("Search.4")
def test_rows_are_cleaned() -> None:
    assert isinstance(ROWS, list)
    good = [row for row in map(cleaned, ROWS) if row is not None]
    assert good[0] == {
        "title": "A good one",
        "url": "https://example.com/a?b=1",
        "snippet": "It is fine",
        "published": "2026-01-01",
    }
    assert [len(str(good[1][key])) for key in ("title", "snippet")] == [300, 1_000]
    assert len(good) == 2


def tools_of(rig: HttpRig) -> SearchTools:
    return SearchTools(Client(guard=Guard()), {"main": rig.url("/search"), "other": rig.url("/other")}, Threads())


@pytest.mark.req("Search.4")
async def test_a_search_engine() -> None:
    async with HttpRig() as rig:
        rig.on("/search", answer(200, {"results": ROWS[:2]}))  # type: ignore[index]
        tools = tools_of(rig)
        found = await tools.execute(call_of("search.web", {"query": "  two   words "}), context())
        assert isinstance(found, dict)
        assert (found["dropped"], found["provider"]) == (1, "main")
        assert rig.asked[0].target == "/search?q=two+words&format=json&pageno=1"
        cases = [Sample(tool="search.web", arguments={"query": "a", "provider": "none"}, fits=False)]
        cases += [Sample(tool="search.web", arguments={"query": "a"})]
        assert failed(await check_adapter(tools, cases)) == []
        await tools.close()
        await tools._client.close()


@pytest.mark.req("Search.2")
async def test_a_query_that_was_asked_before() -> None:
    """The same in another case and spacing: one hit at the server; an old one only when no new one can be had."""
    async with HttpRig() as rig:
        good = answer(200, {"results": [{"title": "t", "url": "http://example.com/"}]})
        rig.on("/search", [good, answer(503)])
        now = 0.0
        cache = ResultCache(fresh_s=86_400, stale_s=7 * 86_400, clock=lambda: now)
        tools = SearchTools(Client(guard=Guard()), {"main": rig.url("/search")}, Threads(), cache)

        async def ask(query: str, **more: JsonValue) -> JsonObject:
            found = await tools.execute(call_of("search.web", {"query": query, **more}), context())
            assert isinstance(found, dict)
            return found

        both = await asyncio.gather(ask("Durable  Tasks"), ask("durable tasks "))
        assert rig.count("/search") == 1
        again = await ask(" DURABLE tasks")
        assert (again["cached"], again["stale"], again["results"]) == (True, False, both[0]["results"])
        now = 2 * 86_400.0
        old = await ask("durable tasks")
        assert (old["cached"], old["stale"], old["age_s"]) == (True, True, now)
        assert rig.count("/search") == 2
        now = 8 * 86_400.0
        with pytest.raises(Exception, match="503"):
            await ask("durable tasks")
        with pytest.raises(Exception, match="503"):
            await ask("durable tasks", cache="off")
        await tools._client.close()


@pytest.mark.parametrize(
    "said",
    [answer(403, b"no"), answer(200, b"<html>"), answer(200, [1]), answer(200, {"x": 1})],
    ids=["off", "html", "list", "other"],
)
async def test_one_that_does_not_speak_json(said: Behaviour) -> None:
    async with HttpRig() as rig:
        rig.on("/search", said)
        tools = tools_of(rig)
        with pytest.raises(ToolError) as refused:
            await tools.execute(call_of("search.web", {"query": "a"}), context())
        assert refused.value.code == "search_not_json"
        await tools._client.close()


@pytest.mark.req("Search.3", "6.4")
async def test_one_that_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (CONNECT_S, TOTAL_S) == (3.0, 10.0)
    monkeypatch.setattr("everstep.adapters.tools.search.TOTAL_S", 3.0)  # sooner; and enough to connect when busy
    async with HttpRig() as rig:
        rig.on("/search", drip(0.1))
        tools = tools_of(rig)
        began = time.monotonic()
        with pytest.raises(ToolError) as late:
            await tools.execute(call_of("search.web", {"query": "a"}), context())
        assert late.value.code == "net_read"
        assert time.monotonic() - began > 2.5
        await tools._client.close()


@pytest.mark.req("6.6", "8.6", "TI.4")
async def test_a_second_provider_when_the_first_is_down() -> None:
    async with HttpRig() as rig:
        rig.on("/search", answer(503))
        rig.on("/other", answer(200, {"results": [{"title": "t", "url": "http://example.com/"}]}))
        config: JsonObject = {"search.providers": {"main": rig.url("/search"), "other": rig.url("/other")}}
        plan = Plan("searching")
        step = {"fallback": [{"tool": "search.web", "with": {"query": "a", "provider": "other"}}], "retry": 0}
        plan.step("hits", "search.web", {"query": "a"}, **step)
        plan.output(provider=plan.expr("hits.provider"))
        async with TestEngine(config=config) as engine:
            task = await engine.start(plan)
            assert [one.outputs for one in await ends(engine, task)] == [{"provider": "other"}]


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    fill(tmp_path)
    search(tmp_path, "journal", glob="*", limit=1)
    assert {path.name for path in (tmp_path / ".everstep").iterdir()} == {"secret.md", "search.db"}
    shutil.rmtree(tmp_path / ".everstep")
