"""Where it may listen, and what is said where it may not."""

import pytest

from everstep.domain.errors import EverstepError
from everstep.doors.http.server import listen
from everstep.settings import Settings, load_settings


def settings(**said: object) -> Settings:
    return load_settings({f"serve.{name}": value for name, value in said.items()}, env={})  # type: ignore[misc]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.test", "127.0.0.1.example.test"])
def test_beyond_the_loopback_only_with_tls(host: str) -> None:
    with pytest.raises(EverstepError) as refused:
        listen(settings(host=host, port=0).serve)
    assert refused.value.code == "forbidden"
    assert "--behind-tls-proxy" in refused.value.what_to_do


async def test_a_declared_proxy_speaks_tls_for_us() -> None:
    behind = settings(host="0.0.0.0", port=0, behind_tls_proxy=True, allowed_hosts=["tasks.example.test"])
    listener = listen(behind.serve)
    assert listener.url.startswith("http://127.0.0.1:")
    assert listener.public_url == "https://tasks.example.test"
    await listener.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
async def test_loopback_needs_nothing(host: str) -> None:
    listener = listen(settings(host=host, port=0).serve)
    assert listener.url.startswith("http://[::1]:" if host == "::1" else "http://127.0.0.1:")
    await listener.close()


def test_a_host_that_is_none_is_a_wrong_setting() -> None:
    with pytest.raises(EverstepError) as refused:
        listen(settings(host="no such host", port=0, behind_tls_proxy=True).serve)
    assert refused.value.code == "config_invalid"
