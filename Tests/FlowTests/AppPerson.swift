import Foundation
import LocalCluster
import TestSupport

/// A person who uses the field app in a browser of their own, on a phone or on a desktop.
final actor AppPerson {
    nonisolated let email: String
    private let name: String
    private let cluster: LocalCluster
    private(set) var browser: Browser
    private(set) var page: Browser.Page
    /// Further windows of the same browser.
    private var windows: [Browser.Page] = []

    /// The name that other people see.
    nonisolated var displayName: String { String(email.prefix { $0 != "@" }) }

    init(_ email: String, _ name: String, _ cluster: LocalCluster) async throws {
        (self.email, self.name, self.cluster) = (email, name, cluster)
        browser = try await Browser(in: cluster.folder, name: "browser-\(name)")
        page = try await browser.open(cluster.onboardingURL + "/app/", isInOwnWindow: true)
        try await resize(page)
    }

    private func resize(_ page: Browser.Page) async throws {
        let isDesktop = name == "manager"
        try await browser.resize(page, width: isDesktop ? 1_280 : 390, height: isDesktop ? 900 : 844)
    }

    func signIn() async throws {
        try await browser.signIn(email, on: page, form: "form", link: "a#login-link")
        try await seeStatus("Up to date")
        // Afterwards the app opens offline.
        _ = try await browser.result(of: "navigator.serviceWorker.ready.then(() => true)", on: page)
    }

    /// Opens another window of the app.
    func openWindow() async throws -> Browser.Page {
        let window = try await browser.open(cluster.onboardingURL + "/app/", isInOwnWindow: true)
        windows.append(window)
        try await resize(window)
        return window
    }

    func close(_ window: Browser.Page) async throws {
        try await browser.close(window)
        windows.removeAll { $0 == window }
    }

    /// Marks the loaded page: a page that is loaded again has no mark.
    func markPage() async throws { _ = try await value("globalThis.testMark = true") }

    var isMarked: Bool { get async throws { try await value("globalThis.testMark") == "true" } }

    /// Kills the browser, and starts it again with the same profile.
    func restartBrowser() async throws {
        await browser.end()
        browser = try await Browser(in: cluster.folder, name: "browser-\(name)")
        page = try await browser.open(cluster.onboardingURL + "/app/", isInOwnWindow: true)
        windows = []
        try await resize(page)
    }

    // MARK: Actions

    /// Opens a view by its tab.
    func open(_ view: String, in window: Browser.Page? = nil) async throws {
        try await click(.link, view, in: window)
        try await wait("document.title.startsWith('\(view)')", for: "view \(view)", in: window)
    }

    func click(_ role: Browser.Role, _ label: String, in window: Browser.Page? = nil) async throws {
        try await browser.click(role, label, on: window ?? page)
    }

    func fill(_ label: String, _ text: String, in window: Browser.Page? = nil) async throws {
        try await browser.fill(label, text, on: window ?? page)
    }

    func attach(_ path: String, to label: String) async throws {
        try await browser.attach([path], to: label, on: page)
    }

    func setOffline(_ isOffline: Bool) async throws {
        try await browser.setOffline(isOffline, of: page)
    }

    // MARK: Conditions

    func see(_ text: String, _ isVisible: Bool = true, in window: Browser.Page? = nil) async throws {
        try await browser.see(text, isVisible, on: window ?? page)
    }

    /// Waits until a control can be used, or until it is absent.
    func see(
        _ role: Browser.Role, _ label: String, _ isPresent: Bool = true, in window: Browser.Page? = nil
    ) async throws {
        let window = window ?? page
        try await eventually("\(role.rawValue) \(label)\(isPresent ? "" : " disappears")", within: patienceMax) {
            if try await browser.has(role, label, on: window) == isPresent { return nil }
            return try await browser.text(of: window)
        }
    }

    /// Waits until the status of the connection begins with a text.
    func seeStatus(_ text: String) async throws {
        try await wait(
            "document.querySelector('a[href=\"#/sync\"]').title.startsWith(\(Browser.quoted(text)))", for: text)
    }

    func wait(_ expression: String, for condition: String, in window: Browser.Page? = nil) async throws {
        try await browser.wait(expression, on: window ?? page, for: condition)
    }

    func value(_ expression: String, in window: Browser.Page? = nil) async throws -> String {
        try await browser.value(expression, on: window ?? page)
    }

    /// The records of the browser's databases that contain a text, in all stores.
    func storedRecords(with text: String) async throws -> [String] {
        let found = try await browser.result(of: "\(Self.search)(\(Browser.quoted(text)))", on: page)
        return found.split(separator: "\n").map(String.init)
    }

    /// Independent of the layout of the stores: keys and values as JSON, maps and bytes included.
    private static let search = """
        (async (text) => {
            const result = (request) => new Promise((resolve, reject) => {
                request.onsuccess = () => resolve(request.result);
                request.onerror = () => reject(request.error);
            });
            const plain = (name, value) => value instanceof Map ? [...value] : value instanceof Set ? [...value]
                : value instanceof ArrayBuffer ? new TextDecoder().decode(value)
                : ArrayBuffer.isView(value) ? new TextDecoder().decode(value) : value;
            const found = [];
            for (const { name } of await indexedDB.databases()) {
                const database = await result(indexedDB.open(name));
                for (const store of database.objectStoreNames) {
                    const objects = database.transaction(store).objectStore(store);
                    const [keys, values] = await Promise.all([result(objects.getAllKeys()), result(objects.getAll())]);
                    keys.forEach((key, index) => {
                        const record = JSON.stringify([key, values[index]], plain);
                        if (record.includes(text)) { found.push(`${store}: ${record.slice(0, 300)}`); }
                    });
                }
                database.close();
            }
            return found.join("\\n");
        })
        """

    /// Waits until no record of the browser's databases contains a text.
    func expectStoreLacks(_ text: String) async throws {
        try await eventually("no record contains \(text)", within: patienceMax) {
            let records = try await storedRecords(with: text)
            return records.isEmpty ? nil : records.joined(separator: "\n")
        }
    }

    /// Stores pictures of all windows and prints their texts, for the failure's message.
    func printDiagnostics() async {
        for (number, window) in ([page] + windows).enumerated() {
            await browser.keepPicture(of: window, "app-\(name)-\(number)")
            print("\(name), window \(number), displays: \((try? await browser.text(of: window)) ?? "nothing")")
        }
    }
}
