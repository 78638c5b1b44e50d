"""What may be reached: URLs that can be read in two ways, addresses in disguise, and whose word opens what (S51)."""

from ipaddress import ip_address

import pytest

from everstep.adapters.net.guard import Asked, Guard, parse_network, reach_of
from everstep.adapters.net.origin import is_literal_place
from everstep.adapters.net.url import parse_url
from everstep.ports.tool import Denied, Misconfigured

REFUSED_URLS = [
    *(f"{scheme}:{rest}" for scheme in ("ftp", "file", "gopher", "data", "javascript", "ws", "unix", "httpx")
      for rest in ("//a/", "//127.0.0.1/", "a")),
    *(f"http://{host}/" for host in (
        "2130706433", "0x7f000001", "0x7f.1", "127.1", "127.0.1", "0177.0.0.1", "017700000001", "0x7f.0x0.0x0.0x1",
        "127.0.0.1.", "1.2.3.4.5", "256.1.1.1", "1.2.3", "1", "00.0.0.0", "127.0.0.01", "127.0.0.0x1", "0x", "0x0",
        "example.0x7f", "a.1", "[::1", "::1", "[::1%25eth0]", "[::1%lo]", "[::ffff:127.0.0.1", "[1::2::3]", "[]",
        "[127.0.0.1]", "[::g]", "", ".", "..", "a..b", ".a", "a.", "-a.b", "a-.b", "a b", "a_b!", "a%41.b", "a%2eb",
        "a\tb", "a\nb", "a\r\nHost: b", "a\0b", "a\x7fb", "a" * 64 + ".b", "x." * 130 + "a", "*", "a,b", "a;b", "a'b",
        "🦊🦊\u200d.ws", "\u2025", "a\u3002b\u3002", "\u2488com", "xn--\u00e9", "①②⑦.⓪.⓪.①", "\uff11\uff12\uff17.0.0.1",
        "a\u202eb", "\ud800",
    )),
    *(f"http://{authority}/" for authority in (
        "user@a", "user:pass@a", "a@127.0.0.1", "a:b@c:80", "@a", "a:0", "a:65536", "a:080", "a:+80", "a:8o", "a:",
        "a:80:80", "a: 80", "a:-1", "127.0.0.1:99999", "[::1]:x", "[::1]x", "[::1]:",
    )),
    *(f"http:{sep}a/" for sep in ("", "/", "\\\\", "/\\", "\\/")),
    *(f"http://a/{path}" for path in ("%", "%4", "%zz", "a b", "ü", "\\x", "a\nb", "a\r\n\r\nGET /")),
    *("", "a", "//a/", "/a", "http", "http:", "://a", " http://a/", "http://a/ ", "\thttp://a/", "http//a"),
    "http://a/" + "x" * 9_000,
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED_URLS)
def test_what_can_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        parse_url(text)
    assert refused.value.code == "net_url"


@pytest.mark.parametrize(
    ("text", "place", "target"),
    [
        ("http://Example.COM", "example.com:80", "/"),
        ("https://a.b:8443/x?y=%20#z", "a.b:8443", "/x?y=%20"),
        ("http://127.0.0.1:1/a", "127.0.0.1:1", "/a"),
        ("http://[2001:DB8::1]/", "[2001:db8::1]:80", "/"),
        ("https://bücher.example?q", "xn--bcher-kva.example:443", "/?q"),
        ("http://a_b.c/@x", "a_b.c:80", "/@x"),
    ],
)
def test_what_is_read(text: str, place: str, target: str) -> None:
    url = parse_url(text)
    assert (url.place, url.target) == (place, target)
    assert parse_url(str(url)) == url


NEAR = ["127.0.0.1", "127.255.255.254", "::1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd00::1"]
NEAR += ["::ffff:127.0.0.1", "::ffff:10.1.2.3", "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:c0a8:101::"]
NEAR += ["::127.0.0.1"]
CLOSED = ["0.0.0.0", "0.1.2.3", "100.64.0.1", "169.254.169.254", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1"]
CLOSED += ["198.51.100.1", "203.0.113.7", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "::", "fe80::1"]
CLOSED += ["fec0::1", "ff02::1", "2001:db8::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"]
CLOSED += ["::ffff:0.0.0.0", "2001:0:a9fe:a9fe::", "2001:2::1", "100::1", "::ffff:100.64.0.1"]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "172.15.0.1",
    "172.32.0.1",
    "2606:4700:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize(
    ("address", "reach"),
    [*((a, "near") for a in NEAR), *((a, "closed") for a in CLOSED), *((a, "public") for a in PUBLIC)],
)
def test_how_near_an_address_is(address: str, reach: str) -> None:
    assert reach_of(ip_address(address)) == reach


PLACES = {
    "literal": Asked(literal=True, came_from="http://a/"),
    "configured": Asked(literal=True, configured=True, came_from="the configuration"),
    "data": Asked(came_from="${item.url}"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("address", [*NEAR, *CLOSED, *PUBLIC])
def test_place_by_range(place: str, address: str) -> None:
    """Literal and configured open what is near; data opens nothing but what is public."""
    shown = f"[{address}]" if ":" in address else address
    url, reach = parse_url(f"http://{shown}:8080/"), reach_of(ip_address(address))
    allowed = reach == "public" or (reach == "near" and place != "data")
    if allowed:
        assert Guard().check(url, [ip_address(address)], PLACES[place])
        return
    with pytest.raises(Denied) as refused:
        Guard().check(url, [ip_address(address)], PLACES[place])
    assert refused.value.code == "policy_denied"
    assert PLACES[place].came_from in str(refused.value)
    # The line that the refusal names is the one that helps.
    assert refused.value.details is not None
    fix = refused.value.details["fix"]
    assert isinstance(fix, dict)
    line = str(fix["line"]).partition('["')[2].removesuffix('"]')
    assert Guard(networks=(parse_network(line),)).check(url, [ip_address(address)], PLACES[place])


def test_the_refusal_reads_as_promised() -> None:
    with pytest.raises(Denied) as refused:
        Guard().check(parse_url("http://127.0.0.1:8080/x"), [ip_address("127.0.0.1")], PLACES["data"])
    assert str(refused.value) == (
        '127.0.0.1:8080 came from ${item.url}; allow it in everstep.toml: [policy] networks = ["127.0.0.1/32:8080"]'
    )


def test_every_address_of_a_name_must_pass() -> None:
    addresses = [ip_address("8.8.8.8"), ip_address("127.0.0.1")]
    with pytest.raises(Denied, match=r"is 127\.0\.0\.1"):
        Guard().check(parse_url("http://evil.test/"), addresses, PLACES["data"])


def test_our_own_door_is_closed_whatever_is_listed() -> None:
    guard = Guard(networks=(parse_network("127.0.0.1/32:7717"),), own_port=7717)
    with pytest.raises(Denied, match="own door"):
        guard.check(parse_url("http://127.0.0.1:7717/"), [ip_address("127.0.0.1")], PLACES["configured"])


def test_writing_and_listed_reading() -> None:
    url, address = parse_url("https://api.example.com/x"), [ip_address("8.8.8.8")]
    write = Asked(use="write", literal=True, came_from="https://api.example.com/x")
    with pytest.raises(Denied, match=r'hosts = \["api.example.com:443"\]'):
        Guard().check(url, address, write)
    for pattern in ("api.example.com", "API.example.com:443", "*.example.com"):
        assert Guard(hosts=(pattern,)).check(url, address, write)
    for pattern in ("example.com", "api.example.com:80", "*.api.example.com", "*.xample.com"):
        with pytest.raises(Denied):
            Guard(hosts=(pattern,)).check(url, address, write)
    with pytest.raises(Denied):
        Guard(public_reads=False).check(url, address, PLACES["literal"])


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        ("http://127.0.0.1:80/x", True),
        ("http://a:80/${inputs.path}", True),
        ("http://a?${q}", True),
        ("http://a${inputs.path}", False),
        ("http://${host}/", False),
        ("${item.url}", False),
        ("http://a:${port}/", False),
        ("http://a$${x}/${y}", False),
        ("${scheme}://a/", False),
    ],
)
def test_where_a_host_is_written_out(written: str, literal: bool) -> None:
    assert is_literal_place(written) is literal
