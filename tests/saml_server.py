"""A real SAML 2.0 provider on loopback: it reads requests by HTTP-Redirect, signs with xmlsec, and posts by a page.

It does what the profile asks for, and something else than it should where a test says so.
"""

import base64
import html
import http.server
import secrets
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from lxml import etree

from tests.loopback import serving

SAML = "urn:oasis:names:tc:SAML:2.0:assertion"
SAMLP = "urn:oasis:names:tc:SAML:2.0:protocol"
DS = "http://www.w3.org/2000/09/xmldsig#"
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"


class Key:
    """A key with its certificate; of an elliptic curve where it has no bits."""

    def __init__(self, bits: int = 2048) -> None:
        key = rsa.generate_private_key(65537, bits) if bits else ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "provider")])
        now = datetime.now(UTC)
        made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
        self.certificate = (
            made.not_valid_after(now + timedelta(days=30))
            .sign(key, hashes.SHA256())
            .public_bytes(serialization.Encoding.PEM)
            .decode()
        )
        self.pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def sign(self, part: Any, *, by: Any = None, digest: Any = None) -> None:
        """Sign a response or an assertion where its signature stands: after the issuer."""
        signature = xmlsec.template.create(part, xmlsec.Transform.EXCL_C14N, by or xmlsec.Transform.RSA_SHA256, ns="ds")
        part.find(f"{{{SAML}}}Issuer").addnext(signature)
        reference = xmlsec.template.add_reference(
            signature, digest or xmlsec.Transform.SHA256, uri=f"#{part.get('ID')}"
        )
        xmlsec.template.add_transform(reference, xmlsec.Transform.ENVELOPED)
        xmlsec.template.add_transform(reference, xmlsec.Transform.EXCL_C14N)
        xmlsec.template.add_x509_data(xmlsec.template.ensure_key_info(signature))
        xmlsec.tree.add_ids(part, ["ID"])
        context = xmlsec.SignatureContext()
        context.key = xmlsec.Key.from_memory(self.pem, xmlsec.KeyFormat.PEM)
        context.key.load_cert_from_memory(self.certificate.encode(), xmlsec.KeyFormat.CERT_PEM)
        context.sign(signature)


def stamp(after: float = 0.0) -> str:
    return (datetime.now(UTC) + timedelta(seconds=after)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Told:
    """What the next assertion says; None leaves it out."""

    issuer: str
    subject: str
    audience: str | None
    recipient: str | None
    in_response_to: str | None
    answers: str | None
    destination: str | None
    form: str | None = PERSISTENT
    not_before: float = -5
    not_after: float = 60
    bearer_until: float | None = 60
    asked_at: float = 0
    attributes: dict[str, str] = field(default_factory=dict)
    assertion_id: str = ""
    extra: str = ""


def written(told: Told) -> Any:
    """The response, unsigned."""

    def attr(name: str, value: str | None) -> str:
        return "" if value is None else f' {name}="{html.escape(value)}"'

    issuer = f"<saml:Issuer>{html.escape(told.issuer)}</saml:Issuer>"
    audience = (
        f"<saml:AudienceRestriction><saml:Audience>{told.audience}</saml:Audience></saml:AudienceRestriction>"
        if told.audience is not None
        else ""
    )
    until = None if told.bearer_until is None else stamp(told.bearer_until)
    data = attr("Recipient", told.recipient) + attr("InResponseTo", told.answers) + attr("NotOnOrAfter", until)
    attributes = "".join(
        f'<saml:Attribute Name="{name}"><saml:AttributeValue>{html.escape(value)}</saml:AttributeValue>'
        "</saml:Attribute>"
        for name, value in told.attributes.items()
    )
    statement = f"<saml:AttributeStatement>{attributes}</saml:AttributeStatement>" if attributes else ""
    xml = f"""<samlp:Response xmlns:samlp="{SAMLP}" xmlns:saml="{SAML}" ID="{new_id()}" Version="2.0"
 IssueInstant="{stamp()}"{attr("InResponseTo", told.in_response_to)}{attr("Destination", told.destination)}>{issuer}
<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>
<saml:Assertion ID="{told.assertion_id or new_id()}" Version="2.0" IssueInstant="{stamp()}">{issuer}
<saml:Subject><saml:NameID{attr("Format", told.form)}>{told.subject}</saml:NameID>
<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData{data}/>
</saml:SubjectConfirmation></saml:Subject>
<saml:Conditions NotBefore="{stamp(told.not_before)}" NotOnOrAfter="{stamp(told.not_after)}">{audience}
</saml:Conditions>
<saml:AuthnStatement AuthnInstant="{stamp(told.asked_at)}"><saml:AuthnContext><saml:AuthnContextClassRef>
urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>
{statement}</saml:Assertion>{told.extra}</samlp:Response>"""
    return etree.fromstring(xml.encode())


def new_id() -> str:
    return f"_{secrets.token_hex(16)}"


def only_the_assertion(response: Any, key: Key) -> None:
    key.sign(response.find(f"{{{SAML}}}Assertion"))


class Form(HTMLParser):
    """The form of a page: where it posts to, and its hidden fields."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action, self.fields = "", {}  # type: ignore[var-annotated]
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        found = dict(attrs)
        if tag == "form":
            self.action = found["action"]
        if tag == "input" and found.get("type") == "hidden":
            self.fields[found["name"]] = found["value"]


class Provider:
    """A running provider. `say` changes what the next assertion says, `sign` how it is signed, `bend` the signed bytes;
    `asked` holds the requests that people came with.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.key, self.other, self.people = Key(), Key(), {}  # type: ignore[var-annotated]
        self.straighten()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.host = f"{host}:{self.server.server_port}"
        self.issuer, self.sso_url = f"http://{self.host}/metadata", f"http://{self.host}/sso?tenant=a&b=c"

    def straighten(self) -> None:
        self.say: Callable[[Told], Told] = lambda told: told
        self.sign: Callable[[Any, Key], None] = only_the_assertion
        self.bend: Callable[[bytes], bytes] = bytes
        self.asked: list[dict[str, str]] = []

    def metadata(self, *keys: Key) -> str:
        """Its description, with comments in it as many have."""
        certificates = "".join(
            f'<md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="{DS}"><ds:X509Data><ds:X509Certificate>'
            f"{''.join(one.certificate.splitlines()[1:-1])}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>"
            "</md:KeyDescriptor>"
            for one in keys or (self.key,)
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<!-- of the provider -->\n<md:EntityDescriptor'
            f' xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="{self.issuer}"><md:IDPSSODescriptor'
            f' protocolSupportEnumeration="{SAMLP}">{certificates}<md:SingleSignOnService'
            ' Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"'
            f' Location="{html.escape(self.sso_url)}"/></md:IDPSSODescriptor></md:EntityDescriptor>'
        )

    def knows(self, subject: str, **attributes: str) -> None:
        """A person of the provider."""
        self.people[subject] = attributes

    def agree(self, url: str, subject: str) -> Form:
        """Log in there as a person; the form that its page posts to us."""
        asking = requests.get(url, timeout=10)
        asking.raise_for_status()
        form = Form(asking.text)
        page = requests.post(f"http://{self.host}{form.action}", {**form.fields, "sub": subject}, timeout=10)
        assert page.status_code == 200, page.text
        return Form(page.text)

    def answer(self, request: dict[str, str], subject: str) -> bytes:
        """The response to a request, signed."""
        told = Told(
            issuer=self.issuer,
            subject=subject,
            audience=request["issuer"],
            recipient=request["acs"],
            in_response_to=request["id"],
            answers=request["id"],
            destination=request["acs"],
            attributes=self.people.get(subject, {}),
        )
        response = written(self.say(told))
        self.sign(response, self.key)
        return self.bend(etree.tostring(response))

    def _read(self, query: str) -> dict[str, str]:
        sent = {name: values[0] for name, values in parse_qs(query).items()}
        xml = zlib.decompress(base64.b64decode(sent["SAMLRequest"]), -15)
        root = etree.fromstring(xml)
        assert root.tag == f"{{{SAMLP}}}AuthnRequest"
        return {
            "id": root.get("ID"),
            "acs": root.get("AssertionConsumerServiceURL"),
            "issuer": root.findtext(f"{{{SAML}}}Issuer"),
            "destination": root.get("Destination"),
            "force": root.get("ForceAuthn", ""),
            "relay": sent.get("RelayState", ""),
        }

    def _handler(self) -> Any:
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if urlsplit(self.path).path == "/submit.js":
                    return self.page("document.forms[0].submit();", "text/javascript")
                if urlsplit(self.path).path != "/sso":
                    return self.send_error(404)
                # Refused as an answer would be, where the request can't be read.
                provider.asked.append(provider._read(urlsplit(self.path).query))
                query = html.escape(urlsplit(self.path).query)
                return self.page(
                    '<form method="post" action="/login"><input type="hidden" name="query" value="' + query + '">'
                    '<input name="sub"><button>Log in</button></form>'
                )

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                form = {name: one[0] for name, one in parse_qs(self.rfile.read(length).decode()).items()}
                request = provider._read(form["query"])
                said = base64.b64encode(provider.answer(request, form["sub"])).decode()
                self.page(
                    f'<form method="post" action="{request["acs"]}"><input type="hidden" name="SAMLResponse"'
                    f' value="{said}"><input type="hidden" name="RelayState" value="{html.escape(request["relay"])}">'
                    '<noscript><button>Go on</button></noscript></form><script src="/submit.js"></script>'
                )

            def page(self, text: str, kind: str = "text/html; charset=utf-8") -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


def saying(**changes: Any) -> Callable[[Told], Told]:
    """What `say` takes: the same with these changes."""
    return lambda told: replace(told, **changes)


@contextmanager
def saml_server(host: str = "127.0.0.1") -> Iterator[Provider]:
    provider = Provider(host)
    with serving(provider.server):
        yield provider
