// The page of `backread browse`. The server escapes what strangers wrote and sends it as markup;
// this script puts that into the page and builds no markup itself.

const POLL_MS = 10_000;
const TYPING_MS = 150;
const MOST_BLOCKS = 10;
const NEAR = 800; // pixels from an end at which more messages are loaded
const FILTERS = ["since", "until", "unread", "last", "operator", "order", "files", "here"];
const ENDED = "backread browse has ended. Start it again, and open the address that it prints.";
const LOCKED = "This tab may not read the page any more. Open the address that backread browse printed.";

const byId = (id) => document.getElementById(id);
const scroller = byId("messages");
const number = (value) => value.toLocaleString("en");
const amount = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

const trusted = window.trustedTypes?.createPolicy("backread", { createHTML: (html) => html });

function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = trusted ? trusted.createHTML(html) : html;
  return template.content;
}

const shown = { user: null, message: null, list: null }; // what the page shows
let next = null; // the offset, or the count of hits, that "Show more" asks for
let talk = null; // the open conversation: its blocks, and whether there is more at either end
let snapshot = null;

// --- asking the server -------------------------------------------------------------------------

class Refused extends Error {}

const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

async function ask(name, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== "");
  let response;
  try {
    response = await fetch(`api/${name}?${new URLSearchParams(given)}`, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(ENDED);
  }
  if (response.status === 403) throw new Refused(LOCKED);
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Refused(`backread browse answered with an error (status ${response.status}). Try a shorter search, or reload the page.`);
  });
  if (!response.ok) throw new Refused(sentence(answer.error));
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
    loadList();
  }
  if (wanted.user !== shown.user || wanted.message !== shown.message) {
    Object.assign(shown, { user: wanted.user, message: wanted.message });
    openConversation();
  }
  document.body.dataset.view = wanted.user ? "conversation" : "list";
  byId("back").href = address({ ...wanted, user: null, message: null });
  markCurrent();
}

// --- people and messages -----------------------------------------------------------------------

function fillControls(list) {
  if (byId("words").value !== list.words && document.activeElement !== byId("words")) byId("words").value = list.words;
  byId("list").dataset.tabShown = list.tab;
  for (const button of document.querySelectorAll("[data-tab]")) {
    button.setAttribute("aria-pressed", button.dataset.tab === list.tab);
  }
  const controls = byId("filters").elements;
  for (const name of FILTERS) {
    const control = controls[name];
    if (control.type === "checkbox") control.checked = list[name] !== "";
    else {
      if (name === "operator" && list[name] && ![...control.options].some((each) => each.value === list[name])) {
        control.add(new Option(`operator ${list[name]}`, list[name]));
      }
      control.value = list[name];
    }
  }
  const active = FILTERS.filter((name) => list[name] && applies(name, list.tab)).length;
  byId("filters-button").textContent = active ? `Filter and sort (${active})` : "Filter and sort";
  byId("filters-button").classList.toggle("active", active > 0);
}

const applies = (name, tab) => ["since", "until"].includes(name) || (name === "here") === (tab === "messages");

function dayAfter(day) {
  const date = new Date(`${day}T00:00:00Z`);
  if (!day || Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() + 86_400_000).toISOString().slice(0, 10);
}

function listParameters(list) {
  const given = { words: list.words };
  for (const name of FILTERS) if (list[name] && applies(name, list.tab)) given[name] = list[name];
  if (given.until) given.until = dayAfter(given.until);
  if (given.here) given.user = readAddress().user ?? "";
  delete given.here;
  return given;
}

let listRequest = null;

// `keep` shows the same list as it is now in the newest snapshot; `more` adds to it.
async function loadList({ keep = false, more = false } = {}) {
  listRequest?.abort();
  const request = new AbortController();
  listRequest = request;
  const list = readAddress().list;
  const items = byId("items");
  if (list.tab === "messages" && !list.words.trim()) {
    items.replaceChildren();
    byId("more").hidden = true;
    say("list-status", "Type words to search for, and press Enter.");
    return;
  }
  items.setAttribute("aria-busy", "true");
  if (!keep && !more) say("list-status", list.tab === "messages" ? "Searching …" : "Loading …");
  try {
    const answer = await (list.tab === "people" ? people : hits)(list, { keep, more }, request.signal);
    const at = byId("items-scroll").scrollTop;
    const focused = document.activeElement?.closest?.(".item")?.getAttribute("href");
    if (more && list.tab === "people") items.append(fragment(answer.html));
    else items.replaceChildren(fragment(answer.html));
    byId("items-scroll").scrollTop = keep || more ? at : 0;
    if (focused) items.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    next = answer.next;
    byId("more").hidden = next === null;
    say("list-status", answer.status);
    markCurrent();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!keep) items.replaceChildren();
    byId("more").hidden = true;
    say("list-status", error.message);
  } finally {
    if (listRequest === request) {
      listRequest = null;
      items.removeAttribute("aria-busy");
    }
  }
}

async function people(list, { keep, more }, signal) {
  const given = listParameters(list);
  const page = keep ? { count: Math.max(50, byId("items").children.length) } : { offset: more ? next : "" };
  const answer = await ask("people", { ...given, ...page }, signal);
  const filtered = Object.entries(given).some(([name, value]) => value && name !== "order");
  let status = amount(answer.total, "person", "people");
  if (!answer.total) status = filtered ? "Nobody matches. Esc clears the search; look at the filters, too." : "This mirror has no users yet.";
  return { ...answer, status };
}

async function hits(list, { keep, more }, signal) {
  const count = more ? next : keep ? Math.max(50, byId("items").children.length) : "";
  const answer = await ask("search", { ...listParameters(list), count }, signal);
  let status = answer.more ? `The newest ${number(answer.count)} messages found` : `${amount(answer.count, "message")} found`;
  if (!answer.count) status = `No message has all of these words: ${list.words.trim()}`;
  return { ...answer, status };
}

function markCurrent() {
  for (const item of byId("items").querySelectorAll(".item")) {
    const { user, message } = item.dataset;
    const same = user === shown.user && (!message || message === shown.message);
    if (same) item.setAttribute("aria-current", "true");
    else item.removeAttribute("aria-current");
  }
}

async function loadOperators() {
  const select = byId("filters").elements.operator;
  const { operators } = await ask("operators");
  const chosen = select.value;
  select.replaceChildren(new Option("any", ""), ...operators.map(({ id, name }) => new Option(name, id)));
  if (chosen && !operators.some(({ id }) => String(id) === chosen)) select.add(new Option(`operator ${chosen}`, chosen));
  select.value = chosen;
}

// --- a conversation ----------------------------------------------------------------------------

const words = () => (readAddress().list.tab === "messages" ? readAddress().list.words : "");

function block(answer) {
  const made = document.createElement("div");
  made.append(fragment(answer.html));
  return { element: made, first: answer.first, last: answer.last, start: answer.start, end: answer.end };
}

// Opens what the address says; `anchor` is the message that is to stay at its place.
async function openConversation({ anchor = null, at = "last" } = {}) {
  const { user, message } = shown;
  const opened = { user, blocks: [], earlier: false, later: false, loading: true, total: 0 };
  talk = opened;
  if (!user) {
    byId("conversation-top").hidden = scroller.hidden = true;
    byId("nothing").hidden = false;
    document.title = "backread browse";
    return;
  }
  scroller.setAttribute("aria-busy", "true");
  try {
    const around = anchor?.id ?? message;
    const answer = await ask("window", { user, around, at, words: words() });
    if (talk !== opened) return;
    const details = byId("heading").querySelector("details")?.open && anchor;
    byId("heading").replaceChildren(fragment(answer.heading));
    if (details) byId("heading").querySelector("details").open = true;
    byId("conversation-top").hidden = scroller.hidden = false;
    byId("nothing").hidden = true;
    document.title = `${byId("conversation-name").textContent} · backread`;
    opened.blocks = [block(answer)];
    opened.total = answer.total;
    place();
    byId("ends").hidden = answer.total === 0;
    if (!answer.total) scroller.append(Object.assign(document.createElement("p"), { className: "empty", textContent: "This user has no messages." }));
    const linked = message && byId(`message-${message}`);
    linked?.classList.add("linked");
    const kept = anchor && byId(`message-${anchor.id}`);
    if (kept) scroller.scrollTop += kept.getBoundingClientRect().top - anchor.top;
    else if (linked) {
      linked.scrollIntoView({ block: "center" });
      linked.focus({ preventScroll: true });
    } else scroller.scrollTop = at === "first" ? 0 : scroller.scrollHeight;
    showPlace();
  } catch (error) {
    if (talk !== opened) return;
    // A message that has gone is no reason to leave the conversation.
    if (anchor) return openConversation();
    byId("heading").replaceChildren();
    byId("ends").hidden = false;
    byId("conversation-top").hidden = scroller.hidden = false;
    byId("nothing").hidden = true;
    scroller.replaceChildren(Object.assign(document.createElement("p"), { className: "empty", textContent: error.message }));
    say("place", "");
  } finally {
    scroller.removeAttribute("aria-busy");
    opened.loading = false;
  }
  loadNear();
}

// Puts the blocks into the page, with each day's heading once.
function place() {
  const { blocks, total } = talk;
  scroller.replaceChildren(...blocks.map((each) => each.element));
  let before = null;
  for (const { element } of blocks) {
    const days = element.querySelectorAll(".br-day");
    if (days.length) days[0].hidden = days[0].textContent === before;
    before = [...days].at(-1)?.textContent ?? before;
  }
  talk.earlier = blocks[0].start > 0;
  talk.later = blocks.at(-1).end < total;
}

async function loadNear() {
  if (!talk?.user || talk.loading || !talk.blocks.length) return;
  const above = talk.earlier && scroller.scrollTop < NEAR;
  const below = talk.later && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR;
  if (!above && !below) return;
  const opened = talk;
  opened.loading = true;
  try {
    const end = below ? { after: opened.blocks.at(-1).last } : { before: opened.blocks[0].first };
    const answer = await ask("window", { user: opened.user, ...end, words: words() });
    if (talk !== opened) return;
    const anchor = firstVisible();
    const top = anchor?.getBoundingClientRect().top;
    if (answer.first !== null) opened.blocks[below ? "push" : "unshift"](block(answer));
    opened.total = answer.total;
    if (opened.blocks.length > MOST_BLOCKS) opened.blocks[below ? "shift" : "pop"]();
    place();
    if (anchor) scroller.scrollTop += anchor.getBoundingClientRect().top - top;
    showPlace();
  } catch (error) {
    // A message at the end may have gone with a new snapshot, with which all is read again.
    opened.earlier = opened.later = false;
    say("trouble", error.message);
  } finally {
    opened.loading = false;
  }
  if (talk === opened) loadNear();
}

function firstVisible() {
  const top = scroller.getBoundingClientRect().top;
  const messages = [...scroller.querySelectorAll(".br-message")];
  return messages.find((each) => each.getBoundingClientRect().bottom > top + 4) ?? null;
}

function showPlace() {
  if (!talk?.blocks?.length || !talk.total) return say("place", "");
  const bottom = scroller.getBoundingClientRect().bottom;
  let last = talk.blocks[0].start + 1;
  for (const { element, start } of talk.blocks) {
    const messages = [...element.querySelectorAll(".br-message")];
    const seen = messages.findLastIndex((each) => each.getBoundingClientRect().top < bottom - 4);
    if (seen >= 0) last = start + seen + 1;
  }
  say("place", `${number(last)} of ${number(talk.total)}`);
}

let scrolled = false;
scroller.addEventListener("scroll", () => {
  if (scrolled) return;
  scrolled = true;
  requestAnimationFrame(() => {
    scrolled = false;
    showPlace();
    loadNear();
  });
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
  if (!shown.user || talk?.loading) return;
  const atEnd = !talk.later && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 40;
  const first = atEnd ? null : firstVisible();
  const anchor = first && { id: first.id.replace("message-", ""), top: first.getBoundingClientRect().top };
  if (anchor) openConversation({ anchor });
  else if (!shown.message) openConversation();
}

async function showWhole(button) {
  const message = button.closest(".br-message");
  const { html } = await ask("message", { user: shown.user, message: button.dataset.message, words: words() });
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
    say("age", state.age);
    say("proof", state.proof);
    byId("proof").className = `proof ${state.kind}`;
    byId("details").replaceChildren(...state.details.map((text) => Object.assign(document.createElement("p"), { textContent: text })));
    const isNew = snapshot !== null && state.snapshot !== snapshot;
    if (isNew) {
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

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  const typed = byId("words").value;
  if (typed.trim()) changeList({ words: typed, tab: "messages" });
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

byId("filters").addEventListener("change", () => {
  const given = new FormData(byId("filters"));
  changeList(Object.fromEntries(FILTERS.map((name) => [name, given.get(name) ?? ""])));
});
byId("filters").addEventListener("reset", (event) => {
  event.preventDefault();
  changeList(Object.fromEntries(FILTERS.map((name) => [name, ""])));
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
    const items = byId("items");
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
  const items = [...byId("items").querySelectorAll(".item")];
  let at = items.indexOf(document.activeElement?.closest?.(".item"));
  if (at < 0 || open) at = Math.max(at, items.findIndex((each) => each.getAttribute("aria-current")));
  const item = items[at < 0 ? 0 : Math.min(Math.max(at + step, 0), items.length - 1)];
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
    const current = byId("items").querySelector("[aria-current]");
    go({ user: null, message: null });
    current?.focus();
  } else document.activeElement?.blur();
}

const KEYS = {
  "/": () => {
    if (getComputedStyle(byId("search")).display === "none" || !byId("search").offsetParent) go({ user: null, message: null });
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
