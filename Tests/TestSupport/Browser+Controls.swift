/// Controls of a page, found as a person finds them: by their names, if they are visible and not covered.
extension Browser {
    package enum Role: String, Sendable {
        case button, link
        /// A control with a text, a date or a list of options.
        case field
        /// A radio button, a checkbox or a switch.
        case choice
        /// A control that opens files.
        case file
    }

    /// Returns the control of a name. Among several, one with the complete name is preferred. Of a page with an open
    /// dialog, only the dialog's controls can be used.
    private static let control = """
        ((role, name) => {
            const selectors = { button: "button, summary", link: "a[href]", file: "input[type=file]",
                field: "input:not([type=radio], [type=checkbox], [type=file]), textarea, select",
                choice: "input[type=radio], input[type=checkbox]" };
            const text = (node) => node.textContent.replace(/\\s+/g, " ").trim();
            const nameOf = (node) => node.getAttribute("aria-label")
                || [...(node.labels ?? [])].map(text).join(" ") || text(node);
            const dialogs = document.querySelectorAll("dialog[open]");
            const root = dialogs[dialogs.length - 1] ?? document;
            const named = [...root.querySelectorAll(selectors[role])].filter((node) => nameOf(node).includes(name));
            const usable = named.filter((node) => {
                const target = role === "choice" || role === "file" ? node.labels[0] ?? node : node;
                if (node.disabled || !target.checkVisibility({ visibilityProperty: true })) { return false; }
                target.scrollIntoView({ block: "center", behavior: "instant" });
                const box = target.getBoundingClientRect();
                const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
                return top && (target.contains(top) || [...(node.labels ?? [])].some((label) => label.contains(top)));
            });
            return usable.find((node) => nameOf(node) === name) ?? usable[0];
        })
        """

    private static func control(_ role: Role, _ name: String) -> String {
        "\(control)('\(role.rawValue)', \(quoted(name)))"
    }

    /// A text as a JavaScript literal.
    package static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n") + "\""
    }

    /// Whether the page has a usable control of this name.
    package func has(_ role: Role, _ name: String, on page: Page) async throws -> Bool {
        try await value("Boolean(\(Self.control(role, name)))", on: page) == "true"
    }

    /// Clicks a control as soon as it can be used.
    package func click(_ role: Role, _ name: String, on page: Page) async throws {
        try await wait(
            """
            (() => {
                const node = \(Self.control(role, name));
                node?.click();
                return node;
            })()
            """, on: page, for: "\(role.rawValue) \(name)")
    }

    /// Writes a text into a field, or selects the option of this name.
    package func fill(_ name: String, _ text: String, on page: Page) async throws {
        let field = Self.control(.field, name)
        let text = Self.quoted(text)
        try await wait(
            """
            (() => {
                const node = \(field);
                if (!node) { return false; }
                node.focus();
                const isList = node.nodeName === "SELECT";
                const value = isList ? [...node.options].find((one) => one.text.includes(\(text)))?.value : \(text);
                if (value === undefined) { return false; }
                const owner = Object.getPrototypeOf(node);
                Object.getOwnPropertyDescriptor(owner, "value").set.call(node, value);
                for (const type of ["input", "change"]) { node.dispatchEvent(new Event(type, { bubbles: true })); }
                return true;
            })()
            """, on: page, for: "field \(name)")
    }

    /// Selects files in a control.
    package func attach(_ paths: [String], to name: String, on page: Page) async throws {
        try await wait("Boolean(\(Self.control(.file, name)))", on: page, for: "file control \(name)")
        let found = try await send("Runtime.evaluate", ["expression": Self.control(.file, name)], on: page)
        guard let object = (found["result"] as? [String: Any])?["objectId"] as? String else {
            throw Problem(description: "file control \(name) disappeared")
        }
        _ = try await send("DOM.setFileInputFiles", ["files": paths, "objectId": object], on: page)
    }

    /// The visible text of the page.
    package func text(of page: Page) async throws -> String {
        try await value("document.body.innerText", on: page)
    }

    /// Waits until a text is visible, or until it is not.
    package func see(_ text: String, _ isVisible: Bool = true, on page: Page) async throws {
        try await wait(
            "document.body.innerText.includes(\(Self.quoted(text))) === \(isVisible)", on: page,
            for: "text \(text)\(isVisible ? "" : " to disappear")")
    }

    /// Sets the size of the page in pixels. The page behaves as if its window had the focus.
    package func resize(_ page: Page, width: Int, height: Int) async throws {
        _ = try await send(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700], on: page)
        _ = try await send("Emulation.setFocusEmulationEnabled", ["enabled": true], on: page)
    }

    /// Waits until an expression is true; the error names the condition and has the text of the page.
    package func wait(_ expression: String, on page: Page, for condition: String) async throws {
        do {
            try await wait(expression, on: page, within: patienceMax)
        } catch {
            let text = (try? await text(of: page)) ?? "\(error)"
            throw Problem(description: "not within \(patienceMax): \(condition). The page displays:\n\(text)")
        }
    }
}
