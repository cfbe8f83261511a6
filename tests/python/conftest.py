"""A server that runs, from `scripts/test-python`, and clients of it."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from typing import Callable

import pytest

from glovebox import Glovebox


def _given(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        pytest.fail(f"{name} is not set: run scripts/test-python BINARY")
    return value


def soon(so: Callable[[], bool], patience: float = 60) -> bool:
    """Asks again and again until it is so; False when the patience is over."""
    end = time.monotonic() + patience
    while not so():
        if time.monotonic() >= end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(scope="session")
def url() -> str:
    return _given("GLOVEBOX_TEST_URL")


@pytest.fixture(scope="session")
def admin_token() -> str:
    return _given("GLOVEBOX_TEST_TOKEN")


@pytest.fixture(scope="session")
def socket() -> str:
    return _given("GLOVEBOX_TEST_SOCKET")


@pytest.fixture
def admin(url: str, admin_token: str) -> Iterator[Glovebox]:
    with Glovebox(url, admin_token) as client:
        yield client


@pytest.fixture
def new_token(admin: Glovebox) -> Iterator[Callable[[str, str], str]]:
    """Makes tokens by role and space, and revokes them. An agent's may speak for any agent."""
    made: list[str] = []

    def make(role: str, space: str) -> str:
        name, any_agent = f"test-{uuid.uuid4().hex[:12]}", "*" if role == "agent" else None
        new = admin.tokens.create(name, role, space_id=space, agent_id=any_agent)
        made.append(new.token.token_id)
        return new.secret

    yield make
    for token_id in made:
        admin.tokens.revoke(token_id)


@pytest.fixture
def space() -> str:
    return f"space-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def agent(url: str, space: str, new_token: Callable[[str, str], str]) -> Iterator[Glovebox]:
    """An agent in a space of its own."""
    with Glovebox(url, new_token("agent", space)) as client:
        yield client
