"""Tokens of servers: from the environment, or from a file that only its owner may read.

The order is: for the address of a configured server `OMNIGRAPH_TOKEN_<NAME>`, then the token stored by `omnigraph
login NAME`; for any address `OMNIGRAPH_TOKEN`, then `OMNIGRAPH_BEARER_TOKEN`.
"""

from __future__ import annotations

import configparser
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from omnigraph.config import home, load_config
from omnigraph.errors import Kind, OmnigraphError

FILE_NAME = "credentials"
FIRST, LAST = "OMNIGRAPH_TOKEN", "OMNIGRAPH_BEARER_TOKEN"
OTHERS_MASK = 0o077


class CredentialsExposed(OmnigraphError):
    """The token file is readable by other users."""

    code, kind = "credentials_exposed", Kind.DENIED
    default_help = "Restrict its permissions: chmod 600 on the file the message names."


class CredentialsInvalid(OmnigraphError):
    """The token file cannot be read."""

    code, kind = "credentials_invalid", Kind.INVALID
    default_help = "Fix the file, or remove it and log in again."


def token_for(address: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The token to send to an address, if any."""
    if environment.get(FIRST):
        return environment[FIRST]
    name = server_of(address, load_config(environment).servers)
    if name is not None:
        own = environment.get(f"{FIRST}_{name.upper().replace('-', '_')}")
        found = own or stored(environment).get(name)
        if found:
            return found
    return environment.get(LAST) or None


def server_of(address: str, servers: Mapping[str, str]) -> str | None:
    """The configured server an address belongs to: the longest prefix.

    >>> server_of("https://a.org/x/graphs/g", {"a": "https://a.org", "x": "https://a.org/x/", "b": "https://a.or"})
    'x'
    """
    urls = {name: url.rstrip("/") for name, url in servers.items()}
    fits = [n for n, url in urls.items() if address == url or address.startswith(f"{url}/")]
    return max(fits, key=lambda name: len(urls[name]), default=None)


def stored(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The tokens in the file, by server name."""
    path = home(environment) / FILE_NAME
    if not path.exists():
        return {}
    if path.stat().st_mode & OTHERS_MASK:
        raise CredentialsExposed(f"{path} is readable by other users", details={"file": str(path)})
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (configparser.Error, UnicodeDecodeError) as error:
        raise CredentialsInvalid(f"{path} is not a token file") from error
    return {name: parser[name].get("token", "") for name in parser.sections()}


def store(name: str, token: str | None, environment: Mapping[str, str] = os.environ) -> bool:
    """Store a token, or delete it if None; returns whether there was one."""
    tokens = stored(environment)
    known = tokens.pop(name, None) is not None
    if token is not None:
        tokens[name] = token
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_dict({name: {"token": kept} for name, kept in tokens.items()})
    folder = home(environment)
    folder.mkdir(parents=True, exist_ok=True)
    # The file is created readable by its owner alone, and replaced atomically.
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
        parser.write(file)
    Path(file.name).replace(folder / FILE_NAME)
    return known
