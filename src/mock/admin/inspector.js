// The inspector page. What the server sends is shown as text and never as markup: message bodies
// and paths are whatever somebody wrote.

import { Refused, ask, digits, useToken } from "./server.js";

const POLL_MS = 500;
const RETRY_MS = 2000;
const KEPT_ROWS = 500;
const JOURNAL_STEP = 1000;
const MESSAGES_STEP = 20;
const FILTERS = ["text", "route", "answer"];
const TOKEN_KEY = "backread admin token";

const byId = (id) => document.getElementById(id);
const state = {
  server: null, lane: null, lanes: [], dialects: null,
  entries: [], last: 0, paused: false, epoch: 0, picked: null, shown: null,
};

// --- elements ----------------------------------------------------------------------------------

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children); // strings and numbers become text
  return made;
}

function setText(id, text) {
  const place = byId(id);
  if (place.textContent !== text) place.textContent = text;
}

// Rebuilds a list only where it changed; the focus stays at its place.
function fill(id, content, build) {
  const place = byId(id);
  const key = JSON.stringify(content);
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  const focused = [...place.querySelectorAll("button")].indexOf(document.activeElement);
  place.replaceChildren(...content.map(build));
  place.querySelectorAll("button")[focused]?.focus();
}

// --- doing something ---------------------------------------------------------------------------

const lanePath = (rest = "") => `lanes/${encodeURIComponent(state.lane)}${rest}`;

// Does what a control is for, shows what is wrong beside it, and then the new state.
async function act(problem, action) {
  setText(problem, "");
  try {
    await action();
    await refresh();
  } catch (error) {
    if (error.status === 401) return signIn(error.message);
    setText(problem, error instanceof Refused ? error.message : "The server does not answer.");
  }
}

function on(id, event, problem, action) {
  byId(id).addEventListener(event, (happened) => {
    happened.preventDefault();
    act(problem, () => action(happened));
  });
}

// --- connecting --------------------------------------------------------------------------------

function signIn(problem) {
  sessionStorage.removeItem(TOKEN_KEY);
  useToken("");
  state.epoch += 1;
  byId("tools").hidden = true;
  byId("sign-in").hidden = false;
  setText("sign-in-problem", problem);
  connection("", "not connected");
  byId("token").focus();
}

function connection(kind, text) {
  byId("connection").className = kind;
  setText("connection", text);
}

function connect(token) {
  if (!/^[!-~]+$/.test(token)) return signIn("This is no admin token.");
  useToken(token);
  sessionStorage.setItem(TOKEN_KEY, token);
  poll(++state.epoch);
}

async function poll(epoch) {
  let wait = POLL_MS;
  try {
    await refresh();
    if (epoch !== state.epoch) return;
    if (byId("tools").hidden) {
      byId("sign-in").hidden = true;
      byId("tools").hidden = false;
      await showWorld();
    }
    connection("live", state.paused ? "live, journal paused" : "live");
  } catch (error) {
    if (epoch !== state.epoch) return;
    if (error.status === 401) return signIn(error.message);
    connection("lost", error instanceof Refused ? error.message : "the server does not answer");
    wait = RETRY_MS;
  }
  setTimeout(() => epoch === state.epoch && poll(epoch), wait);
}

async function refresh() {
  const { server, lanes, dialects } = await ask("GET", "state");
  Object.assign(state, { server, lanes, dialects });
  if (!lanes.some((lane) => lane.name === state.lane)) await pickLane(lanes[0].name);
  showServer();
  showLane(currentLane());
  if (!state.paused) await readJournal();
}

const currentLane = () => state.lanes.find((lane) => lane.name === state.lane);

async function pickLane(name) {
  const first = state.lane === null;
  Object.assign(state, { lane: name, entries: [], last: 0, picked: null, shown: null });
  byId("details").hidden = true;
  byId("shown-user").hidden = true;
  for (const place of document.querySelectorAll("#tools .problem")) place.textContent = "";
  showJournal();
  if (!first) await showWorld();
}

// --- server and lanes --------------------------------------------------------------------------

function showServer() {
  setText("url", state.server.url);
  setText("vendor", state.server.vendor);
  fill("lane", state.lanes.map((lane) => lane.name), (name) => element("option", { value: name }, name));
  if (byId("lane").value !== state.lane) byId("lane").value = state.lane;
  const lanes = state.lanes.map(({ name, secret, main, counts, world }) => ({
    name, secret, main, users: world.total_users,
    requests: Object.values(counts).reduce((sum, count) => sum + count, 0),
  }));
  fill("lanes", lanes, ({ name, secret, main, requests, users }) => element("li", {},
    element("span", { className: "text" }, name,
      element("small", {}, `${users} users, ${requests} requests, secret `, element("code", {}, secret))),
    ...(main ? [] : [button("Close", `Close lane ${name}`, () =>
      act("lane-problem", () => ask("DELETE", `lanes/${encodeURIComponent(name)}`)))])));
}

function button(text, label, action) {
  return element("button", { type: "button", ariaLabel: label, onclick: action }, text);
}

function showLane(lane) {
  const waiting = lane.drifts_waiting ? `, ${lane.drifts_waiting} changes wait for their page` : "";
  setText("world-numbers", `${lane.world.total_users} users${waiting}`);
  const counts = [...Object.entries(lane.counts), ...Object.entries(lane.statuses)]
    .filter(([, count]) => count > 0);
  fill("counts", counts, ([name, count]) => element("li", {}, `${name} `, element("b", {}, count)));
  byId("faults").dataset.empty = "None: answers are as they should be.";
  fill("faults", lane.faults, ({ id, rule, fired }) => element("li", {},
    element("span", { className: "text" },
      element("code", {}, rule), element("small", {}, `fired: ${fired}`)),
    button("Remove", `Remove ${rule}`, () =>
      act("fault-problem", () => ask("DELETE", lanePath(`/faults/${id}`))))));
  showDialect(lane.dialect);
  byId("no-rate").disabled = lane.rate === null;
  keepInput("rate", lane.rate ?? "");
  const { virtual, now, waits } = lane.clock;
  const kind = virtual ? `virtual; ${waits} waits so far` : "the machine's time";
  setText("now", `${now.slice(0, 19).replace("T", " ")} UTC, ${kind}`);
  byId("virtual").checked = virtual;
  byId("advance").disabled = !virtual;
}

// What is being typed stays; otherwise the control follows the server.
function keepInput(id, value) {
  const input = byId(id);
  if (input.dataset.sent === value) return;
  input.dataset.sent = value;
  input.value = value;
}

function showDialect({ text, conforms, switches }) {
  setText("dialect-text", `${text} (${conforms ? "conforms to the interface" : "breaks the interface"})`);
  const choices = [["bundle", state.dialects.bundles], ...Object.entries(state.dialects.switches)];
  fill("switches", choices, ([name, values]) => {
    const control = Array.isArray(values)
      ? element("select", {}, ...values.map((value) => element("option", { value }, value)))
      : element("input", { type: "number", min: values.least, max: values.most, required: true });
    control.id = `switch-${name}`;
    control.addEventListener("change", () => act("dialect-problem", () => speak(name, control.value)));
    return element("label", {}, name.replaceAll("_", " "), control);
  });
  const [bundle] = text.split(" ");
  for (const [name, value] of [["bundle", bundle], ...Object.entries(switches)]) {
    const control = byId(`switch-${name}`);
    if (control !== document.activeElement || control.tagName === "SELECT") control.value = value;
    control.parentElement.classList.toggle("changed", text.includes(` ${name}=`));
  }
}

function speak(name, value) {
  const { switches } = currentLane().dialect;
  const words = Object.entries({ ...switches, [name]: value }).map(([word, set]) => `${word}=${set}`);
  return ask("PUT", lanePath("/dialect"), { dialect: name === "bundle" ? value : words.join(" ") });
}

// --- journal -----------------------------------------------------------------------------------

async function readJournal() {
  const lane = state.lane;
  let step;
  do {
    step = await ask("GET", lanePath(`/journal?after=${state.last}&limit=${JOURNAL_STEP}`));
    if (lane !== state.lane) return;
    // Two of these may be under way, after a click and by the clock.
    const fresh = step.entries.filter((entry) => entry.number > state.last);
    state.last = fresh.at(-1)?.number ?? state.last;
    state.entries = [...state.entries, ...fresh].slice(-KEPT_ROWS);
  } while (step.entries.length === JOURNAL_STEP);
  showJournal();
}

function isShown(entry) {
  const [text, route, answer] = FILTERS.map((name) => byId(`filter-${name}`).value);
  const special = { faulted: entry.faults.length > 0, unexpected: entry.unexpected !== null };
  const said = `${entry.method} ${entry.path} ${entry.status} ${marks(entry)}`.toLowerCase();
  return (route === "" || entry.route === route)
    && (special[answer] ?? String(entry.status).startsWith(answer))
    && said.includes(text.toLowerCase());
}

function marks({ unexpected, faults }) {
  const odd = unexpected === null ? [] : [`unexpected: ${unexpected}`];
  return [...odd, ...faults.map((fault) => `fault: ${fault}`)].join("\n");
}

function showJournal() {
  const rows = state.entries.filter(isShown);
  const { length } = state.entries;
  setText("journal-note", length === 0 ? "No request yet."
    : `${rows.length} of the last ${length} requests${state.last > length ? ` (${state.last} in all)` : ""}`);
  const body = byId("requests").tBodies[0];
  const known = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const wanted = rows.reverse().map((entry) => known.get(`${state.lane} ${entry.number}`) ?? requestRow(entry));
  // Only what changed is touched: a reader's focus and selection stay where they are.
  for (const row of known.values()) if (!wanted.includes(row)) row.remove();
  wanted.forEach((row, index) => body.rows[index] === row || body.insertBefore(row, body.rows[index] ?? null));
}

function requestRow(entry) {
  const { number, at, method, path, status, rows } = entry;
  const cell = (className, ...content) => element("td", { className }, ...content);
  const kind = entry.unexpected ? "unexpected" : entry.faults.length ? "faulted" : "";
  const row = element("tr", { className: kind },
    cell("number", button(number, `Request ${number}: details`, null)),
    cell("wide", at.slice(11, 23)),
    cell("request", `${method} ${path}`),
    cell(`s${String(status)[0]}`, status),
    cell("rows wide", rows ?? ""),
    cell("", element("span", { className: "mark" }, marks(entry))));
  row.dataset.key = `${state.lane} ${number}`;
  row.addEventListener("click", () => showEntry(entry, row));
  return row;
}

function showEntry(entry, row) {
  state.picked?.classList.remove("picked");
  state.picked = row;
  row.classList.add("picked");
  setText("details-title", `Request ${entry.number}`);
  const said = Object.entries(entry).filter(([, value]) => value !== null && value.length !== 0);
  byId("details-list").replaceChildren(...said.flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, Array.isArray(value) ? value.join("; ") : value)]));
  byId("details").hidden = false;
  byId("details-title").focus();
}

// --- world -------------------------------------------------------------------------------------

async function showWorld() {
  const world = await ask("GET", lanePath("/world"));
  const made = `fingerprint ${world.fingerprint}, generator ${world.generator_version}`;
  setText("world-facts", `${world.total_users} users, ${world.total_messages ?? "countless"} messages; ${made}`);
}

const changeWorld = async (body) => {
  const changed = await ask("POST", lanePath("/world"), body);
  await showWorld();
  return changed;
};

async function look(id) {
  const { user, total_messages: total } = await ask("GET", lanePath(`/world/users/${digits(id)}`));
  state.shown = { id: digits(id), messages: 0, total };
  setText("shown-title", `User ${state.shown.id}`);
  setText("shown-row", JSON.stringify(user, null, 2));
  setText("messages-title", `Messages: ${total}`);
  byId("shown-messages").replaceChildren();
  byId("shown-user").hidden = false;
  await moreMessages();
}

async function moreMessages() {
  const { shown } = state;
  const query = `offset=${shown.messages}&limit=${MESSAGES_STEP}`;
  const page = await ask("GET", lanePath(`/world/users/${shown.id}/messages?${query}`));
  shown.messages += page.messages.length;
  byId("shown-messages").append(...page.messages.map((message) => element("li", {},
    element("span", { className: "text" }, String(message.body ?? ""),
      element("small", {}, `${message.id}, ${message.sender_type ?? "?"}, ${message.created_at ?? "?"}`)),
    button("Remove", `Remove message ${message.id}`, () => act("world-problem", async () => {
      await changeWorld(`{"remove_message": {"user": ${shown.id}, "id": ${digits(String(message.id))}}}`);
      await look(shown.id);
    })))));
  byId("more-messages").hidden = shown.messages >= shown.total || page.messages.length === 0;
}

// --- controls ----------------------------------------------------------------------------------

on("sign-in", "submit", "sign-in-problem", () => connect(byId("token").value.trim()));
on("lane", "change", "lane-problem", () => pickLane(byId("lane").value));
on("forget", "click", "journal-note", async () => {
  await ask("DELETE", lanePath("/journal"));
  state.entries = [];
});
byId("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  byId("pause").setAttribute("aria-pressed", String(state.paused));
});
byId("filters").addEventListener("input", showJournal);
byId("filters").addEventListener("change", showJournal);
byId("details-close").addEventListener("click", () => {
  byId("details").hidden = true;
  state.picked?.classList.remove("picked");
  state.picked?.querySelector("button")?.focus();
});

const addFault = (rule) => ask("POST", lanePath("/faults"), { faults: [rule] });
on("fault-form", "submit", "fault-problem", async () => {
  await addFault(byId("fault").value);
  byId("fault").value = "";
});
for (const quick of document.querySelectorAll("#quick-faults [data-rule]")) {
  quick.title = quick.dataset.rule;
  quick.addEventListener("click", () => act("fault-problem", () => addFault(quick.dataset.rule)));
}
on("clear-faults", "click", "fault-problem", () => ask("DELETE", lanePath("/faults")));

on("rate-form", "submit", "rate-problem", () => ask("PUT", lanePath("/rate"), { rate: byId("rate").value }));
on("no-rate", "click", "rate-problem", () => ask("PUT", lanePath("/rate"), { rate: null }));
on("virtual", "change", "clock-problem", () =>
  ask("POST", lanePath("/clock"), { virtual: byId("virtual").checked }));
on("clock-form", "submit", "clock-problem", () =>
  ask("POST", lanePath("/clock"), { advance: Number(byId("seconds").value) }));

on("add-form", "submit", "world-problem", () => changeWorld({ add_users: Number(byId("add-users").value) }));
on("look-form", "submit", "world-problem", async () => {
  byId("shown-user").hidden = true;
  await look(byId("user").value);
});
on("remove-user", "click", "world-problem", async () => {
  await changeWorld(`{"remove_user": ${state.shown.id}}`);
  byId("shown-user").hidden = true;
});
on("add-messages", "click", "world-problem", async () => {
  const count = Number(byId("message-count").value);
  await changeWorld(`{"add_messages": {"user": ${state.shown.id}, "count": ${count}}}`);
  await look(state.shown.id);
});
on("more-messages", "click", "world-problem", moreMessages);

on("lane-form", "submit", "lane-problem", async () => {
  const [name, users] = [byId("lane-name").value.trim(), byId("lane-users").value];
  const opened = await ask("POST", "lanes", {
    name: name || null,
    world: users === "" ? null : { users: Number(users) },
  });
  byId("lane-form").reset();
  state.lanes.push({ ...currentLane(), name: opened.name });
  await pickLane(opened.name);
});

// The token leaves the address bar at once, so that no copy, bookmark or picture of it holds it.
function takeToken() {
  const given = location.hash.slice(1);
  if (given === "" || byId(given)) return false;
  history.replaceState(null, "", location.pathname);
  connect(given);
  return true;
}

addEventListener("hashchange", takeToken);
if (!takeToken()) {
  const kept = sessionStorage.getItem(TOKEN_KEY);
  if (kept) connect(kept);
  else signIn("");
}
