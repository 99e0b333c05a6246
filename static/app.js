// Small helps on top of pages that work without them: theme, keys, copying, local times, messages of failed requests.
(() => {
  "use strict";
  const root = document.documentElement;

  // What this script says, in the language of the page: data attributes of the place for messages.
  const words = (name, ...given) => {
    const said = document.getElementById("messages")?.dataset[name] ?? "";
    return given.reduce((text, value) => text.replace("%s", value), said);
  };
  const recall = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* private window */ } };

  // Runs before the body is parsed, so that a dark page never flashes white.
  root.classList.add("js");
  if (["light", "dark"].includes(recall("theme"))) root.dataset.theme = recall("theme");

  function toggleTheme() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    keep("theme", root.dataset.theme);
  }

  const keysOn = () => recall("keys") !== "off";
  function showKeys() {
    root.classList.toggle("keys", keysOn());
    for (const button of document.querySelectorAll("[data-toggle='keys']")) button.setAttribute("aria-pressed", keysOn());
  }
  function toggleKeys() {
    keep("keys", keysOn() ? "off" : "on");
    showKeys();
  }

  function say(text, kind) {
    const message = document.createElement("p");
    message.className = `message ${kind}`;
    message.textContent = text;
    document.getElementById("messages")?.append(message);
    setTimeout(() => message.remove(), 8000);
  }

  // What the server said with a page goes like what this script says.
  function sayNoMore() {
    for (const message of document.querySelectorAll("#messages .message")) setTimeout(() => message.remove(), 8000);
  }

  async function copy(button) {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      const label = button.textContent;
      button.textContent = words("copied");
      setTimeout(() => { button.textContent = label; }, 1500);
    } catch {
      // Without the clipboard permission the text is selected instead, one Ctrl-C away.
      getSelection().selectAllChildren(source);
    }
  }

  // Where "Is it you?" comes between a form and its address, what was typed comes back with the form, but for secrets:
  // whoever invites a reader must not invite a member the second time.
  const told = (form) => [...form.elements].filter((one) => one.name && !one.matches("button, [type=hidden], [type=password], [type=file], [name*=secret]"));
  const ticks = (control) => control.matches("[type=checkbox], [type=radio]");
  // By the attribute: a field called "action" hides the property.
  const goal = (form) => form.getAttribute("action") ?? "";
  const alike = (action) => [...document.forms].filter((one) => goal(one) === action);

  function holdTyped(form) {
    if (document.querySelector("[data-step-up]")) return;
    const typed = told(form).map((one) => [one.name, ticks(one) ? one.checked : one.value]);
    try {
      sessionStorage.setItem("typed", JSON.stringify({ action: goal(form), place: alike(goal(form)).indexOf(form), typed }));
    } catch { /* private window, or too much */ }
  }

  function giveTypedBack() {
    if (document.querySelector("[data-step-up]")) return;
    let held = null;
    try { held = JSON.parse(sessionStorage.getItem("typed")); sessionStorage.removeItem("typed"); } catch { /* private window */ }
    if (!held || !document.querySelector("#messages .again")) return;
    const form = alike(held.action)[held.place];
    const controls = form ? told(form) : [];
    if (!form || controls.length !== held.typed.length || controls.some((one, at) => one.name !== held.typed[at][0])) return;
    controls.forEach((one, at) => { if (ticks(one)) one.checked = held.typed[at][1]; else one.value = held.typed[at][1]; });
    for (let around = form.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
    form.querySelector("button:not([type=button])")?.focus();
  }

  const visible = (element) => element && element.getClientRects().length > 0;

  function step(by) {
    const rows = [...document.querySelectorAll("[data-row]")].filter(visible);
    if (!rows.length) return;
    const at = rows.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1);
    rows[next].focus();
  }

  const enter = (popover) => {
    if (popover.matches?.("details.popover[open]")) popover.querySelector("textarea, input:not([type=hidden])")?.focus();
  };

  // The finder lies over any page. Without this script its link leads to a page that does the same.
  function openFinder() {
    const finder = document.getElementById("finder");
    if (!finder) return false;
    if (!finder.open) finder.showModal();
    finder.querySelector("input").select();
    return true;
  }

  function pressInFinder(event) {
    const finder = event.target.closest?.("dialog.finder");
    if (!finder || !["ArrowDown", "ArrowUp", "Enter"].includes(event.key)) return false;
    const field = finder.querySelector("input");
    const stops = [field, ...finder.querySelectorAll("[data-found]")];
    const at = stops.indexOf(document.activeElement);
    if (event.key === "Enter") {
      // On a hit Enter is the link's own; in the field it goes to the first hit, and to the page where there is none.
      if (at !== 0 || stops.length < 2) return false;
      event.preventDefault();
      stops[1].click();
      return true;
    }
    event.preventDefault();
    stops[(at + (event.key === "ArrowDown" ? 1 : -1) + stops.length) % stops.length].focus();
    return true;
  }

  function press(event) {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
      if (openFinder()) event.preventDefault();
      return;
    }
    if (pressInFinder(event)) return;
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "Escape") {
      const open = document.querySelector("details.popover[open]");
      if (open) { open.open = false; open.querySelector("summary").focus(); }
      return;
    }
    if (typing && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      const form = event.target.closest("form[data-submit]");
      if (form) { event.preventDefault(); form.requestSubmit(); }
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat || !keysOn()) return;
    const target = [...document.querySelectorAll(`[data-key="${CSS.escape(event.key)}"]`)].find(visible);
    if (target) {
      event.preventDefault();
      if (target.matches("input")) target.focus(); else target.click();
      // "toggle" comes a moment later: what is typed meanwhile belongs into the field too.
      if (target.matches("summary")) enter(target.parentElement);
    } else if (event.key === "j" || event.key === "k") {
      event.preventDefault();
      step(event.key === "j" ? 1 : -1);
    }
  }

  // The way to a stop of the hop map lights up while the stop is pointed at or has the focus.
  function lightWay(event) {
    const stop = event.target.closest?.("[data-path]");
    const map = stop?.closest(".hops") ?? document.querySelector(".hops .way")?.closest(".hops");
    for (const part of map?.querySelectorAll(".way") ?? []) part.classList.remove("way");
    if (!stop) return;
    const way = stop.dataset.path.split(" ");
    way.forEach((name, place) => {
      map.querySelector(`[data-path="${way.slice(0, place + 1).join(" ")}"]`)?.classList.add("way");
      map.querySelector(`[data-wire="${way[place - 1]}-${name}"]`)?.classList.add("way");
    });
  }

  function localTimes(within) {
    // The reader's own kind of the page's language, such as en-GB.
    const speaks = navigator.languages.find((one) => one.split("-")[0] === root.lang) ?? root.lang;
    for (const time of within.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!isNaN(at)) time.title = at.toLocaleString(speaks, { dateStyle: "full", timeStyle: "long" });
    }
  }

  document.addEventListener("click", (event) => {
    const finder = document.getElementById("finder");
    // A click beside the finder closes it: it is the dialog's own only there.
    if (finder?.open && event.target === finder) finder.close();
    const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (plain && event.target.closest?.("[data-finder]") && openFinder()) event.preventDefault();
    const button = event.target.closest?.("button[data-toggle], button[data-copy], button[data-unfold]");
    if (button?.dataset.copy) copy(button);
    if (button && "unfold" in button.dataset) button.closest("tbody").remove();
    if (button?.dataset.toggle === "theme") toggleTheme();
    if (button?.dataset.toggle === "keys") toggleKeys();
    for (const open of document.querySelectorAll("details.popover[open], details.menu[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });
  document.addEventListener("keydown", press);
  document.addEventListener("focusin", lightWay);
  document.addEventListener("pointerover", lightWay);
  // "toggle" does not bubble: it is caught on its way down.
  document.addEventListener("toggle", (event) => enter(event.target), true);
  // A form that keeps no draft: a click beside it asks before what was typed is lost.
  let sent = false;
  addEventListener("beforeunload", (event) => {
    const field = document.querySelector("form[data-unsaved] textarea");
    if (field && !sent && field.value !== field.defaultValue) event.preventDefault();
  });
  document.addEventListener("submit", (event) => {
    sent = event.target.matches("[data-unsaved]");
    holdTyped(event.target);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
  });

  document.addEventListener("DOMContentLoaded", () => {
    showKeys();
    sayNoMore();
    giveTypedBack();
    localTimes(document);
    document.body.addEventListener("htmx:beforeRequest", () => { root.dataset.busy = "yes"; });
    document.body.addEventListener("htmx:afterRequest", () => { delete root.dataset.busy; });
    document.body.addEventListener("htmx:afterSwap", (event) => {
      const piece = document.getElementById(event.detail.target.id) ?? document.body;
      localTimes(piece);
      sayNoMore();
      piece.querySelector("[data-focus]")?.focus();
    });
    document.body.addEventListener("htmx:responseError", (event) => {
      const status = event.detail.xhr.status;
      const outcome = words(event.detail.requestConfig.verb === "get" ? "notLoaded" : "notChanged");
      const why = { 403: "forbidden", 404: "gone", 413: "tooLarge" }[status];
      say(`${outcome} ${why ? words(why) : words("answered", status)}`, "error");
    });
    document.body.addEventListener("htmx:sendError", () => say(words("away"), "error"));
    document.body.addEventListener("htmx:timeout", () => say(words("slow"), "error"));
  });
})();
