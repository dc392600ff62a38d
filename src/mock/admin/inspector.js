// The inspector page. What the server sends is shown as text and never as markup: paths and rules
// are whatever somebody wrote.

const POLL_MS = 500;
const MOST_ROWS = 500;
const TOKEN_KEY = "backread admin token";

const byId = (id) => document.getElementById(id);
let token = "";
let lane = "main";
let last = 0; // the number of the last request shown
let polling = 0;

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children); // strings and numbers become text
  return made;
}

// Rebuilds a list only if it changed; the focus stays at its place.
function fill(id, content, build) {
  const place = byId(id);
  const key = JSON.stringify(content);
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  const focused = [...place.querySelectorAll("button")].indexOf(document.activeElement);
  place.replaceChildren(...content.map(build));
  place.querySelectorAll("button")[focused]?.focus();
}

// The token is sent in a header that no other site can make a browser send.
async function send(method, path, body) {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(path, { method, headers, cache: "no-store", body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error.message), { status: response.status });
  return answer;
}

const words = (error) => (error.status ? error.message : "The server does not answer.");
const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

async function refresh() {
  const { server, lanes } = await send("GET", "state");
  const current = lanes.find(({ name }) => name === lane) ?? lanes[0];
  if (current.name !== lane) pick(current.name);
  byId("url").textContent = server.url;
  const worlds = lanes.map(({ name, secret, counts, world, dialect }) =>
    ({ name, secret, requests: total(counts), users: world.total_users, dialect: dialect.text }));
  fill("lane", worlds.map(({ name }) => name), (value) => element("option", { value }, value));
  byId("lane").value = lane;
  fill("worlds", worlds, ({ name, secret, requests, users, dialect }) => element("li", {}, element("span", {},
    `${name}: ${users} users, ${requests} requests`,
    element("small", {}, `dialect ${dialect}, secret `, element("code", {}, secret)))));
  fill("faults", current.faults, ({ id, rule, fired }) => element("li", {},
    element("span", {}, element("code", {}, rule), element("small", {}, `fired: ${fired}`)),
    element("button", { type: "button", ariaLabel: `Remove ${rule}`, onclick: () => change("DELETE", `/${id}`) }, "Remove")));
  const counted = [...Object.entries(current.counts), ...Object.entries(current.statuses)].filter(([, count]) => count > 0);
  byId("counts").textContent = counted.map((each) => each.join(": ")).join(", ") || "No request yet.";
  await showRequests();
}

async function showRequests() {
  const asked = lane;
  const { entries } = await send("GET", `lanes/${lane}/journal?after=${last}&limit=1000`);
  if (asked !== lane) return;
  const table = byId("requests").tBodies[0];
  for (const { number, method, path, status, faults, unexpected } of entries) {
    if (number <= last) continue; // two of these may be under way
    last = number;
    const marks = [...(unexpected ? [`unexpected: ${unexpected}`] : []), ...faults.map((fault) => `fault: ${fault}`)];
    const row = element("tr", { className: marks.length ? "marked" : "" },
      element("td", {}, number),
      element("td", {}, `${method} ${path}`, ...marks.map((mark) => element("small", {}, mark))),
      element("td", {}, status));
    table.prepend(row);
  }
  while (table.rows.length > MOST_ROWS) table.lastElementChild.remove();
}

function pick(name) {
  lane = name;
  last = 0;
  byId("requests").tBodies[0].replaceChildren();
}

async function change(method, path, body) {
  byId("fault-problem").textContent = "";
  try {
    await send(method, `lanes/${lane}/faults${path}`, body);
    if (method === "POST") byId("fault").value = "";
    await refresh();
  } catch (error) {
    byId("fault-problem").textContent = words(error);
  }
}

function connect(given) {
  token = given;
  poll(++polling);
}

async function poll(number) {
  const connection = byId("connection");
  try {
    await refresh();
    if (number !== polling) return;
    sessionStorage.setItem(TOKEN_KEY, token);
    connection.textContent = "live";
  } catch (error) {
    if (number !== polling) return;
    connection.textContent = words(error);
    if (error.status === 401) return signIn(error.message);
  }
  byId("sign-in").hidden = true;
  byId("tools").hidden = false;
  setTimeout(() => number === polling && poll(number), POLL_MS);
}

function signIn(problem) {
  sessionStorage.removeItem(TOKEN_KEY);
  byId("connection").textContent = "not connected";
  byId("tools").hidden = true;
  byId("sign-in").hidden = false;
  byId("sign-in-problem").textContent = problem;
  byId("token").focus();
}

function on(id, event, action) {
  byId(id).addEventListener(event, (happened) => {
    happened.preventDefault();
    action();
  });
}

on("sign-in", "submit", () => connect(byId("token").value.trim()));
on("lane", "change", () => pick(byId("lane").value));
on("fault-form", "submit", () => change("POST", "", { faults: [byId("fault").value] }));

// The token leaves the address bar at once, so that no copy, bookmark or picture of it holds it.
function takeToken() {
  const given = location.hash.slice(1);
  if (given) history.replaceState(null, "", location.pathname);
  return given;
}

addEventListener("hashchange", () => connect(takeToken()));
const given = takeToken() || sessionStorage.getItem(TOKEN_KEY);
if (given) connect(given);
else signIn("");
