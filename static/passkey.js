// Passkeys: a form with data-passkey asks the browser for one, puts the answer into its field and goes on its way.
(() => {
  "use strict";
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const is_address = /^[\d.]+$|:/.test(location.hostname.replace(/^\[|\]$/g, ""));

  // What the server sends as base64url, the browser wants as bytes.
  function asked(options) {
    const known = (list) => list?.map((one) => ({ ...one, id: bytes(one.id) }));
    const out = { ...options, challenge: bytes(options.challenge) };
    if (options.user) out.user = { ...options.user, id: bytes(options.user.id) };
    if (options.excludeCredentials) out.excludeCredentials = known(options.excludeCredentials);
    if (options.allowCredentials) out.allowCredentials = known(options.allowCredentials);
    return out;
  }

  function answered(credential) {
    const response = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (credential.response[name]) response[name] = text(credential.response[name]);
    }
    if (credential.response.getTransports) response.transports = credential.response.getTransports();
    return JSON.stringify({
      id: credential.id, rawId: text(credential.rawId), type: credential.type, response,
      clientExtensionResults: credential.getClientExtensionResults(),
      authenticatorAttachment: credential.authenticatorAttachment,
    });
  }

  function say(form, words, kind = "bad") {
    const place = form.querySelector("[data-says]");
    place.textContent = words;
    place.className = `help ${kind}`;
    place.hidden = !words;
  }

  // What this script says stands in data attributes of the place where it says it, in the language of the page.
  const words = (form, name, given) => form.querySelector("[data-says]").dataset[name].replace("%s", given);
  const why = (form, error) => {
    const known = { NotAllowedError: "notDone", InvalidStateError: "known" }[error.name];
    return known ? words(form, known) : words(form, "browserSays", error.message);
  };

  async function go(form) {
    say(form, "");
    const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
    const answer = await fetch(form.dataset.begin, { method: "POST", headers: { "X-CSRFToken": token, Accept: "application/json" } });
    const said = await answer.json();
    if (said.ask) { location.assign(said.ask); return; }
    if (!answer.ok) throw new Error(said.detail ?? answer.status);
    const publicKey = asked(said.publicKey);
    const credential = await navigator.credentials[form.dataset.passkey]({ publicKey });
    form.querySelector("[name=credential]").value = answered(credential);
    form.submit();
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-passkey]")) return;
    event.preventDefault();
    go(event.target).catch((error) => say(event.target, why(event.target, error)));
  });

  document.addEventListener("DOMContentLoaded", () => {
    if (window.PublicKeyCredential && !is_address) return;
    const here = ["127.0.0.1", "[::1]"].includes(location.hostname) ? location.origin.replace(location.hostname, "localhost") : "";
    for (const form of document.querySelectorAll("form[data-passkey]")) {
      // Where one only comes in, what can't be used here is no news: there are other ways.
      if (form.dataset.passkey === "get") { form.hidden = true; continue; }
      form.querySelector("button").disabled = true;
      const instead = here ? ` ${words(form, "instead", here)}` : "";
      say(form, is_address ? words(form, "needsName") + instead : words(form, "needsHttps"), "");
    }
  });
})();
