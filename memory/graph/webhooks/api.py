"""The doors for the world's webhooks. There is no agent key here: each call proves itself by its endpoint's secret."""

from typing import Any, Final

import orjson
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from memory import problems
from memory.graph.webhooks import receive
from memory.tenants.access import public
from memory.tenants.rest import describe


@csrf_exempt
@require_POST
@public
def webhook(request: HttpRequest, kind: str, endpoint_id: str) -> HttpResponse:
    """One call of one endpoint: checked, recorded once, answered with where it went."""
    endpoint = receive.whose(endpoint_id, kind)
    try:
        call = receive.Call(request.headers, request.body)
    except RequestDataTooBig as error:
        problem = problems.from_exception(error) or problems.Problem(
            413, "too_large", "The body is over the limit of 32 MB."
        )
        receive.refused(endpoint, receive.Call(request.headers, b""), problem)
        raise problem from None
    outcome = receive.receive(endpoint, call)
    # Slack reads anything but 200 as a failure in some of its calls.
    status = 201 if outcome.status == "accepted" and kind != "slack" else 200
    return HttpResponse(orjson.dumps(outcome.answer), status=status, content_type="application/json")


_PROBLEM: Final = {"description": "application/problem+json", "content": {"application/problem+json": {}}}
_ANSWER: Final = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["accepted", "repeated", "ok"]},
        "trigger_id": {"type": "string"},
        "thread_id": {"type": "string"},
        "thread_key": {"type": "string", "nullable": True},
        "summary": {"type": "string"},
    },
}
_PROVEN_BY: Final = {
    "github": ("GitHub webhooks", "X-Hub-Signature-256 over the raw body; X-GitHub-Delivery is taken once."),
    "gitlab": ("GitLab webhooks", "X-Gitlab-Token, or a signing token (webhook-signature)."),
    "slack": ("Slack events", "X-Slack-Signature of the last five minutes; event_id is taken once."),
    "mail": (
        "A mail as it was sent (RFC 5322)",
        "Authorization: Bearer with the endpoint's secret, or an HMAC header.",
    ),
    "generic": ("Any JSON, read by the endpoint's field map", "The header that the endpoint names."),
}


def _operation(kind: str) -> dict[str, Any]:
    what, proof = _PROVEN_BY[kind]
    return {
        "operationId": f"webhooks_{kind}",
        "tags": ["webhooks"],
        "summary": what,
        "description": f"Proven by: {proof} No agent key is asked for.",
        "security": [],
        "parameters": [{"name": "endpoint", "in": "path", "required": True, "schema": {"type": "string"}}],
        "requestBody": {
            "required": True,
            "content": {"message/rfc822" if kind == "mail" else "application/json": {"schema": {}}},
        },
        "responses": {
            "200": {
                "description": "A repeat, or a call that only tries the address",
                "content": {"application/json": {"schema": _ANSWER}},
            },
            "201": {"description": "Recorded", "content": {"application/json": {"schema": _ANSWER}}},
            **dict.fromkeys(("400", "401", "403", "404", "409", "413"), _PROBLEM),
        },
    }


for _kind in _PROVEN_BY:
    describe(f"/api/v1/webhooks/{_kind}/{{endpoint}}", "post", _operation(_kind))
