// The views: each fills a place, and gives a function that brings it up to date and says after how many seconds again;
// 0 for a view that waits for the person. The function is told whether the page calls it by itself.
import { act, ask, enter, go, h, leave, svg } from "/console.js";

// MARK: Figures

const count = (value) => value === null || value === undefined ? "–"
  : value >= 1e6 ? (value / 1e6).toFixed(1) + " M" : value >= 1e4 ? (value / 1e3).toFixed(1) + " k" : String(Math.round(value));
const rate = (value) => value === null || value === undefined ? "–"
  : value >= 100 ? Math.round(value) + "/s" : value >= 0.05 || value === 0 ? value.toFixed(1) + "/s" : "<0.1/s";
const seconds = (value) => {
  if (value === null || value === undefined) return "–";
  if (value < 60) return value.toFixed(value < 10 ? 1 : 0) + " s";
  if (value < 3600) return Math.floor(value / 60) + " min " + Math.floor(value % 60) + " s";
  return Math.floor(value / 3600) + " h " + Math.floor(value % 3600 / 60) + " min";
};
const time = (text) => text ? text.replace("T", " ").replace(/\.\d+Z$|Z$/, " UTC") : "–";
/** How long ago, with the time itself for who points at it. */
const ago = (text) => h("time", { datetime: text, title: time(text) }, past(text));
const past = (text) => {
  const age = (Date.now() - Date.parse(text)) / 1000;
  return age < 60 ? "just now" : age < 3600 ? Math.floor(age / 60) + " min ago"
    : age < 86400 ? Math.floor(age / 3600) + " h ago" : Math.floor(age / 86400) + " d ago";
};
// A view that waits for the person stays as it is, but for how long ago something was.
setInterval(() => document.querySelectorAll("time").forEach((mark) => { mark.textContent = past(mark.dateTime); }), 10000);
const badge = (kind, text) => h("span", { class: "state " + kind }, text);
const kinds = { ready: "good", impaired: "warn", away: "bad", unknown: "none" };
const words = { ready: "ready", impaired: "impaired", away: "away", unknown: "not asked" };
const grade = (status) => status === null || status === undefined ? "none"
  : status === "OK" ? "good" : status === "WARN" || status === "REWIND" ? "warn" : "bad";
const fact = (value, text, kind = "", href = null) => {
  const parts = [h("b", { class: kind }, value), h("span", {}, text)];
  return h("li", {}, href ? h("a", { href }, parts) : parts);
};
const sum = (values) => values.reduce((all, value) => all + (value || 0), 0);

function table(caption, heads, rows, empty) {
  if (!rows.length) return h("p", { class: "soft" }, empty);
  return h("div", { class: "scroll" }, h("table", { class: "stack" }, h("caption", { class: "sight" }, caption),
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell, index) => {
      const element = cell instanceof HTMLTableCellElement ? cell : h("td", {}, cell ?? "–");
      element.setAttribute("data-label", heads[index]);
      return element;
    }))))));
}

/** Shows something anew: what was unfolded stays so, and who is there by keyboard stays where they are. */
function renew(place, ...children) {
  const places = () => [...place.querySelectorAll("a, button, summary, input, select, [tabindex]")];
  const index = places().indexOf(document.activeElement);
  const unfolded = [...place.querySelectorAll("details")].map((details) => details.open);
  place.replaceChildren(...children);
  place.querySelectorAll("details").forEach((details, number) => { details.open = unfolded[number] || details.open; });
  if (index >= 0) places()[index]?.focus({ preventScroll: true });
}

function pretty(json) {
  try { return JSON.stringify(JSON.parse(json), null, 2); } catch { return json; }
}

function field(name, text, value, options = {}) {
  return h("label", { class: options.wide ? "wide" : null }, text,
    h("input", { name, value: value || "", maxlength: 500, autocomplete: "off", spellcheck: "false" }));
}

function choice(name, text, values, value) {
  const select = h("select", { name }, values.map(([key, label]) => h("option", { value: key }, label)));
  select.value = value || values[0]?.[0] || "";
  return h("label", {}, text, select);
}

/** A form that goes to a view with what was entered. */
function finder(view, label, ...fields) {
  const form = h("form", { "aria-label": label }, fields, h("button", { type: "submit", class: "main" }, label));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go(view, Object.fromEntries(new FormData(form)));
  });
  return form;
}

// MARK: The picture

function picture(place) {
  const facts = h("ul", { class: "facts" });
  const board = h("div", { class: "picture" });
  const notes = h("div", {});
  place.append(h("h2", {}, "The suite now"), facts, board, notes);
  let last = null;
  const redraw = () => { if (last && board.isConnected) pipes(board, last); };
  new ResizeObserver(redraw).observe(board);
  return async (isAutomatic) => {
    const now = last = await ask("/api/overview", {}, isAutomatic);
    const focused = board.contains(document.activeElement) ? document.activeElement.id : null;
    const readers = now.topics.flatMap((topic) => topic.readers);
    const oldest = Math.max(0, ...readers.map((reader) => reader.seconds || 0));
    const dead = sum(now.services.map((service) => service.deadCount));
    const circuit = sum(now.services.map((service) => service.circuitCount));
    const devices = now.services.map((service) => service.devices).filter((value) => value !== null && value !== undefined);
    const unwell = now.services.filter((service) => service.state === "away" || service.state === "impaired").length;
    renew(facts,
      fact(unwell ? String(unwell) : "none", "services unwell", unwell ? "bad" : "good"),
      fact(count(sum(readers.map((reader) => reader.lag))), "messages wait"),
      fact(seconds(oldest), "the oldest waits"),
      fact(rate(sum(now.topics.map((topic) => topic.comes))), "messages come"),
      fact(devices.length ? count(sum(devices)) : "–", "devices connected"),
      fact(count(now.relay.positionCount), "changes to publish"),
      fact(count(dead), dead === 1 ? "dead key" : "dead keys", dead ? "bad" : "", dead ? "#parked?state=dead" : null),
      fact(count(circuit), "keys wait for a back end", circuit ? "warn" : "", circuit ? "#environments" : null));
    boxes(board, now);
    pipes(board, now);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    renew(notes,
      h("p", { class: "soft" }, "Seen " + (now.at ? time(now.at) : "not yet") + ". "
        + (now.areServicesAsked ? "" : "Health is told by what groups read: console.services is not set.")),
      ...Object.entries(now.problems).map(([what, why]) => h("p", { class: "bad wrap" }, what + ": " + why)),
      h("details", {}, h("summary", {}, "As a table"), table("Groups and topics",
        ["Topic", "Group", "Lag", "Oldest", "Comes", "Goes", "Over in", "Status"],
        now.topics.flatMap((topic) => topic.readers.map((reader) => [topic.name, reader.group, count(reader.lag),
          seconds(reader.seconds), rate(reader.comes), rate(reader.goes), seconds(reader.closesSeconds),
          reader.status || "–"])), "Nobody reads yet.")));
    return 5;
  };
}

function serviceBox(service) {
  const marks = [];
  if (service.deadCount) marks.push(h("a", { href: "#parked?state=dead&group=" + encodeURIComponent(service.name),
    id: "dead-" + service.name, class: "bad" }, count(service.deadCount) + " dead"));
  if (service.circuitCount) marks.push(h("span", { class: "warn" }, count(service.circuitCount) + " wait for a back end"));
  if (service.waitingCount) marks.push(h("span", {}, count(service.waitingCount) + " parked"));
  if (service.devices !== null && service.devices !== undefined) marks.push(h("span", {}, count(service.devices) + " devices"));
  if (service.callsInFlight) marks.push(h("span", {}, count(service.callsInFlight) + " calls under way"));
  if (service.instanceCount > 1) marks.push(h("span", {}, service.instanceCount + " instances"));
  return h("article", { class: "card box " + kinds[service.state], "data-service": service.name },
    h("div", {}, h("h3", {}, service.name), badge(kinds[service.state], words[service.state])),
    service.reason ? h("p", { class: "soft wrap" }, service.reason) : null,
    h("p", { class: "soft legend" }, marks.length ? marks : service.topics.length ? "reads " + service.topics.join(", ")
      : "works on " + service.sources.join(", ").replaceAll("`", "")));
}

function boxes(board, now) {
  const fed = new Set(now.services.filter((service) => service.topics.length).map((service) => service.name));
  const column = (title, ...children) => h("div", { class: "column" }, h("h3", {}, title), ...children);
  const others = [...new Set(now.topics.flatMap((topic) => topic.readers).filter((reader) => !reader.isOurs)
    .map((reader) => reader.group))].slice(0, 50);
  board.replaceChildren(svg("svg", { "aria-hidden": "true" }),
    column("Devices and PostgreSQL", ...now.services.filter((service) => !fed.has(service.name)).map(serviceBox)),
    column("Topics", ...now.topics.map((topic) => {
      const worst = topic.readers.map((reader) => grade(reader.status));
      const kind = worst.includes("bad") ? "bad" : worst.includes("warn") ? "warn" : worst.includes("good") ? "good" : "none";
      return h("article", { class: "card box " + kind, "data-topic": topic.name },
        h("div", {}, h("h3", {}, topic.name), h("span", { class: "soft number" }, rate(topic.comes))),
        h("ul", { class: "reads" }, topic.readers.map((reader) => h("li", {}, reader.group + ": " + count(reader.lag)
          + (reader.lag ? " wait, " + seconds(reader.seconds) : " wait")))));
    })),
    column("Services", ...now.services.filter((service) => fed.has(service.name)).map(serviceBox),
      ...others.map((group) => h("article", { class: "card box", "data-service": group },
        h("div", {}, h("h3", {}, group), badge("none", "of others"))))));
}

function pipes(board, now) {
  const drawing = board.querySelector("svg");
  if (!drawing || getComputedStyle(drawing).display === "none") return;
  const frame = board.getBoundingClientRect();
  const find = (name, value) => board.querySelector(`[data-${name}="${CSS.escape(value)}"]`)?.getBoundingClientRect();
  const parts = [];
  const draw = (from, to, flow, kind, text) => {
    if (!from || !to) return;
    const [x1, y1] = [from.right - frame.left, from.top + from.height / 2 - frame.top];
    const [x2, y2] = [to.left - frame.left, to.top + to.height / 2 - frame.top];
    const middle = (x1 + x2) / 2;
    parts.push(svg("path", { class: "pipe " + kind, d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`,
      "stroke-width": Math.min(12, 2 + 2 * Math.log10(1 + (flow || 0))) }));
    if (text) parts.push(svg("text", { class: "pipe-lag", x: x2 - 8, y: y2 - 6, "text-anchor": "end" }, text));
  };
  const relay = find("service", "change-relay");
  for (const topic of now.topics) {
    const box = find("topic", topic.name);
    if (topic.isOurs) draw(relay, box, topic.comes, "none", "");
    for (const reader of topic.readers) {
      draw(box, find("service", reader.group), reader.goes, grade(reader.status), reader.lag ? count(reader.lag) : "");
    }
  }
  drawing.replaceChildren(...parts);
}

// MARK: Charts

const width = 300, height = 70;

function curve(values, top) {
  let path = "", isOpen = false;
  values.forEach((value, index) => {
    if (value === null) { isOpen = false; return; }
    const x = index / Math.max(1, values.length - 1) * width;
    path += `${isOpen ? "L" : "M"}${x.toFixed(1)} ${(height - value / top * (height - 14)).toFixed(1)}`;
    isOpen = true;
  });
  return path;
}

/** The same down to the axis: each run of known values is an area of its own. */
function area(values, top) {
  return curve(values, top).split("M").filter(Boolean).map((run) => {
    const first = run.split(/[ L]/)[0], end = run.split("L").pop().split(" ")[0];
    return `M${run}L${end} ${height}L${first} ${height}Z`;
  }).join("");
}

function chartCard(chart) {
  const paths = { lag: svg("path", { class: "lag" }), in: svg("path", { class: "in" }), out: svg("path", { class: "out" }) };
  const labels = [svg("text", { x: 2, y: 9 }), svg("text", { x: 2, y: 9 })];
  const frame = (label, ...parts) => svg("svg", { viewBox: `0 0 ${width} ${height + 14}`, role: "img", "aria-label": label },
    svg("line", { class: "axis", x1: 0, x2: width, y1: height, y2: height }), ...parts,
    svg("text", { x: 0, y: height + 12 }, "1 h ago"), svg("text", { x: width, y: height + 12, "text-anchor": "end" }, "now"));
  const name = chart.topic + ", read by " + chart.group;
  const drawings = [frame("Lag of " + name, paths.lag, labels[0]),
    frame("Throughput of " + name, paths.in, paths.out, labels[1])];
  const legend = h("p", { class: "legend" });
  const body = h("div", {});
  const details = h("details", {}, h("summary", {}, "As a table"), body);
  const element = h("section", { class: "card chart", "data-chart": chart.topic + " " + chart.group },
    h("h3", {}, chart.topic), h("p", { class: "soft wrap" }, "read by " + chart.group), drawings[0], drawings[1], legend, details);
  let current = chart;
  const fill = () => {
    if (!details.open) { body.replaceChildren(); return; }
    const step = Math.ceil(current.lag.length / 12), rows = [];
    for (let index = current.lag.length - 1; index >= 0; index -= step) {
      rows.push([Math.round((current.lag.length - 1 - index) * 60 / current.lag.length) + " min ago", count(current.lag[index]),
        seconds(current.seconds[index]), rate(current.comes[index]), rate(current.goes[index])]);
    }
    body.replaceChildren(table(name, ["When", "Lag", "Oldest", "Comes", "Goes"], rows, ""));
  };
  details.addEventListener("toggle", fill);
  const update = (next) => {
    current = next;
    const most = Math.max(1, ...next.lag), fastest = Math.max(0.1, ...next.comes, ...next.goes);
    paths.lag.setAttribute("d", area(next.lag, most));
    paths.in.setAttribute("d", curve(next.comes, fastest));
    paths.out.setAttribute("d", curve(next.goes, fastest));
    labels[0].textContent = "lag, up to " + count(Math.max(0, ...next.lag));
    labels[1].textContent = "up to " + rate(fastest);
    const end = next.lag.length - 1;
    legend.replaceChildren(h("i", {}, "lag " + count(next.lag[end])), h("i", {}, "oldest " + seconds(next.seconds[end])),
      h("i", { class: "in" }, "┄ comes " + rate(next.comes[end])), h("i", { class: "out" }, "─ goes " + rate(next.goes[end])));
    fill();
  };
  return { element, update };
}

function charts(place, query) {
  const cards = new Map();
  const grid = h("div", { class: "charts" });
  const pages = h("div", { class: "buttons" });
  const note = h("p", { class: "soft", role: "status" });
  const offset = Number(query.get("offset")) || 0, filter = query.get("filter") || "";
  place.append(h("h2", {}, "The last hour"),
    finder("charts", "Find", field("filter", "Topic or group", filter)), note, grid, pages);
  return async (isAutomatic) => {
    const found = await ask("/api/charts", { filter, offset: offset || "" }, isAutomatic);
    const seen = new Set();
    for (const chart of found.charts) {
      const key = chart.topic + " " + chart.group;
      seen.add(key);
      if (!cards.has(key)) {
        cards.set(key, chartCard(chart));
        grid.append(cards.get(key).element);
      }
      cards.get(key).update(chart);
    }
    for (const [key, card] of cards) {
      if (seen.has(key)) continue;
      card.element.remove();
      cards.delete(key);
    }
    note.textContent = (found.total ? `${found.charts.length} of ${found.total}, by topic` : "Nothing was seen yet.")
      + (found.omitted ? `; ${found.omitted} more have no history` : "");
    pages.replaceChildren(
      ...(offset ? [h("button", { click: () => go("charts", { filter, offset: Math.max(0, offset - 24) || "" }) }, "Back")] : []),
      ...(offset + 24 < found.total ? [h("button", { click: () => go("charts", { filter, offset: offset + 24 }) }, "More")] : []));
    return 10;
  };
}

// MARK: Parked keys

const states = { dead: ["bad", "dead"], circuit: ["warn", "back end away"], waiting: ["none", "waiting"] };
const meanings = { dead: "It waits for you: it is tried again only when its object changes, or something that it depends on, or when its topic is published again.",
  circuit: "Its back end does not answer. It comes back by itself when that does.",
  waiting: "It comes back by itself; one that fails too often is dead." };

function parked(place, query) {
  const filters = Object.fromEntries(["group", "environment", "reason", "key", "state"].map((name) => [name, query.get(name) || ""]));
  const list = h("div", {});
  const notice = h("p", { role: "status", id: "notice", tabindex: "-1" });
  const more = h("div", { class: "buttons" });
  place.append(h("h2", {}, "Parked keys"),
    h("p", { class: "soft" }, "A key is one object. It is parked when its newest change cannot be handled now; all others flow on. "
      + "A dead one waits for you: open it, mend what its reason says, and try it again."),
    finder("parked", "Find", choice("state", "State", [["", "all"], ["dead", "dead"], ["waiting", "come back by themselves"]], filters.state),
      field("group", "Service (group)", filters.group), field("environment", "Environment", filters.environment),
      field("reason", "Reason has", filters.reason), field("key", "Key", filters.key)), notice, list, more);
  const rows = [];
  const load = async (after) => {
    const found = await ask("/api/parked", { ...filters, after: after ? JSON.stringify(after) : "" });
    if (!after) rows.length = 0;
    rows.push(...found.keys);
    list.replaceChildren(table("Parked keys", ["State", "Service", "Environment", "What", "Reason", "Since", ""],
      rows.map((row) => [badge(...states[row.state]), h("td", { class: "nowrap" }, row.name.group),
        h("td", { class: "nowrap" }, row.environment || "–"), what(row), h("td", { class: "strong" }, row.reason),
        h("td", { class: "nowrap" }, ago(row.parkedAt)),
        h("td", { class: "act" }, h("button", { "data-key": row.name.key, "aria-label": "Open " + row.name.key,
          click: () => {
            // One that is being asked for is no dialog yet, and keeps nothing from being clicked.
            if (document.querySelector("dialog")) return;
            enter(address(row.name));
            open(row.name);
          } }, "Open"))]),
      Object.values(filters).some(Boolean) ? "No key is parked that fits." : "No key is parked: everything is handled."));
    more.replaceChildren(...(found.next ? [h("button", { click: () => load(found.next) }, "More")] : []));
  };
  // The address says which one is open: it can be passed on, and the browser's Back closes it, or comes back to it.
  const address = (name) => "#parked?" + new URLSearchParams(
    Object.entries({ ...filters, open: name ? JSON.stringify(name) : "" }).filter(([, value]) => value));
  const open = (name) => parkedDialog(name, () => leave(address()), async (text, row) => {
    notice.className = "";
    notice.textContent = text;
    await load();
    // The row may be gone: whoever works by keyboard goes on at what came of it.
    notice.focus();
    if (!row) return;
    try {
      const [kind, ...told] = await outcome(row);
      notice.className = kind;
      notice.replaceChildren(whose(row) + ": ", ...told);
    } catch (error) {
      notice.textContent = "It is tried again; what came of it is not known: " + error.message;
    }
    if (list.isConnected) await load();
  });
  return async () => {
    await load();
    const name = named(query.get("open"));
    if (name) await open(name);
    return 0;
  };
}

/** The key that an address names; `null` when it names none. */
function named(text) {
  try {
    const { group, environment, key } = JSON.parse(text);
    return typeof group === "string" && Number.isInteger(environment) && typeof key === "string" ? { group, environment, key } : null;
  } catch { return null; }
}

/** What came of a key that was tried again: it is looked at for half a minute, whatever the filters above it are. */
async function outcome(row) {
  const life = new URLSearchParams({ environment: row.environment || "", id: row.subject });
  for (let look = 0; look < 60; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const now = await ask("/api/parked/outcome", { ...row.name, subject: row.subject }, true);
    const line = h("a", { href: "#trace?" + life }, "Timeline");
    if (now.state === "handled") {
      return [/status (invalid|rejected)/.test(now.detail) ? "warn" : "good",
        "it is handled, and not parked any more: " + now.detail + ". ", line];
    }
    if (now.state === "parked again") return ["bad", "it is parked again: " + now.detail + ". ", line];
  }
  return ["", "it is on its way still: look at it again in a while."];
}

/** An id in few characters. */
const short = (id) => id.length > 14 ? id.slice(0, 8) + "…" + id.slice(-4) : id;

/** The object that a key stands for, in few words. */
function whose(row) {
  const parts = row.subject.split("/");
  return parts.length < 3 ? row.name.key : parts[parts.length - 2] + " " + short(parts[parts.length - 1]);
}

/** The object that a key stands for, and whose it is. */
function what(row) {
  const parts = row.subject.split("/");
  if (row.name.environment === 0 || parts.length < 3) {
    return h("div", {}, "a message that could not be read", h("div", { class: "soft wrap" }, row.name.key));
  }
  const id = parts[parts.length - 1];
  return h("div", {}, parts[parts.length - 2] + " ", h("span", { class: "soft nowrap", title: id }, short(id)),
    h("div", { class: "soft wrap" }, parts.slice(0, -2).join("/")));
}

/**
 * Shows a key with what can be done about it.
 *
 * `closed` is called when it is closed, and `done` when something was done: with what is said of it, and the key if it
 * is tried again.
 */
async function parkedDialog(name, closed, done) {
  const dialog = h("dialog", { "aria-labelledby": "key-title" });
  document.body.append(dialog);
  const close = () => dialog.close();
  dialog.addEventListener("close", () => {
    // Another view has the address by then.
    if (dialog.isConnected) closed();
    dialog.remove();
  });
  const problem = h("p", { class: "bad", role: "alert" });
  const confirm = h("div", {});
  const ready = (title, text, path, verb, after, isFinal = false) => {
    const yes = h("button", { class: isFinal ? "main final" : "main", id: "confirm", click: async () => {
      yes.disabled = true;
      try {
        await act(path, { ...name, version: found.key.version });
        close();
        await done(after, path === "/api/parked/retry" ? found.key : null);
      } catch (error) {
        confirm.replaceChildren();
        if (error.status !== 409) { problem.textContent = error.message; return; }
        // It is not what was seen any more: it is shown as it is now, and nothing was done.
        close();
        await done(error.message);
      }
    } }, verb);
    const asker = document.activeElement;
    const no = h("button", { click: () => { confirm.replaceChildren(); asker.focus(); } }, "No");
    confirm.replaceChildren(h("div", { class: "confirm" + (isFinal ? " final" : ""), role: "group", "aria-label": title },
      h("p", {}, h("b", {}, title)), h("p", {}, text), h("div", { class: "buttons" }, yes, no)));
    (isFinal ? no : yes).focus();
    confirm.scrollIntoView({ block: "nearest" });
  };
  let found;
  try {
    found = await ask("/api/parked/key", name);
    // Another view is shown by then.
    if (!dialog.isConnected) return;
  } catch (error) {
    if (!dialog.isConnected) return;
    dialog.remove();
    closed();
    await done(error.status === 404 ? "The key is not parked any more." : error.message);
    return;
  }
  const lines = found.lines.filter((line) => !["do", "reason", "state"].includes(line.name));
  const commands = found.lines.filter((line) => line.name === "do").map((line) => line.value);
  const reason = found.lines.find((line) => line.name === "reason")?.value ?? "";
  const isReadable = name.environment !== 0;
  dialog.append(h("div", { class: "title" }, h("h2", { id: "key-title", tabindex: "-1", autofocus: true }, "A parked key"),
      badge(...states[found.key.state])),
    h("p", { class: "reason wrap", "data-line": "reason" }, reason),
    h("p", { class: "soft" }, meanings[found.key.state]),
    commands.length ? h("details", { open: found.key.state === "dead" }, h("summary", {}, "What to do, at a terminal"),
      h("ul", { class: "wrap" }, commands.map((text) => h("li", { "data-line": "do" }, text)))) : null,
    h("dl", {}, lines.flatMap((line) => [h("dt", {}, line.name), h("dd", { "data-line": line.name }, line.value)])),
    h("h3", {}, found.payload ? "What it holds now, at position " + found.position : found.position ? "It is deleted" : "Its object is not there"),
    found.payload ? h("pre", { id: "payload", tabindex: "0" }, pretty(found.payload)) : "",
    h("p", { class: "soft" }, isReadable
      ? "Mend what the reason says, then try it again: it is decided anew from what is stored now. Discarding forgets the key; the object stays as it is, and a newer event of it is handled as always."
      : "The message could not be read, so it cannot be tried again: discard it when you know what it was."),
    problem, h("div", { class: "buttons" },
      isReadable ? h("button", { class: "main", id: "retry", click: () => ready("Try it again now?",
        `${name.group} takes it up with all its attempts.`, "/api/parked/retry", "Yes, try again", "It is tried again.") }, "Try again") : null,
      h("button", { class: "danger", id: "discard", click: () => ready("Discard the key?",
        "It is forgotten for good. Nothing is sent, and the object stays as it is.", "/api/parked/discard", "Yes, discard", "It is discarded.", true) }, "Discard"),
      found.object && found.key.environment ? h("button", { click: () => go("trace", { environment: found.key.environment, id: found.object }) }, "Timeline") : null,
      h("button", { id: "close", click: close }, "Close")), confirm);
  dialog.showModal();
}

// MARK: Environments

/** Before numbers of which only so many are counted. */
const least = (row) => row.isMoreParked ? "≥ " : "";

/** What a move of an environment to another installation, or from it, means for it. */
const moves = { copying: "is being copied away", held: "held for its move: nobody can write it", left: "has moved away",
  arriving: "arrives", whole: "has arrived, and not begun" };

function environments(place, query) {
  const list = h("div", {}), more = h("div", { class: "buttons" }), rows = [];
  place.append(h("h2", {}, "Environments and back ends"),
    h("p", { class: "soft" }, "An environment is one customer. While the breaker of its back end is open, that is not called, and keys wait for it."),
    list, more);
  const load = async (after, isAutomatic) => {
    const found = await ask("/api/environments", { after }, isAutomatic);
    if (!after) rows.length = 0;
    rows.push(...found.environments);
    renew(list, table("Environments", ["Environment", "Back end", "Breaker", "Dead", "Other parked", "Devices", "To publish", ""],
      rows.map((row) => [row.move ? h("div", {}, row.name, " ", badge(row.move === "held" ? "bad" : "warn", moves[row.move])) : row.name,
        row.backend ? h("div", {}, row.backend, h("div", { class: "soft wrap" }, row.backendURL || "")) : "none",
        !row.backend ? badge("none", "none") : row.circuitCount ? badge("bad", "open") : badge("good", "closed"),
        h("td", { class: row.deadCount ? "bad" : "" }, row.deadCount ? h("a", { class: "bad", href: "#parked?state=dead&environment="
          + encodeURIComponent(row.name) }, least(row) + count(row.deadCount)) : "0"),
        least(row) + count(row.circuitCount + row.waitingCount),
        h("div", {}, count(row.deviceCount), h("div", { class: "soft" }, count(row.renewedCount) + " in the last hour")),
        count(row.position - row.published),
        h("a", { href: "#realms?environment=" + encodeURIComponent(row.name) }, "Realms")]),
      "There is no environment yet."));
    more.replaceChildren(...(found.next ? [h("button", { click: () => load(found.next) }, "More")] : []));
  };
  const first = query.get("after") || "";
  return async (isAutomatic) => {
    if (rows.length > 50) return 0;
    await load(first, isAutomatic);
    return 10;
  };
}

// MARK: Realms

async function environmentField(value) {
  const { environments } = await ask("/api/environments");
  const names = environments.map((environment) => environment.name);
  if (value && !names.includes(value)) names.push(value);
  return choice("environment", "Environment", names.map((name) => [name, name]), value || names[0]);
}

/** Realms that were listed last: choosing one of them is no second look at the list. */
let listed = { name: "", paths: [], next: null };

function realms(place, query) {
  const environment = query.get("environment") || "", prefix = query.get("prefix") || "", path = query.get("path") || "";
  return async () => {
    const select = await environmentField(environment);
    const list = h("ul", { class: "list", "aria-label": "Realms" }), detail = h("div", { id: "realm" }), more = h("div", { class: "buttons" });
    place.replaceChildren(h("h2", {}, "Realms"),
      h("p", { class: "soft" }, "A realm is what devices open and sync as one. It tells of people: each page of realms, objects and people that you look at is in the audit log."),
      finder("realms", "Find", select, field("prefix", "Path begins with", prefix)),
      h("div", { class: path ? "split chosen" : "split" }, h("div", {}, list, more), detail));
    const chosen = select.querySelector("select").value;
    if (!chosen) { detail.replaceChildren(h("p", { class: "soft" }, "There is no environment yet.")); return 0; }
    const name = JSON.stringify([chosen, prefix]);
    const load = async (after) => {
      const found = await ask("/api/realms", { environment: chosen, prefix, after });
      listed = { name, paths: after ? listed.paths.concat(found.paths) : found.paths, next: found.next };
      show(found, after);
    };
    const show = (found, after) => {
      list.append(...found.paths.map((name) => h("li", {}, h("button", { "aria-pressed": String(name === path),
        click: () => go("realms", { environment: chosen, prefix, path: name }) }, name))));
      if (!found.paths.length && !after) list.append(h("li", { class: "soft" }, "No realm's path begins so."));
      more.replaceChildren(...(found.next ? [h("button", { click: () => load(found.next) }, "More")] : []));
    };
    if (path && listed.name === name) show(listed);
    else await load();
    if (path) await realm(detail, chosen, path);
    else detail.replaceChildren(h("p", { class: "soft" }, "Choose a realm."));
    return 0;
  };
}

async function realm(detail, environment, path) {
  const counts = await ask("/api/realm", { environment, path });
  const objects = h("div", { id: "objects" }), people = h("div", {});
  const button = h("button", { click: () => loadPeople() }, "Who may open it");
  const loadPeople = async (after) => {
    const found = await ask("/api/realm/people", { environment, path, after });
    if (!after) people.replaceChildren();
    people.append(table("Who may open it", ["Person", "Role", "Why", "Login"], found.people.map((person) => [person.email, person.role,
      person.why, person.hasLoggedIn ? "yes" : "never"]), after ? "" : "Nobody of the first people may open it."));
    button.disabled = true;
    people.querySelector("button.more")?.remove();
    if (found.next) people.append(h("button", { class: "more", click: () => loadPeople(found.next) }, "More people"));
  };
  const loadObjects = async (kind, after) => {
    const found = await ask("/api/realm/objects", { environment, path, kind, after });
    if (!after) objects.replaceChildren(h("h3", { class: "above" }, kind));
    objects.querySelector("button.more")?.remove();
    objects.append(...found.objects.map((object) => h("details", { "data-object": object.id },
      h("summary", {}, object.id + ", position " + object.position),
      h("pre", { tabindex: "0" }, pretty(object.fields)),
      h("p", {}, h("a", { href: "#trace?environment=" + encodeURIComponent(environment) + "&id=" + object.id }, "Timeline")))));
    if (!found.objects.length && !after) objects.append(h("p", { class: "soft" }, "None that is not deleted."));
    if (found.next) objects.append(h("button", { class: "more", click: () => loadObjects(kind, found.next) }, "More"));
  };
  detail.replaceChildren(h("h3", {}, path),
    h("div", { class: "gap" }), table("Kinds", ["Kind", "Objects", "Deleted", "Last position", ""], counts.map((row) => [row.kind, count(row.count), count(row.deleted),
      String(row.lastPosition), h("button", { "data-kind": row.kind, click: () => loadObjects(row.kind) }, "Show")]), "It is empty."),
    h("div", { class: "buttons" }, button), people, objects);
}

// MARK: Timeline

function trace(place, query) {
  const environment = query.get("environment") || "", id = (query.get("id") || "").trim().split("/").pop();
  return async () => {
    const found = h("div", { id: "stories" });
    place.replaceChildren(h("h2", {}, "The life of an object"),
      finder("trace", "Draw", await environmentField(environment), field("id", "Id of an entry, task, share, notice …, or a parked key", id, { wide: true })), found);
    if (!id || !environment) { found.replaceChildren(h("p", { class: "soft" }, "Enter an id, or follow one from a realm or a parked key.")); return 0; }
    const stories = await ask("/api/trace", { environment, id });
    found.replaceChildren(...(stories.length ? stories.map(story) : [h("p", { class: "soft" }, "Nothing is known of it in this environment.")]));
    return 0;
  };
}

/** What went wrong; what an administrator did about it has its record in the audit log, and is none of it. */
const isBad = (hop) => hop.service !== "audit"
  && (["parked", "dead", "refused", "notProcessed", "unknown", "unanswered", "ambiguous", "failed"].includes(hop.event)
    || hop.event === "status" && /^(invalid|rejected)/.test(hop.text));

/** Places from left to right in a lane, none nearer to the one before than a dot is wide. */
function spread(places, left, right) {
  const width = Math.min(13, (right - left) / Math.max(1, places.length - 1));
  const spread = places.reduce((all, place) => [...all, Math.max(place, all.length ? all[all.length - 1] + width : left)], []);
  for (let index = spread.length - 1, end = right; index >= 0; index -= 1, end -= width) spread[index] = Math.min(spread[index], end);
  return spread;
}

function story(found) {
  const timed = found.hops.filter((hop) => hop.at);
  const moment = (hop) => Date.parse(hop.at);
  const [first, last] = [Math.min(...timed.map(moment)), Math.max(...timed.map(moment))];
  const lanes = [...new Set(timed.map((hop) => hop.service))];
  const left = 150, right = 780, line = 26;
  const x = (hop) => last > first ? left + (moment(hop) - first) / (last - first) * (right - left) : left;
  const dots = (hops) => { const places = spread(hops.map(x), left, right); return hops.map((hop, index) => [hop, places[index]]); };
  const drawing = svg("svg", { class: "lanes", viewBox: `0 0 800 ${lanes.length * line + 24}`, role: "img",
    "aria-label": "Timeline of " + found.subject },
    ...lanes.flatMap((lane, index) => [
      svg("text", { x: 0, y: index * line + 20 }, lane.length > 21 ? lane.slice(0, 20) + "…" : lane),
      svg("line", { x1: left, x2: right, y1: index * line + 16, y2: index * line + 16 }),
      ...dots(timed.filter((hop) => hop.service === lane)).map(([hop, place]) => svg("circle", { class: isBad(hop) ? "bad" : "", r: 6,
        cx: place.toFixed(1), cy: index * line + 16 }, svg("title", {}, hop.text)))]),
    svg("text", { x: left, y: lanes.length * line + 20 }, timed.length ? time(timed[0].at) : ""),
    svg("text", { x: right, y: lanes.length * line + 20, "text-anchor": "end" }, last > first ? "+ " + seconds((last - first) / 1000) : ""));
  let before = null;
  const steps = found.hops.map((hop) => {
    const wait = hop.at && before ? (Date.parse(hop.at) - before) / 1000 : null;
    if (hop.at) before = Date.parse(hop.at);
    const facts = [hop.position ? "position " + hop.position : "", hop.topic ? hop.topic + "/" + (hop.partition ?? "") + (hop.offset !== undefined
      && hop.offset !== null ? " offset " + hop.offset : "") : "", hop.attempt ? "attempt " + hop.attempt : "", hop.traceparent || ""].filter(Boolean);
    return h("li", { class: isBad(hop) ? "bad" : "" },
      h("div", { class: "soft" }, (hop.at ? time(hop.at) : "time unknown") + (wait !== null ? ", + " + seconds(wait) : "")),
      h("b", { class: "wrap" }, hop.service + " "), h("span", { class: "wrap" }, hop.text),
      facts.length ? h("div", { class: "soft wrap" }, facts.join(" · ")) : null);
  });
  return h("section", { class: "card" }, h("h3", {}, found.subject), timed.length ? drawing : "", h("ol", { class: "line" }, steps),
    h("div", { class: "soft" }, "What cannot be told:", h("ul", {}, [...found.gaps, "which of Kafka's messages carried it: at a terminal fieldpost trace looks for them"]
      .map((gap) => h("li", {}, gap)))));
}

// MARK: Acts

function acts(place, query) {
  const filters = Object.fromEntries(["action", "actor", "subject", "environment"].map((name) => [name, query.get(name) || ""]));
  const list = h("div", {}), note = h("p", { class: "soft", role: "status" }), more = h("div", { class: "buttons" }), rows = [];
  place.append(h("h2", {}, "Audit log"),
    h("p", { class: "soft" }, "Who did what, and looked at what, the newest first."),
    finder("acts", "Find", field("action", "What begins with", filters.action), field("actor", "Who, exactly", filters.actor),
      field("subject", "Of, exactly", filters.subject), field("environment", "Environment", filters.environment)), list, note, more);
  const load = async (before, isAutomatic) => {
    const found = await ask("/api/audit", { ...filters, before }, isAutomatic);
    if (!before) rows.length = 0;
    rows.push(...found.acts);
    renew(list, table("Audit log", ["When", "Who", "What", "Of", "Environment", "Detail", "From"], rows.map((row) => [
      h("td", { class: "nowrap" }, time(row.time)), row.actor, h("td", { class: "nowrap" }, row.action), row.subject,
      row.environment || "–", row.detail === "{}" ? "–" : row.detail, h("td", { class: "nowrap" }, row.address || "–")]),
      found.since ? "None was found so far." : "Nothing was recorded that fits."));
    note.textContent = found.since ? "Looked at back to " + time(found.since) + "; older records were not looked at yet." : "";
    renew(more, ...(found.next ? [h("button", { click: () => load(found.next) }, found.since ? "Look further back" : "Older")] : []));
  };
  return async (isAutomatic) => {
    if (isAutomatic && rows.length > 50) return 0;
    await load("", isAutomatic);
    return 15;
  };
}

/** Views that wait for the person: they cost much, or leave a record. */
export const manual = new Set(["parked", "realms", "trace"]);

export const views = { picture, charts, parked, environments, realms, trace, acts };
