// The page of `backread browse`. The server escapes what strangers wrote and sends it as markup;
// this script puts that into the page and builds no markup itself.

const POLL_MS = 10_000;
const TYPING_MS = 150;
const MOST_BLOCKS = 10;
const NEAR = 800; // pixels from an end at which more messages are loaded
const FILTERS = ["since", "until", "days", "timezone", "hours", "figure", "unread", "last", "operator", "order", "files", "here"];
const ENDED = "backread browse has ended. Start it again, and open the address that it prints.";
const FAILED = "backread browse answered with an error. Try a shorter search, or reload the page.";
const LOCKED = "This tab may not read the page any more. Open the address that backread browse printed.";

const byId = (id) => document.getElementById(id);
const scroller = byId("messages");
const items = byId("items");
const number = (value) => value.toLocaleString("en");

const trusted = window.trustedTypes?.createPolicy("backread", { createHTML: (html) => html });

function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = trusted ? trusted.createHTML(html) : html;
  return template.content;
}

const paragraph = (textContent, className = "") => Object.assign(document.createElement("p"), { textContent, className });

const shown = { user: null, message: null, list: null, timezone: "" }; // what the page shows
let next = null; // the offset that "Show more" asks for
let talk = null; // the open conversation; its blocks of messages are the children of the scroller
let snapshot = null;

// --- asking the server -------------------------------------------------------------------------

const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

// What to do with an error of `fetch`: a request that was given up is nothing to tell.
const explained = (text) => (error) => { throw error.name === "AbortError" ? error : new Error(text); };

function place(name, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `api/${name}?${new URLSearchParams(given)}`;
}

async function ask(name, parameters = {}, signal = undefined) {
  const response = await fetch(place(name, parameters), { signal }).catch(explained(ENDED));
  if (response.status === 403) throw new Error(LOCKED);
  const answer = await response.json().catch(explained(`${FAILED} (status ${response.status})`));
  if (!response.ok) throw new Error(sentence(answer.error));
  return answer;
}

function say(id, text) {
  const place = byId(id);
  if (place.textContent !== text) place.textContent = text;
  place.hidden = id === "trouble" && text === "";
}

// --- the address: #/user/ID/message/ID?words=... -------------------------------------------------

function readAddress() {
  const [path, query = ""] = location.hash.slice(1).split("?", 2);
  const found = path.match(/^\/user\/(\d{1,19})(?:\/message\/(\d{1,19}))?$/);
  const given = new URLSearchParams(query);
  const list = { tab: given.get("tab") === "messages" ? "messages" : "people" };
  for (const name of ["words", ...FILTERS]) list[name] = given.get(name) ?? "";
  return { user: found?.[1] ?? null, message: found?.[2] ?? null, list };
}

function address({ user, message, list }) {
  const given = Object.entries(list).filter(([name, value]) => value && !(name === "tab" && value === "people"));
  const path = user ? `/user/${user}${message ? `/message/${message}` : ""}` : "/";
  return `#${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

function go(changes, { replace = false } = {}) {
  const { user, message, list } = { ...readAddress(), ...changes };
  const target = address({ user, message, list });
  if (replace) history.replaceState(null, "", target);
  else if (target !== location.hash) history.pushState(null, "", target);
  apply();
}

const changeList = (changes, options) => go({ list: { ...readAddress().list, ...changes } }, options);

function apply() {
  const wanted = readAddress();
  const list = JSON.stringify([wanted.list, wanted.list.here && wanted.user]);
  if (list !== shown.list) {
    shown.list = list;
    fillControls(wanted.list);
    listLoaded = loadList();
  }
  const { timezone, days, since, until, hours } = wanted.list;
  if (wanted.user !== shown.user || wanted.message !== shown.message || timezone !== shown.timezone) {
    Object.assign(shown, { user: wanted.user, message: wanted.message, timezone });
    openConversation();
  }
  byId("report").href = place("report", { timezone, days, since, until, hours });
  const user = wanted.list.tab === "people" || !wanted.list.here ? null : wanted.user;
  saveLinks("list-saves", { ...wanted.list, user });
  saveLinks("saves", { user: wanted.user });
  document.body.dataset.view = wanted.user ? "conversation" : "list";
  byId("back").href = address({ ...wanted, user: null, message: null });
  markCurrent();
}

// --- people and messages -----------------------------------------------------------------------

let operators = [];
let listLoaded = null;
let listTotal = 0;

function saveLinks(id, parameters) {
  for (const link of byId(id).querySelectorAll("a")) {
    link.href = place("download", { ...parameters, format: link.dataset.format });
  }
}

function fillControls(list) {
  if (document.activeElement !== byId("words")) byId("words").value = list.words;
  byId("list").dataset.tabShown = list.tab;
  for (const button of document.querySelectorAll("[data-tab]")) {
    button.setAttribute("aria-pressed", button.dataset.tab === list.tab);
  }
  fillOperators(list.operator);
  for (const name of FILTERS) {
    const control = byId("filters").elements[name];
    if (control.type === "checkbox") control.checked = list[name] !== "";
    else control.value = list[name];
  }
  const active = FILTERS.filter((name) => list[name] && applies(name, list.tab)).length;
  byId("filters-button").textContent = active ? `Filter and sort (${active})` : "Filter and sort";
  byId("filters-button").classList.toggle("active", active > 0);
}

function fillOperators(chosen) {
  const isKnown = !chosen || operators.some(({ id }) => id === chosen);
  const listed = isKnown ? operators : [...operators, { id: chosen, name: `operator ${chosen}` }];
  const select = byId("filters").elements.operator;
  select.replaceChildren(new Option("any", ""), ...listed.map(({ id, name }) => new Option(name, id)));
  select.value = chosen;
}

async function loadOperators() {
  ({ operators } = await ask("operators"));
  fillOperators(readAddress().list.operator);
}

const EVERYWHERE = ["since", "until", "days", "timezone"];
const applies = (name, tab) => EVERYWHERE.includes(name) || (name === "here") === (tab === "messages");

let listRequest = null;

// `keep` shows the same list as it is now in the newest snapshot; `more` adds to it.
async function loadList({ keep = false, more = false } = {}) {
  listRequest?.abort();
  const request = new AbortController();
  listRequest = request;
  const { list } = readAddress();
  items.setAttribute("aria-busy", "true");
  if (!keep && !more) say("list-status", list.tab === "messages" ? "Searching …" : "Loading …");
  const part = more ? { offset: next } : keep ? { count: Math.max(50, items.children.length) } : {};
  try {
    const name = list.tab === "messages" ? "search" : "people";
    const user = list.here && readAddress().user;
    const answer = await ask(name, { ...list, user, ...part }, request.signal);
    const focused = document.activeElement?.closest?.(".item")?.getAttribute("href");
    const at = keep || more ? byId("items-scroll").scrollTop : 0;
    if (!more) items.replaceChildren();
    items.append(fragment(answer.html));
    byId("items-scroll").scrollTop = at;
    if (focused) items.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    next = answer.next;
    listTotal = answer.total;
    say("list-status", answer.said);
    markCurrent();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!keep) items.replaceChildren();
    next = null;
    say("list-status", error.message);
  } finally {
    if (listRequest === request) {
      listRequest = null;
      byId("more").hidden = next === null;
      items.removeAttribute("aria-busy");
    }
  }
}

function markCurrent() {
  for (const item of items.querySelectorAll(".item")) {
    const { user, message } = item.dataset;
    const same = user === shown.user && (!message || message === shown.message);
    if (same) item.setAttribute("aria-current", "true");
    else item.removeAttribute("aria-current");
  }
}

// --- a conversation ----------------------------------------------------------------------------

const words = () => (readAddress().list.tab === "messages" ? readAddress().list.words : "");

const readings = () => ({ words: words(), timezone: readAddress().list.timezone });

function block({ html, first, last, start, end }) {
  const made = document.createElement("div");
  made.append(fragment(html));
  Object.assign(made.dataset, { first, last, start, end });
  return made;
}

function setTitle(subject = byId("conversation-name")?.textContent ?? "browse") {
  document.title = [subject, byId("name").textContent, "backread"].filter(Boolean).join(" · ");
}

function showConversation(isOpen) {
  byId("conversation-top").hidden = scroller.hidden = !isOpen;
  byId("nothing").hidden = isOpen;
}

// Opens what the address says; `anchor` is the message that is to stay at its place.
async function openConversation({ anchor = null, at = "last" } = {}) {
  const { user, message } = shown;
  const opened = { user, total: 0, loading: true, ended: false };
  talk = opened;
  if (!user) {
    showConversation(false);
    setTitle("browse");
    return;
  }
  scroller.setAttribute("aria-busy", "true");
  try {
    const answer = await ask("window", { user, around: anchor?.id ?? message, at, ...readings() });
    if (talk !== opened) return;
    const details = anchor && byId("heading").querySelector("details")?.open;
    byId("heading").replaceChildren(fragment(answer.heading));
    byId("heading").querySelector("details").open = details;
    showConversation(true);
    setTitle();
    opened.total = answer.total;
    byId("ends").hidden = answer.total === 0;
    scroller.replaceChildren(answer.total ? block(answer) : paragraph("This user has no messages.", "empty"));
    const linked = message && byId(`message-${message}`);
    linked?.classList.add("linked");
    const kept = anchor && byId(`message-${anchor.id}`);
    if (kept) scroller.scrollTop += kept.getBoundingClientRect().top - anchor.top;
    else if (linked) {
      linked.scrollIntoView({ block: "center" });
      linked.focus({ preventScroll: true });
    } else scroller.scrollTop = at === "first" ? 0 : scroller.scrollHeight;
  } catch (error) {
    if (talk !== opened) return;
    // A message that has gone is no reason to leave the conversation.
    if (anchor) return openConversation();
    byId("heading").replaceChildren();
    byId("ends").hidden = false;
    showConversation(true);
    scroller.replaceChildren(paragraph(error.message, "empty"));
  } finally {
    scroller.removeAttribute("aria-busy");
    opened.loading = false;
  }
  showPlace();
  loadNear();
}

async function loadNear() {
  const first = scroller.firstElementChild?.dataset;
  const last = scroller.lastElementChild?.dataset;
  if (!talk?.user || talk.loading || talk.ended || !first?.start) return;
  const below = Number(last.end) < talk.total && belowTheView() < NEAR;
  if (!below && !(Number(first.start) && scroller.scrollTop < NEAR)) return;
  const opened = talk;
  opened.loading = true;
  try {
    const end = below ? { after: last.last } : { before: first.first };
    const answer = await ask("window", { user: opened.user, ...end, ...readings() });
    if (talk !== opened) return;
    const anchor = firstVisible();
    const top = anchor?.getBoundingClientRect().top;
    opened.total = answer.total;
    // Without messages, the list has changed: the next snapshot shows all anew.
    if (answer.html) scroller[below ? "append" : "prepend"](block(answer));
    else opened.ended = true;
    if (scroller.childElementCount > MOST_BLOCKS) scroller[below ? "firstElementChild" : "lastElementChild"].remove();
    showEachDayOnce();
    if (anchor) scroller.scrollTop += anchor.getBoundingClientRect().top - top;
    showPlace();
  } catch (error) {
    // A message at the end may have gone with a new snapshot, with which all is read again.
    opened.ended = true;
    say("trouble", error.message);
  } finally {
    opened.loading = false;
  }
  if (talk === opened) loadNear();
}

const belowTheView = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;

function showEachDayOnce() {
  const days = [...scroller.querySelectorAll(".br-day")];
  days.forEach((day, at) => { day.hidden = day.textContent === days[at - 1]?.textContent; });
}

function firstVisible() {
  const top = scroller.getBoundingClientRect().top;
  const messages = [...scroller.querySelectorAll(".br-message")];
  return messages.find((each) => each.getBoundingClientRect().bottom > top + 4) ?? null;
}

function showPlace() {
  const start = scroller.firstElementChild?.dataset.start;
  if (!start) return say("place", "");
  const bottom = scroller.getBoundingClientRect().bottom;
  const messages = [...scroller.querySelectorAll(".br-message")];
  const seen = messages.findLastIndex((each) => each.getBoundingClientRect().top < bottom - 4);
  say("place", `${number(Number(start) + Math.max(seen, 0) + 1)} of ${number(talk.total)}`);
}

scroller.addEventListener("scroll", () => {
  showPlace();
  loadNear();
}, { passive: true });

function toEnd(at) {
  if (!shown.user) return;
  if (shown.message) {
    history.pushState(null, "", address({ ...readAddress(), message: null }));
    shown.message = null;
    markCurrent();
  }
  openConversation({ at });
}

// What a new snapshot changes, without moving what is being read.
function refreshConversation() {
  if (!shown.user || talk.loading) return;
  const end = scroller.lastElementChild?.dataset.end;
  const isAtEnd = Number(end) >= talk.total && belowTheView() < 40;
  const first = isAtEnd ? null : firstVisible();
  if (first) openConversation({ anchor: { id: first.id.replace("message-", ""), top: first.getBoundingClientRect().top } });
  else if (!shown.message) openConversation();
}

async function showWhole(button) {
  const message = button.closest(".br-message");
  const { html } = await ask("message", { user: shown.user, message: button.dataset.message, ...readings() });
  message.querySelector(".br-body").replaceChildren(fragment(html));
  button.remove();
}

// --- the age of the data -----------------------------------------------------------------------

let polling = null;

async function poll() {
  clearTimeout(polling);
  try {
    const state = await ask("state");
    say("trouble", "");
    say("name", state.name);
    setTitle(shown.user ? undefined : "browse");
    say("age", state.age);
    say("proof", state.proof);
    byId("proof").className = `proof ${state.kind}`;
    byId("details").replaceChildren(...state.details.map((text) => paragraph(text)));
    if (snapshot !== null && state.snapshot !== snapshot) {
      refreshConversation();
      loadList({ keep: true });
      if (!byId("filters").hidden) loadOperators().catch(() => {});
    }
    snapshot = state.snapshot;
  } catch (error) {
    say("trouble", error.message);
  }
  polling = setTimeout(poll, POLL_MS);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });

// --- controls ----------------------------------------------------------------------------------

let typing = null;

byId("words").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    const typed = byId("words").value;
    const { tab } = readAddress().list;
    // Searching all messages takes a second, so that waits for Enter.
    if (tab === "people") changeList({ words: typed }, { replace: true });
    else if (!typed.trim()) changeList({ words: "", tab: "people" });
    else if (typed !== words() && !listRequest) say("list-status", "Press Enter to search for these words.");
  }, TYPING_MS);
});

let entered = "";

// Enter opens the only person who matches, else searches the messages: at once if no one matches.
byId("search").addEventListener("submit", async (event) => {
  event.preventDefault();
  clearTimeout(typing);
  const typed = byId("words").value;
  if (!typed.trim()) return;
  if (readAddress().list.tab === "people" && typed !== entered) {
    entered = typed;
    changeList({ words: typed }, { replace: true });
    await listLoaded;
    if (listTotal === 1) return items.querySelector(".item").click();
    if (listTotal) return say("list-status", `${number(listTotal)} people match. Choose one, or press Enter again to search the messages.`);
  }
  entered = "";
  changeList({ words: typed, tab: "messages" });
});

for (const button of document.querySelectorAll("[data-tab]")) {
  button.addEventListener("click", () => changeList({ tab: button.dataset.tab, words: byId("words").value }));
}

byId("filters-button").addEventListener("click", () => {
  const filters = byId("filters");
  filters.hidden = !filters.hidden;
  byId("filters-button").setAttribute("aria-expanded", !filters.hidden);
  if (!filters.hidden) loadOperators().catch((error) => say("list-status", error.message));
});

const changeFilters = (given) => changeList(Object.fromEntries(FILTERS.map((name) => [name, given.get(name) ?? ""])));
byId("filters").addEventListener("change", ({ target }) => {
  const given = new FormData(byId("filters"));
  if (target.name === "days") for (const name of ["since", "until"]) given.delete(name);
  if (["since", "until"].includes(target.name)) given.delete("days");
  changeFilters(given);
});
byId("zones").append(...Intl.supportedValuesOf("timeZone").map((zone) => new Option(zone, zone)));
byId("filters").addEventListener("reset", (event) => {
  event.preventDefault();
  changeFilters(new FormData());
});
byId("filters").addEventListener("submit", (event) => event.preventDefault());

byId("more").addEventListener("click", () => loadList({ more: true }));
new IntersectionObserver((entries) => {
  // The next people come by themselves; the next hits are a search, which takes a second.
  if (entries.some((each) => each.isIntersecting) && readAddress().list.tab === "people" && !listRequest) loadList({ more: true });
}, { root: byId("items-scroll"), rootMargin: "400px" }).observe(byId("more"));

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='#/']");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    const [, user = null, message = null] = link.getAttribute("href").match(/^#\/user\/(\d+)(?:\/message\/(\d+))?/) ?? [];
    const current = items.querySelector("[aria-current]") ?? items.querySelector(".item");
    go({ user, message });
    if (link.id === "back") current?.focus();
  }
  const whole = event.target.closest?.(".whole");
  if (whole) showWhole(whole).catch((error) => say("trouble", error.message));
  if (!event.target.closest?.("#freshness")) byId("freshness").open = false;
});

byId("to-first").addEventListener("click", () => toEnd("first"));
byId("to-last").addEventListener("click", () => toEnd("last"));
byId("help-button").addEventListener("click", () => byId("help").showModal());

// --- keys --------------------------------------------------------------------------------------

function move(step, { open = false } = {}) {
  const all = [...items.querySelectorAll(".item")];
  let at = all.indexOf(document.activeElement?.closest?.(".item"));
  if (at < 0 || open) at = Math.max(at, all.findIndex((each) => each.getAttribute("aria-current")));
  const item = all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)];
  if (!item) return;
  item.focus();
  item.scrollIntoView({ block: "nearest" });
  if (open) item.click();
}

function escape() {
  if (byId("freshness").open) byId("freshness").open = false;
  else if (byId("words").value) {
    byId("words").value = "";
    changeList({ words: "", tab: "people" });
  } else if (shown.user && document.activeElement !== byId("words")) {
    const current = items.querySelector("[aria-current]");
    go({ user: null, message: null });
    current?.focus();
  } else document.activeElement?.blur();
}

const KEYS = {
  "/": () => {
    if (!byId("search").offsetParent) go({ user: null, message: null });
    byId("words").focus();
    byId("words").select();
  },
  j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
  n: () => move(1, { open: true }), p: () => move(-1, { open: true }),
  g: () => toEnd("first"), G: () => toEnd("last"),
  "?": () => byId("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const writing = event.target.matches?.("input:not([type=checkbox]), select, textarea");
  if (event.key === "Escape") return escape();
  // In the search field, arrows lead into the list; in a conversation they scroll it.
  const arrow = event.key.startsWith("Arrow");
  if (writing && !(arrow && event.target === byId("words"))) return;
  if (arrow && event.target.closest?.("#conversation")) return;
  if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

addEventListener("popstate", apply);
addEventListener("hashchange", apply);
apply();
poll();
