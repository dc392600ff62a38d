// Asks the admin interface, with the token in a header that no other site can make a browser send.

let token = "";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function useToken(given) {
  token = given;
}

// Numbers that a double cannot hold become text, digit by digit as they were sent.
function readJson(text) {
  return JSON.parse(text, (key, value, context) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) && context ? context.source : value);
}

// A body is JSON as text, or a value.
export async function ask(method, path, body) {
  const options = { method, headers: { authorization: `Bearer ${token}` }, cache: "no-store" };
  if (body !== undefined) options.body = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(path, options);
  const answer = readJson(await response.text());
  if (!response.ok) throw new Refused(response.status, answer.error.message);
  return answer;
}

// An id as JSON: digits go through as they are, however many.
export function digits(text) {
  const id = text.trim();
  if (!/^[0-9]+$/.test(id)) throw new Refused(400, `An id is digits only, not “${id}”.`);
  return id;
}
