// The views. Each one fills a container and returns a function that refreshes it and returns the number of seconds
// until the next refresh; 0 for a manual view. The function's parameter is whether the refresh is automatic.
import { fetchJSON, h, navigate, popAddress, postJSON, pushAddress, svg } from "/console.js";

// MARK: Formatting

const count = (value) => value === null || value === undefined ? "–"
  : value >= 1e6 ? (value / 1e6).toFixed(1) + " M" : value >= 1e4 ? (value / 1e3).toFixed(1) + " k" : String(Math.round(value));
const exact = (value) => value === null ? "–" : String(value);
const rate = (value) => value === null || value === undefined ? "–"
  : value >= 100 ? Math.round(value) + "/s" : value >= 0.05 || value === 0 ? value.toFixed(1) + "/s" : "<0.1/s";
const seconds = (value) => {
  if (value === null || value === undefined) return "–";
  if (value < 60) return value.toFixed(value < 10 ? 1 : 0) + " s";
  if (value < 3600) return Math.floor(value / 60) + " min " + Math.floor(value % 60) + " s";
  return Math.floor(value / 3600) + " h " + Math.floor(value % 3600 / 60) + " min";
};
const time = (text) => text ? text.replace("T", " ").replace(/\.\d+Z$|Z$/, " UTC") : "–";
/** A relative time, with the absolute time as tooltip. */
const ago = (text) => h("time", { datetime: text, title: time(text) }, past(text));
const past = (text) => {
  const age = (Date.now() - Date.parse(text)) / 1000;
  return age < 60 ? "just now" : age < 3600 ? Math.floor(age / 60) + " min ago"
    : age < 86400 ? Math.floor(age / 3600) + " h ago" : Math.floor(age / 86400) + " d ago";
};
// Manual views are not refreshed, except for relative times.
setInterval(() => document.querySelectorAll("time").forEach((mark) => { mark.textContent = past(mark.dateTime); }), 10000);
const badge = (kind, text) => h("span", { class: "state " + kind }, text);
const stateClasses = { ready: "good", impaired: "warn", unavailable: "bad", unknown: "none" };
const stateLabels = { ready: "ready", impaired: "impaired", unavailable: "unavailable", unknown: "not polled" };
const statusClass = (status) => status === null || status === undefined ? "none"
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

/** Replaces content; keeps unfolded details and the keyboard focus. */
function update(container, ...children) {
  const focusable = () => [...container.querySelectorAll("a, button, summary, input, select, [tabindex]")];
  const index = focusable().indexOf(document.activeElement);
  const unfolded = [...container.querySelectorAll("details")].map((details) => details.open);
  container.replaceChildren(...children);
  container.querySelectorAll("details").forEach((details, number) => { details.open = unfolded[number] || details.open; });
  if (index >= 0) focusable()[index]?.focus({ preventScroll: true });
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

/** A form that navigates to a view with the entered parameters. */
function searchForm(view, label, ...fields) {
  const form = h("form", { "aria-label": label }, fields, h("button", { type: "submit", class: "main" }, label));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    navigate(view, Object.fromEntries(new FormData(form)));
  });
  return form;
}

// MARK: Overview

function overview(container) {
  const facts = h("ul", { class: "facts" });
  const board = h("div", { class: "overview" });
  const notes = h("div", {});
  container.append(h("h2", {}, "Current state"), facts, board, notes);
  let last = null, backEnds = [], loading = null;
  // They need the database: if it is slow or unavailable, the rest of the view does not wait for them.
  const loadBackEnds = (isAutomatic) => {
    loading ??= fetchJSON("/api/back-ends", {}, isAutomatic).then((result) => { backEnds = result.backEnds; }, () => { backEnds = []; })
      .finally(() => { loading = null; });
    return Promise.race([loading, new Promise((resolve) => setTimeout(resolve, 500))]);
  };
  const redraw = () => { if (last && board.isConnected) drawFlows(board, last, backEnds); };
  new ResizeObserver(redraw).observe(board);
  return async (isAutomatic) => {
    const [now] = await Promise.all([fetchJSON("/api/overview", {}, isAutomatic), loadBackEnds(isAutomatic)]);
    last = now;
    const focused = board.contains(document.activeElement) ? document.activeElement.id : null;
    const readers = now.topics.flatMap((topic) => topic.readers);
    const oldest = Math.max(0, ...readers.map((reader) => reader.seconds || 0));
    const dead = sum(now.services.map((service) => service.deadCount));
    const circuit = sum(now.services.map((service) => service.circuitCount));
    const devices = now.services.map((service) => service.devices).filter((value) => value !== null && value !== undefined);
    const impairedCount = now.services.filter((service) => service.state === "unavailable" || service.state === "impaired").length;
    update(facts,
      fact(impairedCount ? String(impairedCount) : "none", "services impaired", impairedCount ? "bad" : "good"),
      fact(count(sum(readers.map((reader) => reader.lag))), "messages pending"),
      fact(seconds(oldest), "oldest message"),
      fact(rate(sum(now.topics.map((topic) => topic.inRate))), "messages in"),
      fact(devices.length ? count(sum(devices)) : "–", "live devices"),
      fact(count(now.relay.positionCount), "changes to publish"),
      fact(count(dead), dead === 1 ? "dead-lettered key" : "dead-lettered keys", dead ? "bad" : "", dead ? "#deferred?state=dead" : null),
      fact(count(circuit), "keys waiting for a back end", circuit ? "warn" : "", circuit ? "#environments" : null));
    drawServices(board, now, backEnds);
    drawFlows(board, now, backEnds);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    update(notes,
      h("p", { class: "soft" }, "Last collection: " + (now.at ? time(now.at) : "none yet") + ". "
        + (now.areServicesPolled ? "" : "Health is derived from consumer groups: console.services is not set.")),
      ...Object.entries(now.problems).map(([source, reason]) => h("p", { class: "bad wrap" }, source + ": " + reason)),
      h("details", {}, h("summary", {}, "As a table"), table("Groups and topics",
        ["Topic", "Group", "Lag", "Oldest", "In/s", "Out/s", "ETA", "Status"],
        now.topics.flatMap((topic) => topic.readers.map((reader) => [topic.name, reader.group, count(reader.lag),
          seconds(reader.seconds), rate(reader.inRate), rate(reader.outRate), seconds(reader.drainSeconds),
          reader.status || "–"])), "No consumer group yet.")));
    return 5;
  };
}

function serviceBox(service) {
  const marks = [];
  if (service.deadCount) marks.push(h("a", { href: "#deferred?state=dead&group=" + encodeURIComponent(service.name),
    id: "dead-" + service.name, class: "bad", "aria-label": count(service.deadCount) + " dead-lettered keys of " + service.name },
  count(service.deadCount) + " dead"));
  if (service.circuitCount) marks.push(h("span", { class: "warn" }, count(service.circuitCount) + " waiting for a back end"));
  if (service.waitingCount) marks.push(h("span", {}, count(service.waitingCount) + " deferred"));
  if (service.devices !== null && service.devices !== undefined) marks.push(h("span", {}, count(service.devices) + " devices"));
  if (service.callsInFlight) marks.push(h("span", {}, count(service.callsInFlight) + " calls in flight"));
  if (service.instanceCount > 1) marks.push(h("span", {}, service.instanceCount + " instances"));
  return h("article", { class: "card box " + stateClasses[service.state], "data-service": service.name },
    h("div", {}, h("h3", {}, service.name), badge(stateClasses[service.state], stateLabels[service.state])),
    service.reason ? h("p", { class: "soft wrap" }, service.reason) : null,
    h("p", { class: "soft legend" }, marks.length ? marks : service.topics.length ? "consumes " + service.topics.join(", ")
      : "processes " + service.sources.join(", ").replaceAll("`", "")));
}

/** A kind of back end with the state of its circuit breakers, which derives from the keys that wait for it. */
function backEndBox(backEnd) {
  const open = backEnd.openCount ?? null;
  const [kind, label] = open === null ? ["none", "unknown"] : open ? ["bad", count(open) + " open"] : ["good", "closed"];
  return h("article", { class: "card box " + kind, "data-back-end": backEnd.kind },
    h("div", {}, h("h3", {}, h("a", { href: "#environments", id: "back-end-" + backEnd.kind }, backEnd.kind)), badge(kind, label)),
    h("p", { class: "soft legend" }, count(backEnd.environmentCount) + (backEnd.environmentCount === 1 ? " environment" : " environments")),
    h("ul", { class: "reads wrap" }, backEnd.circuits.map((circuit) => h("li", {}, circuit.environment + ": " + count(circuit.keyCount)
      + " waiting in " + circuit.group))));
}

function drawServices(board, now, backEnds) {
  const consumers = new Set(now.services.filter((service) => service.topics.length).map((service) => service.name));
  const column = (title, ...children) => h("div", { class: "column" }, h("h3", {}, title), ...children);
  const others = [...new Set(now.topics.flatMap((topic) => topic.readers).filter((reader) => !reader.isOurs)
    .map((reader) => reader.group))].slice(0, 50);
  board.replaceChildren(svg("svg", { "aria-hidden": "true" }),
    column("Devices and PostgreSQL", ...now.services.filter((service) => !consumers.has(service.name)).map(serviceBox)),
    column("Topics", ...now.topics.map((topic) => {
      const worst = topic.readers.map((reader) => statusClass(reader.status));
      const kind = worst.includes("bad") ? "bad" : worst.includes("warn") ? "warn" : worst.includes("good") ? "good" : "none";
      return h("article", { class: "card box " + kind, "data-topic": topic.name },
        h("div", {}, h("h3", {}, h("a", { href: "#topic?name=" + encodeURIComponent(topic.name), id: "topic-" + topic.name }, topic.name)),
          h("span", { class: "soft number" }, rate(topic.inRate))),
        h("ul", { class: "reads" }, topic.readers.map((reader) => h("li", {}, reader.group + ": " + count(reader.lag)
          + (reader.lag ? " pending, " + seconds(reader.seconds) : " pending")))));
    })),
    column("Services", ...now.services.filter((service) => consumers.has(service.name)).map(serviceBox),
      ...others.map((group) => h("article", { class: "card box", "data-service": group },
        h("div", {}, h("h3", {}, group), badge("none", "external"))))),
    ...(backEnds.length ? [column("Back ends, circuit breakers", ...backEnds.map(backEndBox))] : []));
}

function drawFlows(board, now, backEnds) {
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
    if (topic.isOurs) draw(relay, box, topic.inRate, "none", "");
    for (const reader of topic.readers) {
      draw(box, find("service", reader.group), reader.outRate, statusClass(reader.status), reader.lag ? count(reader.lag) : "");
    }
  }
  for (const backEnd of backEnds) {
    for (const caller of backEnd.callers) {
      const waiting = sum(backEnd.circuits.filter((circuit) => circuit.group === caller).map((circuit) => circuit.keyCount));
      draw(find("service", caller), find("back-end", backEnd.kind), 0, waiting ? "bad" : "none", waiting ? count(waiting) : "");
    }
  }
  drawing.replaceChildren(...parts);
}

// MARK: Topic

/** The partitions of a topic, the members of its consumer groups, and its newest messages. */
function topic(container, query) {
  const name = query.get("name") || "", body = h("div", {}), messages = h("div", { id: "messages" });
  container.append(h("h2", { class: "wrap" }, "Topic " + name), body, messages);
  let hasMessages = false;
  return async (isAutomatic) => {
    const result = await fetchJSON("/api/topic", { name }, isAutomatic);
    const partial = result.isComplete ? "" : " Only partitions with a problem are stored: the cluster has too many.";
    update(body, result.at ? "" : h("p", { class: "bad" }, "The last collection failed, or there was none yet: the state is unknown."),
      table("Consumer groups", ["Group", "Members", "Rebalancing", "Member ids"], result.groups.map((group) => [group.name,
      group.memberCount ?? "not listed", group.isRebalancing ? badge("warn", "yes") : "no", (group.memberIDs || []).join(", ") || "–"]),
      "No consumer group."),
      h("p", { class: "soft above" }, `${result.partitions.length} of ${result.total} partitions of groups.${partial}`),
      table("Partitions", ["Group", "Partition", "First", "Committed", "End", "Lag", "Oldest", "Expired", "Out/s", "Status"],
        result.partitions.map((row) => [row.group, row.partition, row.first, row.committed, row.end, row.lag,
          row.age === null || row.age === undefined ? "–" : (row.isAgeMinimum ? "≥ " : "") + seconds(row.age), row.expired, rate(row.outRate),
          row.status ? badge(statusClass(row.status), row.status) : "–"]), "No partition of a consumer group."));
    // Once: each display of messages writes an audit record.
    if (result.isOurs && !hasMessages) {
      hasMessages = true;
      await topicMessages(messages, name, query.get("environment") || "", query.get("key") || "")
        .catch((error) => messages.replaceChildren(failure(error)));
    }
    return 10;
  };
}

const failure = (error) => h("p", { class: "bad wrap", role: "alert" }, error.message);

async function topicMessages(container, name, environment, key) {
  const list = h("div", {}), heading = h("h3", { tabindex: "-1" }, "Newest messages");
  container.replaceChildren(h("h3", { class: "above" }, "Messages"),
    h("p", { class: "soft" }, "Messages contain personal data: each display is recorded in the audit log."),
    searchForm("topic", "Show messages", h("input", { type: "hidden", name: "name", value: name }), await environmentField(environment),
      field("key", "Id of an object, or empty", key, { wide: true })), list);
  if (!environment) return;
  try {
    const result = await fetchJSON("/api/topic/messages", { name, environment, key });
    list.replaceChildren(heading,
      h("p", { class: "soft" }, `${result.messages.length} messages of ${environment}. The newest ${result.scanned} of ${result.available} messages were scanned.`),
      ...result.messages.map((message) => objectDetails(message, environment,
        `${message.partition}/${message.offset}`, message.at ? "written at " + time(message.at) : "time unknown")));
    reveal(heading);
  } catch (error) {
    list.replaceChildren(failure(error));
  }
}

// MARK: Charts

const width = 300, height = 70;

/** Returns a path with a horizontal line for each known value, as wide as its interval. */
function curve(values, top) {
  let path = "", isOpen = false;
  const x = (index) => (index / values.length * width).toFixed(1);
  values.forEach((value, index) => {
    if (value === null) { isOpen = false; return; }
    path += `${isOpen ? "L" : "M"}${x(index)} ${(height - value / top * (height - 14)).toFixed(1)}H${x(index + 1)}`;
    isOpen = true;
  });
  return path;
}

/** Returns the area under a curve: one closed path for each run of known values. */
const area = (values, top) => curve(values, top).split("M").filter(Boolean)
  .map((run) => `M${run}V${height}H${run.split(" ")[0]}Z`).join("");

/** The interval of a row in a chart's table, between fixed times. */
const rowMilliseconds = 300000;

/** Returns the rows of a chart's table, newest first. Each sums the messages of its points, which never change. */
function chartRows(chart, since, step) {
  const rows = new Map();
  chart.lag.forEach((_, index) => {
    const start = Math.floor((since + index * step * 1000) / rowMilliseconds) * rowMilliseconds;
    rows.set(start, [...(rows.get(start) || []), index]);
  });
  const merged = (values, indices, merge) => {
    const known = indices.map((index) => values[index]).filter((value) => value !== null);
    return known.length ? merge(known) : null;
  };
  const most = (values) => Math.max(...values);
  return [...rows].reverse().map(([start, indices]) => [new Date(start).toLocaleTimeString([], { timeStyle: "short" }),
    count(merged(chart.lag, indices, most)), seconds(merged(chart.seconds, indices, most)),
    exact(merged(chart.written, indices, sum)), exact(merged(chart.consumed, indices, sum))]);
}

function chartCard(chart) {
  const paths = { lag: svg("path", { class: "lag" }), in: svg("path", { class: "in" }), out: svg("path", { class: "out" }) };
  const labels = [svg("text", { x: 2, y: 9 }), svg("text", { x: 2, y: 9 })];
  const frame = (label, ...parts) => svg("svg", { viewBox: `0 0 ${width} ${height + 14}`, role: "img", "aria-label": label },
    svg("line", { class: "axis", x1: 0, x2: width, y1: height, y2: height }), ...parts,
    svg("text", { x: 0, y: height + 12 }, "1 h ago"), svg("text", { x: width, y: height + 12, "text-anchor": "end" }, "now"));
  const name = chart.topic + ", consumed by " + chart.group;
  const drawings = [frame("Lag of " + name, paths.lag, labels[0]),
    frame("Throughput of " + name, paths.in, paths.out, labels[1])];
  const legend = h("p", { class: "legend" });
  const body = h("div", {});
  const details = h("details", {}, h("summary", { "aria-label": name + ", as a table" }, "As a table"), body);
  const element = h("section", { class: "card chart", "data-chart": chart.topic + " " + chart.group },
    h("h3", {}, chart.topic), h("p", { class: "soft wrap" }, "consumed by " + chart.group), drawings[0], drawings[1], legend, details);
  let rows = () => [];
  const fill = () => body.replaceChildren(details.open
    ? table(name, ["Begin", "Lag", "Oldest", "Messages in", "Messages out"], rows(), "") : "");
  details.addEventListener("toggle", fill);
  const refresh = (next, since, step) => {
    rows = () => chartRows(next, since, step);
    const most = Math.max(1, ...next.lag), fastest = Math.max(0.1 * step, ...next.written, ...next.consumed);
    paths.lag.setAttribute("d", area(next.lag, most));
    paths.in.setAttribute("d", curve(next.written, fastest));
    paths.out.setAttribute("d", curve(next.consumed, fastest));
    labels[0].textContent = "lag, up to " + count(Math.max(0, ...next.lag));
    labels[1].textContent = "up to " + rate(fastest / step);
    const now = next.now || {};
    legend.replaceChildren(h("i", {}, "lag " + count(now.lag)), h("i", {}, "oldest " + seconds(now.lag === 0 ? 0 : now.seconds)),
      h("i", { class: "in" }, "┄ in " + rate(now.inRate)), h("i", { class: "out" }, "─ out " + rate(now.outRate)));
    fill();
  };
  return { element, refresh };
}

function charts(container, query) {
  const cards = new Map();
  const grid = h("div", { class: "charts" });
  const pages = h("div", { class: "buttons" });
  const note = h("p", { class: "soft", role: "status" });
  const offset = Number(query.get("offset")) || 0, filter = query.get("filter") || "";
  container.append(h("h2", {}, "Last hour"),
    searchForm("charts", "Find", field("filter", "Topic or group", filter)), note, grid, pages);
  return async (isAutomatic) => {
    const result = await fetchJSON("/api/charts", { filter, offset: offset || "" }, isAutomatic);
    const seen = new Set();
    for (const chart of result.charts) {
      const key = chart.topic + " " + chart.group;
      seen.add(key);
      if (!cards.has(key)) {
        cards.set(key, chartCard(chart));
        grid.append(cards.get(key).element);
      }
      cards.get(key).refresh(chart, Date.parse(result.since), result.stepSeconds);
    }
    for (const [key, card] of cards) {
      if (seen.has(key)) continue;
      card.element.remove();
      cards.delete(key);
    }
    note.textContent = (result.total ? `${result.charts.length} of ${result.total}, by topic` : "No data yet.")
      + (result.omitted ? `; ${result.omitted} more have no history` : "");
    pages.replaceChildren(
      ...(offset ? [h("button", { click: () => navigate("charts", { filter, offset: Math.max(0, offset - 24) || "" }) }, "Previous charts")] : []),
      ...(offset + 24 < result.total ? [h("button", { click: () => navigate("charts", { filter, offset: offset + 24 }) }, "More charts")] : []));
    return 10;
  };
}

// MARK: Deferred keys

const states = { dead: ["bad", "dead-lettered"], circuit: ["warn", "back end unavailable"], waiting: ["none", "waiting for retry"] };
const meanings = { dead: "Needs manual action: it is retried only if its object or a dependency changes, or its topic is republished.",
  circuit: "Its back end is unavailable. It is retried automatically when the back end recovers.",
  waiting: "It is retried automatically; after too many failures it is dead-lettered." };

function deferred(container, query) {
  const filters = Object.fromEntries(["group", "environment", "reason", "key", "state"].map((name) => [name, query.get(name) || ""]));
  const list = h("div", {}), bulk = h("div", {});
  const notice = h("p", { role: "status", id: "notice", tabindex: "-1" });
  const more = h("div", { class: "buttons" });
  container.append(h("h2", {}, "Deferred keys"),
    h("p", { class: "soft" }, "A key is one object. It is deferred if its newest change cannot be processed now; other keys are not affected. "
      + "A dead-lettered key needs manual action: open it, fix the cause that its reason names, and retry it."),
    searchForm("deferred", "Find", choice("state", "State", [["", "all"], ["dead", "dead-lettered"], ["waiting", "retried automatically"]], filters.state),
      field("group", "Service (group)", filters.group), field("environment", "Environment", filters.environment),
      field("reason", "Reason contains", filters.reason), field("key", "Key", filters.key)), notice, bulk, list, more);
  const rows = [];
  const offerRetry = () => {
    const keys = rows.filter((row) => row.name.environment !== 0);
    bulk.replaceChildren(...(keys.length > 1 ? [h("div", { class: "buttons" }, h("button", { id: "retry-all", click: () => confirmRetry(keys) },
      `Retry all ${keys.length} displayed keys`))] : []));
  };
  const confirmRetry = (keys) => {
    const title = `Retry ${keys.length} keys now?`;
    const proceed = h("button", { class: "main", id: "confirm-all", click: async () => {
      proceed.disabled = true;
      notice.className = "";
      notice.textContent = await retryKeys(keys);
      notice.focus();
      await load();
    } }, "Retry now");
    bulk.replaceChildren(h("div", { class: "confirm", role: "group", "aria-label": title }, h("p", {}, h("b", {}, title)),
      h("p", {}, "Each key gets a full number of attempts. Fix the cause first: a back end that rejects one of them rejects them all."),
      h("div", { class: "buttons" }, proceed, h("button", { click: offerRetry }, "Cancel"))));
    proceed.focus();
  };
  const load = async (after) => {
    const result = await fetchJSON("/api/deferred", { ...filters, after: after ? JSON.stringify(after) : "" });
    if (!after) rows.length = 0;
    rows.push(...result.keys);
    list.replaceChildren(table("Deferred keys", ["State", "Service", "Environment", "Object", "Reason", "Since", ""],
      rows.map((row) => [badge(...states[row.state]), h("td", { class: "nowrap" }, row.name.group),
        h("td", { class: "nowrap" }, row.environment || "–"), objectCell(row), h("td", { class: "strong" }, row.reason),
        h("td", { class: "nowrap" }, ago(row.deferredAt)),
        h("td", { class: "act" }, h("button", { "data-key": row.name.key, "aria-label": "Open " + row.name.key,
          click: () => {
            // While a dialog is loading, the list stays clickable.
            if (document.querySelector("dialog")) return;
            pushAddress(address(row.name));
            open(row.name);
          } }, "Open"))]),
      Object.values(filters).some(Boolean) ? "No deferred key matches." : "No deferred keys: everything is processed."));
    more.replaceChildren(...(result.next ? [h("button", { click: () => load(result.next) }, "More keys")] : []));
    offerRetry();
  };
  // The address names the open key: it can be shared, and the browser's Back and Forward close and reopen it.
  const address = (name) => "#deferred?" + new URLSearchParams(
    Object.entries({ ...filters, open: name ? JSON.stringify(name) : "" }).filter(([, value]) => value));
  const open = (name) => keyDialog(name, () => popAddress(address()), async (text, row) => {
    notice.className = "";
    notice.textContent = text;
    await load();
    // The row may have been removed: move the keyboard focus to the notice.
    notice.focus();
    if (!row) return;
    try {
      const [kind, ...message] = await outcome(row);
      notice.className = kind;
      notice.replaceChildren(objectLabel(row) + ": ", ...message);
    } catch (error) {
      notice.textContent = "The retry was requested, but its result is unknown: " + error.message;
    }
    if (list.isConnected) await load();
  });
  return async () => {
    await load();
    const name = parseName(query.get("open"));
    if (name) await open(name);
    return 0;
  };
}

/** Retries keys, at most 20 in one request, and returns the result as text. */
async function retryKeys(rows) {
  let retried = 0, changed = 0;
  try {
    for (let index = 0; index < rows.length; index += 20) {
      const keys = rows.slice(index, index + 20).map((row) => ({ ...row.name, version: row.version }));
      const result = await postJSON("/api/deferred/retry-keys", { keys });
      retried += result.count;
      changed += result.changedCount;
    }
  } catch (error) {
    return `Retry requested for at least ${retried} of ${rows.length} keys, then it failed: ${error.message}`;
  }
  const missing = rows.length - retried - changed;
  return `Retry requested for ${retried} of ${rows.length} keys.` + (changed ? ` Changed since they were displayed: ${changed}.` : "")
    + (missing ? ` No longer deferred: ${missing}.` : "");
}

/** Parses the key that an address names; `null` if it names none. */
function parseName(text) {
  try {
    const { group, environment, key } = JSON.parse(text);
    return typeof group === "string" && Number.isInteger(environment) && typeof key === "string" ? { group, environment, key } : null;
  } catch { return null; }
}

/** Polls the result of a retry for 30 seconds. */
async function outcome(row) {
  const parameters = new URLSearchParams({ environment: row.environment || "", id: row.subject });
  for (let attempt = 0; attempt < 60; attempt += 1) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const now = await fetchJSON("/api/deferred/outcome", { ...row.name, subject: row.subject }, true);
    const line = h("a", { href: "#trace?" + parameters }, "Timeline");
    if (now.state === "handled") {
      return [/status (invalid|rejected)/.test(now.detail) ? "warn" : "good",
        "processed: " + now.detail + ". ", line];
    }
    if (now.state === "deferred again") return ["bad", "deferred again: " + now.detail + ". ", line];
  }
  return ["", "still in progress: check again later."];
}

/** Shortens an id. */
const short = (id) => id.length > 14 ? id.slice(0, 8) + "…" + id.slice(-4) : id;

/** Returns a short label of a key's object. */
function objectLabel(row) {
  const parts = row.subject.split("/");
  return parts.length < 3 ? row.name.key : parts[parts.length - 2] + " " + short(parts[parts.length - 1]);
}

/** Returns a table cell's content with a key's object and its realm. */
function objectCell(row) {
  const parts = row.subject.split("/");
  if (row.name.environment === 0 || parts.length < 3) {
    return h("div", {}, "an unreadable message", h("div", { class: "soft wrap" }, row.name.key));
  }
  const id = parts[parts.length - 1];
  return h("div", {}, parts[parts.length - 2] + " ", h("span", { class: "soft nowrap", title: id }, short(id)),
    h("div", { class: "soft wrap" }, parts.slice(0, -2).join("/")));
}

/**
 * Displays a key and the actions on it.
 *
 * `closed` is called when the dialog closes; `done` after an action, with its message and, for a retry, the key.
 */
async function keyDialog(name, closed, done) {
  const dialog = h("dialog", { "aria-labelledby": "key-title" });
  document.body.append(dialog);
  const close = () => dialog.close();
  dialog.addEventListener("close", () => {
    // Otherwise the address belongs to another view now.
    if (dialog.isConnected) closed();
    dialog.remove();
  });
  const problem = h("p", { class: "bad", role: "alert" });
  const confirm = h("div", {});
  const confirmAction = (title, text, path, verb, after, isFinal = false) => {
    const proceed = h("button", { class: isFinal ? "main final" : "main", id: "confirm", click: async () => {
      proceed.disabled = true;
      try {
        await postJSON(path, { ...name, version: details.key.version });
        close();
        await done(after, path === "/api/deferred/retry" ? details.key : null);
      } catch (error) {
        confirm.replaceChildren();
        if (error.status !== 409) { problem.textContent = error.message; return; }
        // The key changed since it was displayed: nothing was done, and the list is reloaded.
        close();
        await done(error.message);
      }
    } }, verb);
    const opener = document.activeElement;
    const cancel = h("button", { click: () => { confirm.replaceChildren(); opener.focus(); } }, "Cancel");
    confirm.replaceChildren(h("div", { class: "confirm" + (isFinal ? " final" : ""), role: "group", "aria-label": title },
      h("p", {}, h("b", {}, title)), h("p", {}, text), h("div", { class: "buttons" }, proceed, cancel)));
    (isFinal ? cancel : proceed).focus();
    confirm.scrollIntoView({ block: "nearest" });
  };
  let details;
  try {
    details = await fetchJSON("/api/deferred/key", name);
    // Another view is displayed now.
    if (!dialog.isConnected) return;
  } catch (error) {
    if (!dialog.isConnected) return;
    dialog.remove();
    closed();
    await done(error.status === 404 ? "The key is no longer deferred." : error.message);
    return;
  }
  const lines = details.lines.filter((line) => !["do", "reason", "state"].includes(line.name));
  const commands = details.lines.filter((line) => line.name === "do").map((line) => line.value);
  const reason = details.lines.find((line) => line.name === "reason")?.value ?? "";
  const isReadable = name.environment !== 0;
  dialog.append(h("div", { class: "title" }, h("h2", { id: "key-title", tabindex: "-1", autofocus: true }, "Deferred key"),
      badge(...states[details.key.state])),
    h("p", { class: "reason wrap", "data-line": "reason" }, reason),
    h("p", { class: "soft" }, meanings[details.key.state]),
    commands.length ? h("details", { open: details.key.state === "dead" }, h("summary", {}, "Actions on the command line"),
      h("ul", { class: "wrap" }, commands.map((text) => h("li", { "data-line": "do" }, text)))) : null,
    h("dl", {}, lines.flatMap((line) => [h("dt", {}, line.name), h("dd", { "data-line": line.name }, line.value)])),
    h("h3", {}, details.payload ? "Current content at position " + details.position : details.position ? "The object is deleted" : "The object does not exist"),
    details.payload ? h("pre", { id: "payload", tabindex: "0" }, pretty(details.payload)) : "",
    h("p", { class: "soft" }, isReadable
      ? "Fix the cause that the reason names, then retry: the key is reprocessed from the stored state. Discarding removes the key; the object is unchanged, and its newer events are processed normally."
      : "The message is unreadable and cannot be retried: discard it after identifying it."),
    problem, h("div", { class: "buttons" },
      isReadable ? h("button", { class: "main", id: "retry", click: () => confirmAction("Retry the key now?",
        `${name.group} retries it with a full number of attempts.`, "/api/deferred/retry", "Retry now", "Retry requested.") }, "Retry") : null,
      h("button", { class: "danger", id: "discard", click: () => confirmAction("Discard the key?",
        "The key is removed permanently. Nothing is sent, and the object is unchanged.", "/api/deferred/discard", "Discard permanently", "Key discarded.", true) }, "Discard"),
      details.object && details.key.environment ? h("button", { click: () => navigate("trace", { environment: details.key.environment, id: details.object }) }, "Timeline") : null,
      h("button", { id: "close", click: close }, "Close")), confirm);
  dialog.showModal();
}

// MARK: Environments

/** The prefix of counts that are lower bounds. */
const lowerBound = (row) => row.isMoreParked ? "≥ " : "";

/** The labels of the states of a move. */
const moves = { copying: "move: copying", held: "move: write-blocked", left: "moved",
  arriving: "move: receiving", whole: "move: received, not activated" };

// Since when, why, and the next attempt, if one is planned.
function openCircuit(row) {
  const next = Date.parse(row.circuitNextAt) > Date.now() ? "next attempt at " + new Date(row.circuitNextAt).toLocaleTimeString() : "";
  return h("div", {}, badge("bad", "open"), h("div", { class: "soft nowrap" }, "since ", ago(row.circuitSince)),
    h("div", { class: "soft wrap" }, row.circuitReason || ""), next ? h("div", { class: "soft" }, next) : "");
}

function environments(container, query) {
  const list = h("div", {}), more = h("div", { class: "buttons" }), rows = [];
  container.append(h("h2", {}, "Environments and back ends"),
    h("p", { class: "soft" }, "An environment is one customer. While the circuit breaker of its back end is open, the back end is not called, and keys wait for it."),
    list, more);
  const load = async (after, isAutomatic) => {
    const result = await fetchJSON("/api/environments", { after }, isAutomatic);
    if (!after) rows.length = 0;
    rows.push(...result.environments.map((row) => ({ ...row, liveCount: result.devices ? result.devices[row.id] || 0 : null })));
    update(list, table("Environments", ["Environment", "Back end", "Circuit breaker", "Dead-lettered", "Deferred", "Live devices", "Unpublished", ""],
      rows.map((row) => [row.move ? h("div", {}, row.name, " ", badge(row.move === "held" ? "bad" : "warn", moves[row.move])) : row.name,
        row.backend ? h("div", {}, row.backend, h("div", { class: "soft wrap" }, row.backendURL || "")) : "none",
        !row.backend ? badge("none", "none") : row.circuitCount ? openCircuit(row) : badge("good", "closed"),
        h("td", { class: row.deadCount ? "bad" : "" }, row.deadCount ? h("a", { class: "bad", href: "#deferred?state=dead&environment="
          + encodeURIComponent(row.name), "aria-label": "Dead-lettered keys of " + row.name + ": " + lowerBound(row) + count(row.deadCount) }, lowerBound(row) + count(row.deadCount)) : "0"),
        lowerBound(row) + count(row.circuitCount + row.waitingCount),
        h("div", {}, count(row.liveCount), h("div", { class: "soft" }, count(row.deviceCount) + " credentials, " + count(row.renewedCount)
          + " renewed in the last hour")),
        count(row.position - row.published),
        h("a", { href: "#realms?environment=" + encodeURIComponent(row.name), "aria-label": "Realms of " + row.name }, "Realms")]),
      "No environment yet."));
    more.replaceChildren(...(result.next ? [h("button", { click: () => load(result.next) }, "More environments")] : []));
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
  const { environments } = await fetchJSON("/api/environments");
  const names = environments.map((environment) => environment.name);
  if (value && !names.includes(value)) names.push(value);
  return choice("environment", "Environment", names.map((name) => [name, name]), value || names[0]);
}

/** The last list of realms: selecting one of them does not reload the list, which would write an audit record. */
let cachedList = { name: "", paths: [], next: null };

function realms(container, query) {
  const environment = query.get("environment") || "", prefix = query.get("prefix") || "", path = query.get("path") || "";
  return async () => {
    const select = await environmentField(environment);
    const list = h("ul", { class: "list", "aria-label": "Realms" }), detail = h("div", { id: "realm" }), more = h("div", { class: "buttons" });
    container.replaceChildren(h("h2", {}, "Realms"),
      h("p", { class: "soft" }, "A realm is the unit that devices open and sync. Realms contain personal data: each displayed page of realms, objects and people is recorded in the audit log."),
      searchForm("realms", "Find", select, field("prefix", "Path begins with", prefix)),
      h("div", { class: path ? "split chosen" : "split" }, h("div", {}, list, more), detail));
    const chosen = select.querySelector("select").value;
    if (!chosen) { detail.replaceChildren(h("p", { class: "soft" }, "No environment yet.")); return 0; }
    const name = JSON.stringify([chosen, prefix]);
    const load = async (after) => {
      const result = await fetchJSON("/api/realms", { environment: chosen, prefix, after });
      cachedList = { name, paths: after ? cachedList.paths.concat(result.paths) : result.paths, next: result.next };
      show(result, after);
    };
    const show = (result, after) => {
      list.append(...result.paths.map((name) => h("li", {}, h("button", { "aria-pressed": String(name === path),
        click: () => navigate("realms", { environment: chosen, prefix, path: name }) }, name))));
      if (!result.paths.length && !after) list.append(h("li", { class: "soft" }, "No realm's path has this prefix."));
      more.replaceChildren(...(result.next ? [h("button", { click: () => load(result.next) }, "More realms")] : []));
    };
    if (path && cachedList.name === name) show(cachedList);
    else await load();
    if (path) await realm(detail, chosen, path);
    else detail.replaceChildren(h("p", { class: "soft" }, "Select a realm."));
    return 0;
  };
}

/** Returns an object's date, status and title, from the fields that its kind has; without a title, its id. */
function objectSummary(object) {
  let fields = {};
  if (object.fields === undefined) return { date: "", status: "deleted", title: object.id };
  try { fields = JSON.parse(object.fields) || {}; } catch { /* Displayed as text. */ }
  const first = (...names) => names.map((name) => fields[name]).find((value) => typeof value === "string" && value.trim());
  const flag = (name, yes, no) => typeof fields[name] === "boolean" ? (fields[name] ? yes : no) : undefined;
  const date = first("deletedAt", "endedAt", "entryDate", "when", "dueDate", "day", "timestamp", "submitDate", "since", "storedAt", "dueAt", "creationDate");
  return {
    date: date ? time(date).replace(/:\d\d UTC$/, " UTC") : "",
    status: first("status", "state", "reason", "role") || flag("isCompleted", "completed", "open") || flag("isInitialized", "initialized", "not initialized")
      || flag("isRead", "read", "unread") || flag("isDone", "done", "open") || "",
    title: first("title", "text", "headline", "name", "why", "message", "userId", "email", "person", "record", "operation", "backendId") || object.id,
  };
}

/**
 * Returns a summary of an object that unfolds to its fields. `mark` distinguishes messages of one object; `fact` is a
 * further fact about the object or message.
 */
function objectDetails(object, environment, mark, fact) {
  const { date, status, title } = objectSummary(object);
  return h("details", { class: "object", "data-object": object.id },
    h("summary", {}, mark ? h("span", { class: "nowrap" }, mark + " ") : null, date ? h("span", { class: "nowrap" }, date + " ") : null,
      status ? badge("none", status) : null, h("b", { class: "wrap" }, " " + title + " "),
      title === object.id ? null : h("span", { class: "nowrap" }, short(object.id))),
    object.fields === undefined ? null : h("pre", { tabindex: "0" }, pretty(object.fields)),
    h("p", { class: "soft wrap" }, `${object.kind} ${object.id}, position ${object.position ?? "unknown"}, ${fact} `,
      h("a", { href: "#trace?environment=" + encodeURIComponent(environment) + "&id=" + object.id,
        "aria-label": ["Timeline of", title, short(object.id), mark].join(" ").trim() }, "Timeline")));
}

/** Moves the view and the keyboard focus to what a button has opened. */
function reveal(element) {
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "start" });
}

async function realm(detail, environment, path) {
  const counts = await fetchJSON("/api/realm", { environment, path });
  const objects = h("div", { id: "objects" }), people = h("div", { id: "people", tabindex: "-1" });
  const button = h("button", { click: () => loadPeople() }, "People with access");
  const loadPeople = async (after) => {
    const result = await fetchJSON("/api/realm/people", { environment, path, after });
    if (!after) people.replaceChildren();
    people.append(table("People with access", ["Person", "Role", "Rule", "Logged in"], result.people.map((person) => [person.email, person.role,
      person.reason, person.hasLoggedIn ? "yes" : "never"]), after ? "" : "None of the people on this page has access."));
    button.disabled = true;
    if (!after) reveal(people);
    people.querySelector("button.more")?.remove();
    if (result.next) people.append(h("button", { class: "more", click: () => loadPeople(result.next) }, "More people"));
  };
  const loadObjects = async (kind, after) => {
    const result = await fetchJSON("/api/realm/objects", { environment, path, kind, after });
    const heading = h("h3", { class: "above", tabindex: "-1" }, kind);
    if (!after) objects.replaceChildren(heading);
    objects.querySelector("button.more")?.remove();
    objects.append(...result.objects.map((object) => objectDetails(object, environment, "", "edited at position " + object.editPosition)));
    if (!result.objects.length && !after) objects.append(h("p", { class: "soft" }, "No objects, except deleted ones."));
    if (result.next) objects.append(h("button", { class: "more", click: () => loadObjects(kind, result.next) }, "More objects"));
    if (!after) reveal(heading);
  };
  detail.replaceChildren(h("h3", {}, path),
    h("div", { class: "gap" }), table("Kinds", ["Kind", "Objects", "Deleted", "Last position", ""], counts.map((row) => [row.kind, count(row.count), count(row.deleted),
      String(row.lastPosition), h("button", { "data-kind": row.kind, "aria-label": "Show " + row.kind, click: () => loadObjects(row.kind) }, "Show")]), "The realm is empty."),
    h("div", { class: "buttons" }, button), people, objects);
}

// MARK: Timeline

function trace(container, query) {
  const environment = query.get("environment") || "", id = (query.get("id") || "").trim().split("/").pop();
  return async () => {
    const list = h("div", { id: "timelines" });
    container.replaceChildren(h("h2", {}, "Timeline of an object"),
      searchForm("trace", "Show", await environmentField(environment), field("id", "Id of an entry, task, share, notice …, or a deferred key", id, { wide: true })), list);
    if (!id || !environment) { list.replaceChildren(h("p", { class: "soft" }, "Enter an id, or follow a link from a realm or a deferred key.")); return 0; }
    const timelines = await fetchJSON("/api/trace", { environment, id });
    list.replaceChildren(...(timelines.length ? timelines.map(timeline) : [h("p", { class: "soft" }, "No events of this id in this environment.")]));
    return 0;
  };
}

/** Whether a step is a failure. Administrators' actions are audit records, not failures. */
const isBad = (hop) => hop.service !== "audit"
  && (["parked", "dead", "refused", "notProcessed", "unknown", "unanswered", "ambiguous", "failed"].includes(hop.event)
    || hop.event === "status" && /^(invalid|rejected)/.test(hop.text));

/** Spreads positions from left to right, with at least one dot's width between them. */
function spread(positions, left, right) {
  const width = Math.min(13, (right - left) / Math.max(1, positions.length - 1));
  const spread = positions.reduce((all, position) => [...all, Math.max(position, all.length ? all[all.length - 1] + width : left)], []);
  for (let index = spread.length - 1, end = right; index >= 0; index -= 1, end -= width) spread[index] = Math.min(spread[index], end);
  return spread;
}

function timeline(trace) {
  const timed = trace.hops.filter((hop) => hop.at);
  const moment = (hop) => Date.parse(hop.at);
  const [first, last] = [Math.min(...timed.map(moment)), Math.max(...timed.map(moment))];
  const lanes = [...new Set(timed.map((hop) => hop.service))];
  const left = 150, right = 780, line = 26;
  const x = (hop) => last > first ? left + (moment(hop) - first) / (last - first) * (right - left) : left;
  const dots = (hops) => { const positions = spread(hops.map(x), left, right); return hops.map((hop, index) => [hop, positions[index]]); };
  const drawing = svg("svg", { class: "lanes", viewBox: `0 0 800 ${lanes.length * line + 24}`, role: "img",
    "aria-label": "Timeline of " + trace.subject },
    ...lanes.flatMap((lane, index) => [
      svg("text", { x: 0, y: index * line + 20 }, lane.length > 21 ? lane.slice(0, 20) + "…" : lane),
      svg("line", { x1: left, x2: right, y1: index * line + 16, y2: index * line + 16 }),
      ...dots(timed.filter((hop) => hop.service === lane)).map(([hop, position]) => svg("circle", { class: isBad(hop) ? "bad" : "", r: 6,
        cx: position.toFixed(1), cy: index * line + 16 }, svg("title", {}, hop.text)))]),
    svg("text", { x: left, y: lanes.length * line + 20 }, timed.length ? time(timed[0].at) : ""),
    svg("text", { x: right, y: lanes.length * line + 20, "text-anchor": "end" }, last > first ? "+ " + seconds((last - first) / 1000) : ""));
  let before = null;
  const steps = trace.hops.map((hop) => {
    const wait = hop.at && before ? (Date.parse(hop.at) - before) / 1000 : null;
    if (hop.at) before = Date.parse(hop.at);
    const facts = [hop.position ? "position " + hop.position : "", hop.topic ? hop.topic + "/" + (hop.partition ?? "") + (hop.offset !== undefined
      && hop.offset !== null ? " offset " + hop.offset : "") : "", hop.attempt ? "attempt " + hop.attempt : "", hop.traceparent || ""].filter(Boolean);
    return h("li", { class: isBad(hop) ? "bad" : "" },
      h("div", { class: "soft" }, (hop.at ? time(hop.at) : "time unknown") + (wait !== null ? ", + " + seconds(wait) : "")),
      h("b", { class: "wrap" }, hop.service + " "), h("span", { class: "wrap" }, hop.text),
      facts.length ? h("div", { class: "soft wrap" }, facts.join(" · ")) : null);
  });
  return h("section", { class: "card" }, h("h3", {}, trace.subject), timed.length ? drawing : "", h("ol", { class: "line" }, steps),
    h("div", { class: "soft" }, "Not included:", h("ul", {}, [...trace.gaps, "the Kafka messages of the changes: fieldpost trace finds them"]
      .map((gap) => h("li", {}, gap)))));
}

// MARK: Audit log

function audit(container, query) {
  const filters = Object.fromEntries(["action", "actor", "subject", "environment"].map((name) => [name, query.get(name) || ""]));
  const list = h("div", {}), note = h("p", { class: "soft", role: "status" }), more = h("div", { class: "buttons" }), rows = [];
  container.append(h("h2", {}, "Audit log"),
    h("p", { class: "soft" }, "Actions and views, newest first."),
    searchForm("audit", "Find", field("action", "Action (prefix)", filters.action), field("actor", "Principal (exact)", filters.actor),
      field("subject", "Subject (exact)", filters.subject), field("environment", "Environment", filters.environment)), list, note, more);
  const load = async (before, isAutomatic) => {
    const result = await fetchJSON("/api/audit", { ...filters, before }, isAutomatic);
    if (!before) rows.length = 0;
    rows.push(...result.acts);
    update(list, table("Audit log", ["Time", "Principal", "Action", "Subject", "Environment", "Detail", "Address"], rows.map((row) => [
      h("td", { class: "nowrap" }, time(row.time)), row.actor, h("td", { class: "nowrap" }, row.action), row.subject,
      row.environment || "–", row.detail === "{}" ? "–" : row.detail, h("td", { class: "nowrap" }, row.address || "–")]),
      result.since ? "No match so far." : "No record matches."));
    note.textContent = result.since ? "Searched back to " + time(result.since) + "; older records were not searched yet." : "";
    update(more, ...(result.next ? [h("button", { click: () => load(result.next) }, result.since ? "Search further back" : "Older")] : []));
  };
  return async (isAutomatic) => {
    if (isAutomatic && rows.length > 50) return 0;
    await load("", isAutomatic);
    return 15;
  };
}

/** Views without automatic refresh: they are expensive, or write an audit record. */
export const manual = new Set(["deferred", "realms", "trace"]);

export const views = { overview, topic, charts, deferred, environments, realms, trace, audit };
