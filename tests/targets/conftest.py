"""A cache folder of the tests' own."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _private_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("LINKWISE_CACHE_DIR", str(tmp_path_factory.mktemp("objects")))
    patch.delenv("LINKWISE_CACHE", raising=False)
    yield
    patch.undo()
