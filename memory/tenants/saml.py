"""SAML 2.0, as the side that asks: the provider's description, where to send the person, and what comes back of them.

python3-saml in strict mode checks schema, signature and times; it takes an audience, a recipient or an answer to no
question as well as none at all, and compares addresses by their beginning. So the shape of what is signed is checked
before it, and each statement that we rely on is read after it out of the very assertion whose signature holds, and must
be there. The package is an extra: nothing here imports it before somebody comes by SAML, or sets it.
"""

import base64
import binascii
import hashlib
import importlib.util
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from django.utils.dateparse import parse_datetime

from memory.sentences import sentence
from memory.tenants import outgoing
from memory.tenants.oidc import LEEWAY, Claims, Failed, Unproven, address

INSTALL: Final = "uv sync --extra saml"
MOST_CERTIFICATES: Final = 2
# Of what a provider sends, and of its description. Answers have 5 to 20 KB, descriptions of one provider up to 100.
MOST_BYTES: Final = 256 * 1024
_MOST_ISSUER: Final = 490
_LEAST_BITS: Final = 2048
_SAML: Final = "urn:oasis:names:tc:SAML:2.0:assertion"
_SAMLP: Final = "urn:oasis:names:tc:SAML:2.0:protocol"
_SPACES: Final = {
    "saml": _SAML,
    "samlp": _SAMLP,
    "ds": "http://www.w3.org/2000/09/xmldsig#",
    "md": "urn:oasis:names:tc:SAML:2.0:metadata",
}
_REDIRECT: Final = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
_POST: Final = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
_BEARER: Final = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
_ANY_NAME: Final = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
_EMAIL_NAME: Final = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
# Names that are another at each login, or are no person's.
_NO_NAMES: Final = (
    "urn:oasis:names:tc:SAML:2.0:nameid-format:transient",
    "urn:oasis:names:tc:SAML:2.0:nameid-format:entity",
)
# What may sign: public keys, and no SHA-1. The package refuses three algorithms by name and takes all others.
_MORE: Final = "http://www.w3.org/2001/04/xmldsig-more#"
_SIGNATURES: Final = {
    *(f"{_MORE}{kind}-sha{bits}" for kind in ("rsa", "ecdsa") for bits in (256, 384, 512)),
    *(f"http://www.w3.org/2007/05/xmldsig-more#sha{bits}-rsa-MGF1" for bits in (256, 384, 512)),
}
_DIGESTS: Final = {
    "http://www.w3.org/2001/04/xmlenc#sha256",
    f"{_MORE}sha384",
    "http://www.w3.org/2001/04/xmlenc#sha512",
}
# SAML core 5.4.4: others choose by a program what is signed.
_EXCLUSIVE: Final = {
    "http://www.w3.org/2001/10/xml-exc-c14n#",
    "http://www.w3.org/2001/10/xml-exc-c14n#WithComments",
}
_TRANSFORMS: Final = _EXCLUSIVE | {"http://www.w3.org/2000/09/xmldsig#enveloped-signature"}
# An address and a name have no one spelling; in small letters.
_EMAILS: Final = {
    "email",
    "mail",
    "emailaddress",
    "user.email",
    "urn:oid:0.9.2342.19200300.100.1.3",
    "urn:oid:1.2.840.113549.1.9.1",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
}
_NAMES: Final = {
    "name",
    "displayname",
    "cn",
    "urn:oid:2.16.840.1.113730.3.1.241",
    "http://schemas.microsoft.com/identity/claims/displayname",
}
_VERIFIED: Final = {"email_verified", "emailverified"}


class Unreadable(ValueError):
    """What was typed of a provider can't be used; `field` is where it was typed."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


@dataclass(frozen=True)
class Provider:
    """Who says who people are: its entity id, where people are sent, and by which certificates (PEM) it signs."""

    issuer: str
    sso_url: str
    certificates: tuple[str, ...]


@dataclass(frozen=True)
class Service:
    """Who we are to a provider; each team is a service of its own."""

    entity_id: str
    acs: str


@dataclass(frozen=True)
class Asked:
    """What one trip to the provider is held to; kept in the session. `at` in seconds since 1970."""

    id: str
    relay: str
    at: float
    next: str = ""
    # Step-up: the provider is to ask who is there, however recently it did.
    is_proof: bool = False


@dataclass(frozen=True)
class Answer:
    """What a provider says, checked; whether it answers what this browser asked is not known yet. `assertion` is the
    SHA-256 of its name; a repeat after `until`, in seconds since 1970, would be refused by its time.
    """

    claims: Claims
    in_response_to: str
    assertion: bytes
    until: float


def is_installed() -> bool:
    """Whether the extra is there."""
    return all(importlib.util.find_spec(name) is not None for name in ("onelogin", "xmlsec", "lxml"))


def new_trip(*, next_page: str, is_proof: bool = False) -> Asked:
    """A trip with fresh secrets of its own."""
    # A name of XML begins with no digit.
    asked, relay = (secrets.token_urlsafe(32) for _ in range(2))
    return Asked(f"id-{asked}", relay, at=time.time(), next=next_page, is_proof=is_proof)


def where_to(provider: Provider, service: Service, asked: Asked) -> str:
    """The provider's address for this trip (HTTP-Redirect binding)."""
    from lxml import etree
    from onelogin.saml2.utils import OneLogin_Saml2_Utils

    # Not by the package: it fills a template, in which an address with an & makes no XML.
    request = etree.Element(f"{{{_SAMLP}}}AuthnRequest", nsmap={"samlp": _SAMLP, "saml": _SAML})
    told = {
        "ID": asked.id,
        "Version": "2.0",
        "IssueInstant": datetime.fromtimestamp(asked.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "Destination": provider.sso_url,
        "ProtocolBinding": _POST,
        "AssertionConsumerServiceURL": service.acs,
        **({"ForceAuthn": "true"} if asked.is_proof else {}),
    }
    for name, value in told.items():
        request.set(name, value)
    etree.SubElement(request, f"{{{_SAML}}}Issuer").text = service.entity_id
    etree.SubElement(request, f"{{{_SAMLP}}}NameIDPolicy", Format=_ANY_NAME, AllowCreate="true")
    packed = OneLogin_Saml2_Utils.deflate_and_base64_encode(etree.tostring(request))
    query = urlencode({"SAMLRequest": packed, "RelayState": asked.relay})
    return f"{provider.sso_url}{'&' if urlsplit(provider.sso_url).query else '?'}{query}"


def description(service: Service) -> bytes:
    """Our own description, for the provider: metadata XML. It names no team's settings."""
    from onelogin.saml2.settings import OneLogin_Saml2_Settings

    made = OneLogin_Saml2_Settings(_ours(service), sp_validation_only=True).get_sp_metadata()
    return made if isinstance(made, bytes) else str(made).encode()


def _ours(service: Service) -> dict[str, Any]:
    return {
        "strict": True,
        "sp": {
            "entityId": service.entity_id,
            "assertionConsumerService": {"url": service.acs, "binding": _POST},
            "NameIDFormat": _ANY_NAME,
        },
        "security": {
            "wantAssertionsSigned": True,
            "rejectDeprecatedAlgorithm": True,
            "wantAttributeStatement": False,
            "wantNameId": True,
            "requestedAuthnContext": False,
            # Servers of a network are named by one word.
            "allowSingleLabelDomains": True,
            # Providers keep what was pasted once: it must not end.
            "metadataValidUntil": "",
            "metadataCacheDuration": "",
        },
    }


def _settings(provider: Provider, service: Service) -> Any:
    from onelogin.saml2.settings import OneLogin_Saml2_Settings

    theirs = {
        "entityId": provider.issuer,
        "singleSignOnService": {"url": provider.sso_url, "binding": _REDIRECT},
        "x509certMulti": {"signing": list(provider.certificates)},
    }
    return OneLogin_Saml2_Settings({**_ours(service), "idp": theirs})


# What an admin types


def described(metadata: str) -> Provider:
    """The provider that a metadata XML describes. Raises Unreadable."""
    from onelogin.saml2.idp_metadata_parser import OneLogin_Saml2_IdPMetadataParser

    if len(metadata.encode()) > MOST_BYTES:
        raise Unreadable(
            "metadata", sentence("This is longer than 256 KB. Paste the description of your provider alone.")
        )
    try:
        root = _parsed(metadata.strip().encode())
    except Unproven as why:
        raise Unreadable("metadata", str(why)) from None
    if root.tag != f"{{{_SPACES['md']}}}EntityDescriptor":
        raise Unreadable("metadata", sentence("This describes no provider: it begins with EntityDescriptor."))
    if root.xpath("//ds:X509Certificate[not(normalize-space())]", namespaces=_SPACES):
        raise Unreadable("metadata", sentence("A certificate in it is empty."))
    found = OneLogin_Saml2_IdPMetadataParser.parse(metadata.strip().encode(), required_sso_binding=_REDIRECT)
    theirs = found.get("idp", {})
    sso_url = theirs.get("singleSignOnService", {}).get("url", "")
    if not sso_url:
        raise Unreadable("metadata", sentence("It names no address for single sign-on by HTTP-Redirect."))
    many = theirs.get("x509certMulti", {}).get("signing") or [theirs.get("x509cert", "")]
    wrapped = [f"-----BEGIN CERTIFICATE-----\n{one}\n-----END CERTIFICATE-----" for one in many if one]
    try:
        return checked_provider(theirs.get("entityId", ""), sso_url, "\n".join(wrapped))
    except Unreadable as why:
        raise Unreadable("metadata", sentence("In it: %(why)s", why=why)) from None


def checked_provider(issuer: str, sso_url: str, certificates: str) -> Provider:
    """The provider that was typed piece by piece. Raises Unreadable."""
    issuer, sso_url = issuer.strip(), sso_url.strip()
    if not issuer:
        raise Unreadable("issuer", sentence("Paste the provider's metadata above, or type its entity id."))
    if len(issuer) > _MOST_ISSUER or not issuer.isprintable() or " " in issuer:
        raise Unreadable(
            "issuer",
            sentence("An entity id has no spaces, and up to %(most_issuer)s characters.", most_issuer=_MOST_ISSUER),
        )
    try:
        outgoing.check_url(sso_url)
    except outgoing.InvalidAddress as why:
        raise Unreadable("sso_url", str(why)) from None
    if "#" in sso_url:
        raise Unreadable("sso_url", sentence("An address for single sign-on has no #."))
    provider = Provider(issuer, sso_url, _certificates(certificates))
    from onelogin.saml2.errors import OneLogin_Saml2_Error

    try:
        _settings(provider, Service("https://example.org/metadata/", "https://example.org/acs/"))
    except OneLogin_Saml2_Error as why:
        raise Unreadable("sso_url", sentence("The address can't be used: %(why)s", why=why)) from None
    return provider


def _certificates(typed: str) -> tuple[str, ...]:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    bare = typed.strip()
    if bare and begin not in bare:
        # As some providers show it: the letters alone.
        typed = f"{begin}\n{bare}\n{end}"
    try:
        found = x509.load_pem_x509_certificates(typed.encode()) if bare else []
    except ValueError:
        raise Unreadable(
            "certificates", sentence("This is no certificate: BEGIN and END CERTIFICATE are around one.")
        ) from None
    for one in found:
        key = one.public_key()
        if isinstance(key, rsa.RSAPublicKey) and key.key_size < _LEAST_BITS:
            raise Unreadable(
                "certificates",
                sentence(
                    "A key of %(key_size)s bits is too short: %(least_bits)s at least.",
                    key_size=key.key_size,
                    least_bits=_LEAST_BITS,
                ),
            )
        if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
            raise Unreadable("certificates", sentence("The key of a certificate is RSA or of an elliptic curve."))
    made = tuple(dict.fromkeys(one.public_bytes(serialization.Encoding.PEM).decode() for one in found))
    if not 1 <= len(made) <= MOST_CERTIFICATES:
        raise Unreadable(
            "certificates", sentence("Give one certificate, or two while the provider changes from one to another.")
        )
    return made


@dataclass(frozen=True)
class Shown:
    """A certificate for people: `fingerprint` is its SHA-256 in hex."""

    fingerprint: str
    ends_at: datetime
    is_over: bool


def shown(certificate: str) -> Shown:
    """What to show of a certificate (PEM)."""
    read = x509.load_pem_x509_certificate(certificate.encode())
    ends_at = read.not_valid_after_utc
    return Shown(read.fingerprint(hashes.SHA256()).hex(), ends_at, ends_at < datetime.now(UTC))


# What a provider sends


def checked(provider: Provider, service: Service, response: str) -> Answer:
    """What the provider says in a response (base64, as it is posted), if all of it holds. Raises Failed where it says
    no, and Unproven.
    """
    from onelogin.saml2.errors import OneLogin_Saml2_ValidationError
    from onelogin.saml2.response import OneLogin_Saml2_Response

    sent = _decoded(response)
    root = _parsed(sent)
    if root.tag != f"{{{_SAMLP}}}Response":
        raise Unproven(sentence("The provider sent something else than a response."))
    if root.xpath("//saml:EncryptedAssertion", namespaces=_SPACES):
        raise Unproven(
            sentence("The provider encrypts its assertion, which is not read here: turn that off for us there.")
        )
    read = OneLogin_Saml2_Response(_settings(provider, service), base64.b64encode(sent))
    try:
        read.check_status()
    except OneLogin_Saml2_ValidationError as why:
        # Nobody signs a no. What it says in words is left out: whoever posts it would write on our page.
        said = str(why).partition(" -> ")[0][:100]
        raise Failed(sentence("Your provider did not let you in: %(said)s", said=said)) from None
    # From here on the tree that the package read: what it finds signed is what we read.
    assertion = _assertion(read.document)
    if not read.is_valid(_here(service)):
        raise Unproven(sentence("The provider's answer does not hold: %(why)s", why=_short(read.get_error())))
    _hold(read.document, assertion, provider, service)
    return Answer(
        claims=_claims(assertion, provider),
        in_response_to=read.document.get("InResponseTo"),
        assertion=hashlib.sha256(f"{provider.issuer} {assertion.get('ID')}".encode()).digest(),
        until=_bearer(read.document, assertion, service) + LEEWAY,
    )


def _short(why: Any) -> str:
    return str(why)[:200]


def _decoded(response: str) -> bytes:
    try:
        sent = base64.b64decode("".join(response.split()), validate=True)
    except (binascii.Error, ValueError):
        raise Unproven(sentence("The provider's answer can't be read: it is not base64.")) from None
    if not 0 < len(sent) <= MOST_BYTES:
        raise Unproven(sentence("The provider's answer is empty or longer than 256 KB."))
    return sent


def _parsed(sent: bytes) -> Any:
    """The root of an XML document that has no DTD, no entities, no comments and no instructions of processing.

    A comment is in no signature, and cuts a name in two for whoever reads the text before it.
    """
    from lxml import etree
    from onelogin.saml2.xmlparser import fromstring

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = fromstring(sent, parser=parser, forbid_dtd=True, forbid_entities=True)
    except (etree.LxmlError, ValueError) as why:
        raise Unproven(sentence("This XML is not taken: %(why)s", why=_short(why) or type(why).__name__)) from None
    is_description = root.tag.startswith(f"{{{_SPACES['md']}}}")
    if not is_description and root.getroottree().xpath("//comment() | //processing-instruction()"):
        raise Unproven(sentence("The provider's answer has comments in it, which no signature covers."))
    return root


def _assertion(document: Any) -> Any:
    """The one assertion of a response, signed as a whole and by itself, whatever else is signed."""
    names = [value for one in document.iter() for name, value in one.attrib.items() if name.lower() == "id"]
    if len(names) != len(set(names)):
        raise Unproven(sentence("Two parts of the provider's answer have one name."))
    if len(document.xpath("//saml:Assertion", namespaces=_SPACES)) != 1:
        raise Unproven(sentence("The provider's answer has not one assertion."))
    found = document.findall(f"{{{_SAML}}}Assertion")
    if len(found) != 1:
        raise Unproven(sentence("The assertion does not stand where it has to."))
    whole = _signatures(document, document)
    if len(_signatures(document, found[0])) != 1:
        raise Unproven(sentence("The provider does not sign the assertion itself. Turn that on for us there."))
    if len(document.xpath("//ds:Signature", namespaces=_SPACES)) != 1 + len(whole) or len(whole) > 1:
        raise Unproven(sentence("Something else than the answer and its assertion is signed."))
    if document.xpath("//ds:Object", namespaces=_SPACES):
        raise Unproven(sentence("A signature carries something with it."))
    return found[0]


def _signatures(document: Any, signed: Any) -> list[Any]:
    """The signatures of a part, each of which covers exactly that part, by algorithms that hold."""
    found: list[Any] = signed.findall("ds:Signature", namespaces=_SPACES)
    for one in found:
        references = one.xpath(".//ds:Reference", namespaces=_SPACES)
        if len(references) != 1 or references[0].get("URI") != f"#{signed.get('ID')}":
            raise Unproven(sentence("A signature is of something else than the part that it stands in."))
        for path, allowed in (
            ("ds:SignedInfo/ds:SignatureMethod", _SIGNATURES),
            (".//ds:DigestMethod", _DIGESTS),
            ("ds:SignedInfo/ds:CanonicalizationMethod", _EXCLUSIVE),
            (".//ds:Transform", _TRANSFORMS),
        ):
            wrong = [node.get("Algorithm") for node in one.xpath(path, namespaces=_SPACES)]
            wrong = [name for name in wrong if name not in allowed]
            if wrong:
                raise Unproven(
                    sentence("The provider signs by %(algorithm)s, which is not taken.", algorithm=_short(wrong[0]))
                )
    return found


def _here(service: Service) -> dict[str, Any]:
    """The address that was posted to, as the package asks for it: ours by our settings, not by what a request says."""
    parts = urlsplit(service.acs)
    return {
        "https": "on" if parts.scheme == "https" else "off",
        "http_host": parts.netloc,
        "script_name": parts.path,
        "get_data": {},
        "post_data": {},
    }


def _hold(document: Any, assertion: Any, provider: Provider, service: Service) -> None:
    """What the package lets pass where it is not said, or said alike."""
    for part in (document, assertion):
        for issuer in part.findall("saml:Issuer", namespaces=_SPACES):
            if _text(issuer) != provider.issuer:
                raise Unproven(sentence("The answer came from another provider than the one that was asked."))
    if document.get("Destination", service.acs) != service.acs:
        raise Unproven(sentence("The provider's answer is for another address (Destination)."))
    if not document.get("InResponseTo"):
        raise Unproven(sentence("The provider's answer was not asked for here. Begin the login on our page."))
    [conditions] = assertion.findall("saml:Conditions", namespaces=_SPACES)
    now = time.time()
    if conditions.get("NotBefore") and _at(conditions.get("NotBefore")) > now + LEEWAY:
        raise Unproven(sentence("The provider's answer is from the future. Check the clocks."))
    if conditions.get("NotOnOrAfter") and _at(conditions.get("NotOnOrAfter")) + LEEWAY <= now:
        raise Unproven(sentence("The provider's answer is too old. Try again."))
    audiences = [
        [_text(name) for name in one.findall("saml:Audience", namespaces=_SPACES)]
        for one in conditions.findall("saml:AudienceRestriction", namespaces=_SPACES)
    ]
    if not audiences or not all(service.entity_id in names for names in audiences):
        raise Unproven(sentence("The provider's answer is for somebody else (audience)."))


def _bearer(document: Any, assertion: Any, service: Service) -> float:
    """Until when whoever brings the assertion is the person, in seconds since 1970."""
    now = time.time()
    for one in assertion.findall("saml:Subject/saml:SubjectConfirmation", namespaces=_SPACES):
        found = one.find("saml:SubjectConfirmationData", namespaces=_SPACES)
        if one.get("Method") != _BEARER or found is None:
            continue
        if found.get("Recipient") != service.acs or found.get("InResponseTo") != document.get("InResponseTo"):
            continue
        if not found.get("NotOnOrAfter") or (found.get("NotBefore") and _at(found.get("NotBefore")) > now + LEEWAY):
            continue
        until = _at(found.get("NotOnOrAfter"))
        if until + LEEWAY > now:
            return until
    raise Unproven(
        sentence("The provider's answer is not for this address, this question or this time (SubjectConfirmation).")
    )


def _claims(assertion: Any, provider: Provider) -> Claims:
    names = assertion.findall("saml:Subject/saml:NameID", namespaces=_SPACES)
    if len(names) != 1:
        raise Unproven(sentence("The provider gave no name (NameID)."))
    subject, form = _text(names[0]), names[0].get("Format", _ANY_NAME)
    if not 0 < len(subject) <= 255:
        raise Unproven(sentence("The provider gave no usable name (NameID)."))
    if form in _NO_NAMES:
        raise Unproven(
            sentence("The provider gives another name at each login. Choose a persistent NameID for us there.")
        )
    if names[0].get("NameQualifier", provider.issuer) != provider.issuer:
        raise Unproven(sentence("The provider's name for the person is another provider's (NameQualifier)."))
    told = _attributes(assertion)
    emails = {one.lower() for name in _EMAILS for one in told.get(name, [])}
    if not emails and form == _EMAIL_NAME:
        emails = {subject.lower()}
    [email] = emails if len(emails) == 1 else [""]
    verified = {one.lower() for name in _VERIFIED for one in told.get(name, [])}
    named = [one for name in sorted(_NAMES) for one in told.get(name, [])]
    return Claims(
        subject=subject,
        email=address(email),
        # SAML has no word for it: the team names the domains whose addresses it takes the provider's word for.
        is_verified=verified <= {"true", "1"},
        name=named[0][:120] if named else "",
        auth_time=_asked_at(assertion),
    )


def _asked_at(assertion: Any) -> float:
    """When the provider last asked who is there."""
    found = assertion.findall("saml:AuthnStatement", namespaces=_SPACES)
    latest = max((_at(one.get("AuthnInstant", "")) for one in found), default=0.0)
    if latest > time.time() + LEEWAY:
        raise Unproven(sentence("The provider's answer is from the future. Check the clocks."))
    return latest


def _attributes(assertion: Any) -> dict[str, list[str]]:
    """What is said of the person, by names in small letters."""
    told: dict[str, list[str]] = {}
    for one in assertion.findall("saml:AttributeStatement/saml:Attribute", namespaces=_SPACES):
        values = [_text(value) for value in one.findall("saml:AttributeValue", namespaces=_SPACES) if not len(value)]
        told.setdefault(one.get("Name", "").lower(), []).extend(filter(None, values))
    return told


def _text(node: Any) -> str:
    if len(node):
        raise Unproven(sentence("The provider's answer has something inside a name."))
    return (node.text or "").strip()


def _at(written: str) -> float:
    """A time of XML in seconds since 1970."""
    try:
        found = parse_datetime(written)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise Unproven(sentence("The provider names a time that is none: %(time)s", time=_short(written)))
    return found.timestamp()
