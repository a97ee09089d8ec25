"""The script of the dashboard: it asks for the part that changes, and puts it in place of what is there.

Without it the page is whole, but still. It keeps a viewer's token in the tab, and sends it to the server of the page
alone.
"""

SCRIPT = """\
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const live = at("live"), state = at("state"), find = at("narrow"), signIn = at("sign-in"), signOut = at("sign-out");
  const logs = new Map();  // whole logs that were asked for, by the failure
  let token = sessionStorage.getItem("token") || "";
  // Without the tag of what is shown, an answer comes at once: so the page finds out that the server is there.
  let tag = "", round = 0, asking = new AbortController();

  const say = (kind, text) => {
    if (state.dataset.state !== kind || state.textContent !== text) {
      state.dataset.state = kind;
      state.textContent = text;
    }
  };

  const ask = (path) => fetch(path, {
    headers: token ? {Authorization: "Bearer " + token} : {},
    cache: "no-store", credentials: "omit", redirect: "error", signal: asking.signal,
  });

  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

  const seen = () => document.hidden
    ? new Promise((done) => document.addEventListener("visibilitychange", done, {once: true}))
    : Promise.resolve();

  const length = (seconds) => {
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
      if (seconds >= 1.5 * size) return Math.round(seconds / size) + " " + unit;
    }
    return Math.floor(seconds) + " s";
  };

  const tellAges = () => {
    for (const each of document.querySelectorAll("time")) {
      if (!each.title) each.title = each.textContent;
      const ago = (Date.now() - Date.parse(each.dateTime)) / 1000;
      each.textContent = ago >= 0 ? length(ago) + " ago" : "in " + length(-ago);
    }
  };

  const showWholeLogs = () => {
    for (const each of live.querySelectorAll("details[data-key]")) {
      const log = logs.get(each.dataset.key), place = each.querySelector("pre");
      if (log !== undefined && place) {
        place.textContent = log;
        const link = each.querySelector("a.whole");
        if (link) link.remove();
      }
    }
  };

  const show = (html) => {
    const open = new Set([...live.querySelectorAll("details[open]")].map((each) => each.dataset.key));
    const focused = live.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    live.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
    for (const each of live.querySelectorAll("details[data-key]")) each.open = open.has(each.dataset.key);
    showWholeLogs();
    tellAges();
    if (focused !== null) {
      const again = [...live.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused);
      if (again) again.focus({preventScroll: true});
    }
  };

  const askForToken = (why) => {
    sessionStorage.removeItem("token");
    logs.clear();
    live.replaceChildren();
    tag = "";
    signIn.hidden = false;
    find.hidden = signOut.hidden = true;
    at("refusal").textContent = why;
    at("refusal").hidden = !why;
    say("out", "signed out");
  };

  const follow = async () => {
    const mine = ++round;
    asking.abort();
    asking = new AbortController();
    let pause = 500;
    while (mine === round) {
      try {
        await seen();
        const query = new URLSearchParams(location.search);
        query.set("seen", tag);
        const answer = await ask("fragment?" + query), text = await answer.text();
        if (mine !== round) return;
        if (answer.status === 401 || answer.status === 403) {
          askForToken(token ? text : "");
          return;
        }
        if (answer.status !== 200 && answer.status !== 204) throw new Error(text);
        if (answer.status === 200) {
          show(text);
          tag = (answer.headers.get("ETag") || "").replaceAll('"', "");
        }
        signIn.hidden = true;
        find.hidden = false;
        signOut.hidden = !token;
        say("live", "live");
        pause = 500;
      } catch (error) {
        if (mine !== round) return;
        tag = "";
        say("lost", "not connected: " + (error.message || "the server does not answer"));
        await sleep(pause);
        pause = Math.min(2 * pause, 15000);
      }
    }
  };

  const go = (search, keeps) => {
    history[keeps ? "replaceState" : "pushState"](null, "", location.pathname + search);
    follow();
  };

  live.addEventListener("click", async (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (!link.classList.contains("whole")) {
      go(new URL(link.href).search);
      restore();
      return;
    }
    try {
      const answer = await ask(link.getAttribute("href")), text = await answer.text();
      if (!answer.ok) throw new Error(text);
      logs.set(link.closest("details").dataset.key, text);
      showWholeLogs();
    } catch (error) {
      link.textContent = "The log could not be read: " + error.message;
    }
  });

  const narrow = (keeps) => {
    const query = new URLSearchParams(location.search), text = at("text").value.trim();
    if (text) query.set("text", text); else query.delete("text");
    go(query.size ? "?" + query : "", keeps);
  };
  let typed = 0;
  find.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(typed); narrow(false); });
  at("text").addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(() => narrow(true), 300); });

  signIn.addEventListener("submit", (event) => {
    event.preventDefault();
    token = at("token").value.trim();
    at("token").value = "";
    sessionStorage.setItem("token", token);
    follow();
  });
  signOut.addEventListener("click", () => { round += 1; asking.abort(); token = ""; askForToken(""); });

  const restore = () => { at("text").value = new URLSearchParams(location.search).get("text") || ""; };
  addEventListener("popstate", () => { restore(); follow(); });
  at("find").hidden = true;
  restore();
  tellAges();
  setInterval(tellAges, 5000);
  if (live.dataset.tag || token) follow(); else say("out", "signed out");
})();
"""
