"""A real OpenID provider on loopback: discovery, keys, codes and tokens over HTTP.

It is the package oidc-provider-mock (authlib's provider), with two things that it leaves out: it holds the client to
PKCE, and it may say something else than it should, where a test asks for that.
"""

import base64
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import flask
import jwt
import oidc_provider_mock
import requests
from werkzeug.serving import make_server

from tests.loopback import serving


class Provider:
    """A running provider. `bend` changes the claims of the next id tokens, `sign` how they are signed, and `names` what
    its description says; `asked` holds what clients sent people with, `described` counts who read the description.
    """

    def __init__(self) -> None:
        self.bend: Callable[[dict[str, Any]], dict[str, Any]] = dict
        self.sign: Callable[[dict[str, Any], str], str] | None = None
        self.names: dict[str, str] = {}
        self.asked: list[dict[str, str]] = []
        self.described = 0
        self._challenges: dict[str, str] = {}
        os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
        app = oidc_provider_mock.app(require_client_registration=True, require_nonce=True)
        app.before_request(self._hold_to_pkce)
        app.after_request(self._answered)
        self.server = make_server("127.0.0.1", 0, app, threaded=True)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.issuer = f"http://{self.host}"

    def register(self, redirect_uri: str) -> tuple[str, str]:
        """A client's id and secret."""
        made = requests.post(f"{self.issuer}/oauth2/clients", json={"redirect_uris": [redirect_uri]}, timeout=10).json()
        return made["client_id"], made["client_secret"]

    def knows(self, subject: str, **claims: Any) -> None:
        """A person of the provider."""
        requests.put(f"{self.issuer}/users/{subject}", json=claims, timeout=10).raise_for_status()

    def agree(self, url: str, subject: str) -> str:
        """Log in there as a person; the address that the browser is sent back to."""
        answer = requests.post(url, data={"sub": subject}, allow_redirects=False, timeout=10)
        assert answer.status_code == 302, answer.text
        back = urlsplit(answer.headers["Location"])
        return f"{back.path}?{back.query}"

    def deny(self, url: str) -> str:
        answer = requests.post(url, data={"action": "deny"}, allow_redirects=False, timeout=10)
        back = urlsplit(answer.headers["Location"])
        # The package forgets to send the state along with a no.
        state = parse_qs(urlsplit(url).query)["state"][0]
        return f"{back.path}?{back.query}&state={state}"

    def straighten(self) -> None:
        self.bend, self.sign, self.names, self.described = dict, None, {}, 0
        self.asked.clear()

    def _hold_to_pkce(self) -> Any:
        if flask.request.path != "/oauth2/token":
            return None
        verifier = flask.request.form.get("code_verifier", "").encode()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier).digest()).rstrip(b"=").decode()
        if self._challenges.get(flask.request.form.get("code", "")) != challenge:
            return flask.jsonify({"error": "invalid_grant", "error_description": "PKCE"}), 400
        return None

    def _answered(self, response: flask.Response) -> flask.Response:
        if flask.request.path == "/oauth2/authorize" and "Location" in response.headers:
            code = parse_qs(urlsplit(response.headers["Location"]).query).get("code", [""])[0]
            args = flask.request.args
            self.asked.append(args.to_dict())
            self._challenges[code] = (
                args.get("code_challenge", "") if args.get("code_challenge_method") == "S256" else ""
            )
        if flask.request.path.startswith("/.well-known/"):
            self.described += 1
            response.set_data(flask.json.dumps({**response.get_json(), **self.names}))
        if flask.request.path == "/oauth2/token" and response.status_code == 200:
            self._bent(response)
        return response

    def _bent(self, response: flask.Response) -> None:
        key = flask.g.oidc_provider_mock_storage.jwk
        pem = key.as_pem(is_private=True).decode()
        said = response.get_json()
        claims = self.bend(jwt.decode(said["id_token"], options={"verify_signature": False}))
        kid = jwt.get_unverified_header(said["id_token"]).get("kid")
        sign = self.sign or (
            lambda claims, pem: jwt.encode(claims, pem, "RS256", headers={"kid": kid} if kid else None)
        )
        said["id_token"] = sign(claims, pem)
        response.set_data(flask.json.dumps(said))


@contextmanager
def oidc_server() -> Iterator[Provider]:
    provider = Provider()
    with serving(provider.server):
        yield provider
