"""The choices of a time entry, by the rules of docs/apps/reporting-picker.md.

    python3 examples/picker.py examples/picker/*.json

compares this program with the golden vectors. It needs Python 3.11 and no packages. `objects` has the fields of objects
by kind and id: {"ReportingTemplate": {id: fields}, "ReportingContext": …, "ReportingTreeNode": …}. The nodes are those
of the person's catalogue. Ids are in lower case, as the device API sends them.
"""

import json
import sys

DEPTH_MAX = 64  # levels below a root


def problems(entry, objects):
    """Returns what prevents the submission of the entry's template and selections; empty if nothing does."""
    template = objects["ReportingTemplate"].get(entry.get("reportingTemplate"))
    if not entry.get("reportingTemplate"):
        return [problem("template-missing", "Template is missing")]
    if template is None:
        return [problem("template-unavailable", "Template is not available any more")]
    found, earlier = [], set()
    contexts = template.get("reportingContexts") or []
    for id in contexts:
        context = objects["ReportingContext"].get(id)
        if context is None:
            message = f"Template '{template['name']}' refers to a choice that does not exist"
            found.append(problem("context-unavailable", message, id))
            continue
        name = context["name"]
        nodes = given(entry, id) or context.get("preselected") or []
        if is_fixed(context) and not entry.get("backendId") and set(nodes) != set(context.get("preselected") or []):
            found.append(problem("selection-fixed", f"{name} cannot be changed", id))
            continue
        if not nodes and context.get("required"):
            found.append(problem("selection-missing", f"{name} is missing", id))
        if len(nodes) > 1:
            found.append(problem("selection-ambiguous", f"Only one {name} can be selected", id))
        for node in nodes:
            rejection = node_problem(node, id, context, earlier, objects)
            if rejection:
                found.append(rejection)
        earlier.update(nodes)
    for selection in entry.get("reporting") or []:
        id = selection["context"]
        if id not in contexts:
            name = objects["ReportingContext"].get(id, {"name": id})["name"]
            message = f"{name} is not part of template '{template['name']}'"
            found.append(problem("context-not-in-template", message, id, selection["node"]))
    return found


def node_problem(id, context_id, context, earlier, objects):
    """Returns the problem of a node that is selected after the nodes `earlier`; None if it can be selected."""
    name, node = context["name"], objects["ReportingTreeNode"].get(id)
    if node is None:
        return problem("node-unavailable", f"{name}: the selection is not available any more", context_id, id)
    if not any(shows(section, id, objects) for section in context.get("sections") or []):
        return problem("node-not-offered", f"{name}: '{title(node)}' is not one of its choices", context_id, id)
    if not can_follow(node, earlier):
        message = f"{name}: '{title(node)}' does not go with the selections before it"
        return problem("node-excluded", message, context_id, id)
    return None


def shows(section, node, objects):
    """Returns whether a section contains a node: one of its items, or any node below its root."""
    if node in (section.get("items") or []):
        return True
    root = section.get("rootNode")
    if root is None or node == root:
        return False
    for _ in range(DEPTH_MAX):
        node = objects["ReportingTreeNode"].get(node, {}).get("parent")
        if node is None or node == root:
            return node is not None
    return False


def can_follow(node, earlier):
    return not node.get("hasDependencies") or not earlier.isdisjoint(node.get("dependencies") or [])


def form(entry, objects):
    """Returns the choices to display, the selections that are possible, and the problems of the entry as given."""
    template = objects["ReportingTemplate"].get(entry.get("reportingTemplate"), {})
    choices, selections, earlier, children = [], [], set(), siblings(objects)
    for id in template.get("reportingContexts") or []:
        context = objects["ReportingContext"].get(id)
        if context is None:
            continue

        def possible(nodes):
            return [node for node in nodes if not node_problem(node, id, context, earlier, objects)]

        own, preselected = given(entry, id), context.get("preselected") or []
        if is_fixed(context):
            kept = own if entry.get("backendId") else []
        else:
            kept = possible(own)
        applied = kept or preselected
        selected = possible(applied)
        sections = []
        for section in [] if is_fixed(context) else context.get("sections") or []:
            options = offered(section, earlier, objects, children)
            shown = section.get("showCount")
            shown = len(options) if shown is None else min(max(shown, 0), len(options))
            if options:
                sections.append({"name": section["name"], "shown": shown, "options": options})
        choices.append(
            {
                "context": id,
                "name": context["name"],
                "required": bool(context.get("required")),
                "visible": context.get("visible") is not False,
                "changeable": not is_fixed(context),
                "selected": selected,
                "preselected": not kept and bool(selected),
                "rejected": [node for node in dict.fromkeys(own + applied) if node not in selected],
                "sections": sections,
            }
        )
        selections += [{"context": id, "node": node} for node in kept]
        earlier.update(selected)
    return {"choices": choices, "selections": selections, "problems": problems(entry, objects)}


def offered(section, earlier, objects, children):
    """Returns the nodes of a section that can be selected after the nodes `earlier`, in display order."""
    nodes = [(item, 0) for item in section.get("items") or []]
    root = section.get("rootNode")

    def add(parent, depth):
        for child in children.get(parent, []) if depth < DEPTH_MAX else []:
            if child != root:
                nodes.append((child, depth))
                add(child, depth + 1)

    if root is not None:
        add(root, 0)
    options = {}
    for id, depth in nodes:
        node = objects["ReportingTreeNode"].get(id)
        if node is not None and id not in options and can_follow(node, earlier):
            options[id] = {"node": id, "title": title(node), "depth": depth}
    return list(options.values())


def siblings(objects):
    """Returns each node's children in display order."""
    children = {}
    for id, node in objects["ReportingTreeNode"].items():
        if node.get("parent"):
            children.setdefault(node["parent"], []).append((title(node).lower(), id))
    return {parent: [id for _, id in sorted(list)] for parent, list in children.items()}


def search(choice, query, objects):
    """Returns the options of a choice whose title or reference contains each term of the query."""
    found = {}
    for option in (option for section in choice["sections"] for option in section["options"]):
        reference = objects["ReportingTreeNode"][option["node"]].get("referenceId") or ""
        texts = option["title"].lower(), reference.lower()
        if all(any(term in text for text in texts) for term in query.lower().split()):
            found.setdefault(option["node"])
    return list(found)


def suggestions(choice, recent, count_max):
    """Returns the options of a choice that the entries `recent`, the latest first, select."""
    options = {option["node"] for section in choice["sections"] for option in section["options"]}
    selected = [node for entry in recent for node in given(entry, choice["context"]) if node in options]
    return list(dict.fromkeys(selected))[:count_max]


def offered_templates(user, objects):
    """Returns the templates to display: those that a new entry can use."""
    templates = objects["ReportingTemplate"]
    ids = [id for id in user.get("reportingTemplates") or [] if id in templates]
    return [id for id in ids if all(usable(one, objects) for one in templates[id].get("reportingContexts") or [])]


def usable(id, objects):
    """Returns whether a context exists and, if it is fixed, its preselected nodes are valid after some selections."""
    context = objects["ReportingContext"].get(id)
    if context is None or not is_fixed(context):
        return context is not None
    nodes = context.get("preselected") or []
    found = [node_problem(node, id, context, set(), objects) for node in nodes]
    valid = all(problem is None or problem["code"] == "node-excluded" for problem in found)
    return len(nodes) <= 1 and bool(nodes or not context.get("required")) and valid


def given(entry, context):
    return [selection["node"] for selection in entry.get("reporting") or [] if selection["context"] == context]


def is_fixed(context):
    return bool(context.get("readOnly")) or context.get("visible") is False


def title(node):
    return node["name"] if node.get("title") is None else node["title"]


def problem(code, message, context=None, node=None):
    return {"code": code, "context": context, "node": node, "message": message}


def actual(case, objects):
    """Returns the results for a case of a vector, in the form of its `expected`, which may omit some."""
    result = form(case["entry"], objects)
    if "query" in case:
        result["found"] = [search(choice, case["query"], objects) for choice in result["choices"]]
    if "recent" in case:
        choices = result["choices"]
        result["suggestions"] = [suggestions(choice, case["recent"], case["countMax"]) for choice in choices]
    return {name: result[name] for name in case["expected"]}


if __name__ == "__main__":
    failures = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            vector = json.load(file)
        objects = vector["objects"]
        results = [(vector["title"], offered_templates(vector["user"], objects), vector["offered"])]
        results += [(case["title"], actual(case, objects), case["expected"]) for case in vector["cases"]]
        for name, result, expected in results:
            if result != expected:
                failures += 1
                print(f"{path}: {name}:\n  {json.dumps(result)}\n  expected {json.dumps(expected)}")
        print(f"{path}: {len(results)} results")
    sys.exit(failures > 0 or len(sys.argv) == 1)
