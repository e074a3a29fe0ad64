import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

/// One seed: a person with two tabs and another device.
struct BrowserClientFaults {
    static let environment = "outside"

    struct Failure: Error, CustomStringConvertible { let description: String }

    private struct Tab {
        var page: Browser.Page
        var isOffline = false
    }

    private let cluster: LocalCluster
    private let browser: Browser
    private let phone: IntegrationPhone
    private let url: String
    private let realm: String
    private var random: SplitMix64
    private var tabs: [Tab] = []
    private var isGatewayUp = true
    private var model = NoteModel()
    private var textCount = 0
    private(set) var steps: [String] = []

    init(_ cluster: LocalCluster, _ browser: Browser, seed: UInt64) async throws {
        self.cluster = cluster
        self.browser = browser
        let email = "seed\(seed)@example.com"
        let phone = try await IntegrationPhone(cluster, email)
        self.phone = phone
        realm = "/users/\(email)"
        random = SplitMix64(seed: seed)
        try await eventually("the gateway has the environment") {
            let status = try await phone.status()
            return status == 200 ? nil : "\(status)"
        }
        let token = phone.headers[0].value.dropFirst("Bearer ".count)
        url = "\(cluster.onboardingURL)/app/?gateway=\(cluster.gatewayURL)&name=seed\(seed)&token=\(token)"
    }

    mutating func run(stepCount: Int) async throws {
        for _ in 0..<2 { tabs.append(Tab(page: try await open())) }
        try await signIn()
        try await writeByOtherDevice()
        for _ in 0..<stepCount { try await step() }
        steps.append("end")
        try await waitUntilIdle()
        for index in tabs.indices { try await expectCopy(of: tabs[index].page, "tab \(index)") }
        for tab in tabs {
            let status = try await browser.result(of: "harness.isClean()", on: tab.page)
            guard status == "true" else { throw Failure(description: "not clean at the end: \(status)") }
        }
        try model.endStore(results())
        try await expectNotes()
        // The store alone: no tab is connected, and the next one opens paused.
        try await call("pause", on: 0)
        for tab in tabs { try await browser.close(tab.page) }
        tabs = [Tab(page: try await open())]
        try await expectCopy(of: tabs[0].page, "the store")
    }

    /// Closes the tabs, and runs the gateway for the next seed.
    mutating func end() async {
        for tab in tabs { try? await browser.close(tab.page) }
        tabs = []
        if !isGatewayUp { try? await restartGateway() }
    }

    /// The statuses of the tabs, for a failure's text.
    func statuses() async -> [String] {
        var found: [String] = []
        for tab in tabs {
            do {
                found.append(try await browser.result(of: "harness.status()", on: tab.page))
            } catch {
                found.append("\(error)")
            }
        }
        return found
    }

    // MARK: Steps

    private mutating func step() async throws {
        let index = Int.random(in: tabs.indices, using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<38: try await write(on: index)
        case 38..<44: try await writeOnBothTabs()
        case 44..<54: if isGatewayUp { try await writeByOtherDevice() }
        case 54..<62: try await replaceTab(index)
        case 62..<67: try await closeDuringWrites(index)
        case 67..<72:
            steps.append("reload tab \(index)")
            try await setOffline(false, of: index)
            try await reload(index)
        case 72..<80:
            let isOffline = !tabs[0].isOffline
            steps.append(isOffline ? "network off" : "network on")
            for index in tabs.indices { try await setOffline(isOffline, of: index) }
        case 80..<84: if isGatewayUp { try await killGateway() } else { try await restartGateway() }
        case 84..<90:
            let name = random.happens(50) ? "pause" : "resume"
            steps.append("\(name) in tab \(index)")
            try await call(name, on: index)
        case 90..<97:
            steps.append("wait until idle")
            try await waitUntilIdle()
        default: try await clearStorage()
        }
    }

    private mutating func uniqueText() -> String {
        textCount += 1
        return "text \(textCount)"
    }

    private mutating func write(on index: Int) async throws {
        let operations: [NoteModel.Operation] = [.put, .put, .put, .patch, .patch, .delete]
        let operation = operations.randomElement(using: &random) ?? .put
        let existing = model.notes.randomElement(using: &random)
        switch operation {
        case .put:
            let id = random.happens(70) ? nil : existing
            try await write(
                .put, id ?? random.id().text, ["title": uniqueText(), "body": uniqueText()], on: index)
        case .patch:
            guard let existing else { return }
            try await write(.patch, existing, [random.happens(50) ? "title" : "body": uniqueText()], on: index)
        case .delete:
            guard let existing else { return }
            try await write(.delete, existing, [:], on: index)
        }
    }

    private mutating func write(
        _ operation: NoteModel.Operation, _ id: String, _ fields: [String: String], on index: Int
    ) async throws {
        steps.append("tab \(index): \(operation) \(id) \(fields)")
        let text = try await call("write", operation.rawValue, realm, id, fields, on: index)
        try model.add(NoteModel.Write(operation: operation, id: id, fields: fields), sequence: text)
    }

    private mutating func writeOnBothTabs() async throws {
        let writes = [0, 1].map { _ in
            NoteModel.Write(operation: .put, id: random.id().text, fields: ["title": uniqueText()])
        }
        steps.append("both tabs: \(writes.map(\.id))")
        let (tabs, realm) = (self, realm)
        async let first = tabs.call("write", "put", realm, writes[0].id, writes[0].fields, on: 0)
        async let second = tabs.call("write", "put", realm, writes[1].id, writes[1].fields, on: 1)
        let sequences = (try await first, try await second)
        try model.add(writes[0], sequence: sequences.0)
        try model.add(writes[1], sequence: sequences.1)
    }

    /// Writes as another device of the person, at once.
    private mutating func writeByOtherDevice() async throws {
        let existing = random.happens(60) ? model.notes.randomElement(using: &random) : nil
        let isPatch = existing != nil && random.happens(50)
        let write = NoteModel.Write(
            operation: isPatch ? .patch : .put, id: existing ?? random.id().text,
            fields: isPatch ? ["title": uniqueText()] : ["title": uniqueText(), "body": uniqueText()])
        steps.append("other device: \(write)")
        let sequence = model.addOfOtherDevice(write)
        let body = """
            {"clientId":"\(model.otherClient.text)","mutations":[{"sequence":\(sequence),"realm":"\(realm)",
            "op":"\(write.operation)","kind":"Note","id":"\(write.id)","fields":\(try json(write.fields))}]}
            """
        let response = try await phone.client.send(
            Request("POST", cluster.gatewayURL + "/v1/mutations", headers: phone.headers, body: Array(body.utf8)))
        guard response.status == 200 else {
            throw Failure(description: String(decoding: response.body, as: UTF8.self))
        }
    }

    private mutating func replaceTab(_ index: Int) async throws {
        steps.append("close tab \(index), open another")
        try await browser.close(tabs[index].page)
        tabs[index] = Tab(page: try await open())
    }

    /// Closes a tab while it writes new notes: each may be lost, because the tab did not report it as stored.
    private mutating func closeDuringWrites(_ index: Int) async throws {
        let ids = (0..<3).map { _ in random.id().text }
        steps.append("close tab \(index) while it writes \(ids)")
        model.addUncertain(ids)
        _ = try await call("start", realm, ids, uniqueText(), on: index)
        try await browser.close(tabs[index].page)
        tabs[index] = Tab(page: try await open())
    }

    private mutating func killGateway() async throws {
        steps.append("kill the gateway")
        isGatewayUp = false
        await cluster.kill9(.gateway)
    }

    private mutating func restartGateway() async throws {
        steps.append("restart the gateway")
        try await cluster.restart(.gateway)
        try await cluster.waitUntilReady(.gateway)
        isGatewayUp = true
    }

    /// Deletes the database. Nothing is queued, because that would be lost.
    private mutating func clearStorage() async throws {
        try await waitUntilIdle()
        try model.endStore(results())
        if random.happens(50) {
            steps.append("clear the storage of open tabs, reload")
            try await browser.clearDatabases(of: cluster.onboardingURL, on: tabs[0].page)
            for index in tabs.indices { try await reload(index) }
        } else {
            steps.append("clear the storage, tabs closed")
            let other = try await browser.open("about:blank")
            for tab in tabs { try await browser.close(tab.page) }
            try await browser.clearDatabases(of: cluster.onboardingURL, on: other)
            for index in tabs.indices { tabs[index] = Tab(page: try await open()) }
            try await browser.close(other)
        }
        try await signIn()
    }

    // MARK: Tabs

    private func open() async throws -> Browser.Page {
        let page = try await browser.open(url, isInOwnWindow: true)
        try await waitUntilOpened(page)
        return page
    }

    private func reload(_ index: Int) async throws {
        _ = try await browser.value("globalThis.harness = undefined", on: tabs[index].page)
        try await browser.go(to: url, on: tabs[index].page)
        try await waitUntilOpened(tabs[index].page)
    }

    private func waitUntilOpened(_ page: Browser.Page) async throws {
        try await browser.wait("globalThis.harness", on: page)
        _ = try await browser.result(of: "harness.opened", on: page)
    }

    private mutating func setOffline(_ isOffline: Bool, of index: Int) async throws {
        try await browser.setOffline(isOffline, of: tabs[index].page)
        tabs[index].isOffline = isOffline
    }

    /// Signs the person in, in one tab; the other follows.
    private func signIn() async throws {
        if try await call("isSignedIn", on: 0) != "true" { _ = try await call("signIn", on: 0) }
        for index in tabs.indices {
            try await eventually("tab \(index) is signed in", within: patienceMax) {
                try await call("isSignedIn", on: index) == "true" ? nil : try await call("status", on: index)
            }
        }
    }

    /// Ends all faults, and waits until each tab is live and has sent everything.
    private mutating func waitUntilIdle() async throws {
        if !isGatewayUp { try await restartGateway() }
        for index in tabs.indices { try await setOffline(false, of: index) }
        _ = try await call("resume", on: 0)
        for index in tabs.indices {
            try await eventually("tab \(index) is idle", within: patienceMax) {
                let status = try await call("idle", on: index)
                return status == "idle" ? nil : status
            }
        }
    }

    @discardableResult
    private func call(_ name: String, _ arguments: (any Encodable & Sendable)..., on index: Int) async throws -> String
    {
        let list = try arguments.map { try json($0) }.joined(separator: ", ")
        return try await browser.result(of: "harness.\(name)(\(list))", on: tabs[index].page)
    }

    private func json(_ value: any Encodable) throws -> String {
        String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
    }

    // MARK: Expectations

    /// Waits until the objects of a page equal a download.
    private func expectCopy(of page: Browser.Page, _ name: String) async throws {
        try await eventually("\(name) equals the server", within: .seconds(60)) {
            let differences = try await browser.result(of: "harness.differences()", on: page)
            return differences.isEmpty ? nil : differences
        }
    }

    private func expectNotes() async throws {
        let text = try await browser.result(of: "harness.notes()", on: tabs[0].page)
        let found = try JSONDecoder().decode([String: [String: String]].self, from: Data(text.utf8))
        let problems = model.problems(of: found, results: try results())
        guard problems.isEmpty else { throw Failure(description: problems.joined(separator: "\n")) }
    }

    private func results() throws -> [NoteModel.Result] {
        try NoteModel.Result.all(of: model.otherClient, cluster.conninfo)
    }
}
