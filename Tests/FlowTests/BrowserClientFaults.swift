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
    /// Maximum time that a tab needs to store a mutation. On a busy machine, Chromium needs up to a minute to delete a
    /// database, and opens no other of the same origin meanwhile.
    private static let writeMax = Duration.seconds(90)
    private static let idleMax = patienceMax

    struct Failure: Error, CustomStringConvertible { let description: String }

    private struct Tab {
        var page: Browser.Page
        var isOffline = false
    }

    private let gateway: GatewayFaults
    private let browser: Browser
    /// A page of the browser that has no store.
    private let controller: Browser.Page
    private let origin: String
    private let phone: IntegrationPhone
    private let url: String
    private let realm: String
    private let log: MutationLog
    private var random: SplitMix64
    private var tabs: [Tab] = []
    /// Tabs that were open when the storage was cleared and have not restored it yet.
    private var witnesses: Set<Int>?
    private var model: NoteModel
    private var textCount = 0
    private(set) var steps: [String] = []
    private(set) var writeTimeMax = Duration.zero
    private(set) var idleTimeMax = Duration.zero

    private var cluster: LocalCluster { gateway.cluster }

    init(_ gateway: GatewayFaults, _ browser: Browser, origin: String, seed: UInt64) async throws {
        self.gateway = gateway
        self.browser = browser
        self.origin = origin
        let email = "seed\(seed)@example.com"
        let phone = try await IntegrationPhone(gateway.cluster, email)
        self.phone = phone
        realm = "/users/\(email)"
        random = SplitMix64(seed: seed)
        log = MutationLog(seed: seed + 1)
        model = NoteModel(log: log)
        try await eventually("the gateway has the environment") {
            let status = try? await phone.status()
            return status == 200 ? nil : "\(status ?? 0)"
        }
        let token = phone.headers[0].value.dropFirst("Bearer ".count)
        url = "\(origin)/app/?gateway=\(gateway.cluster.gatewayURL)&name=seed\(seed)&token=\(token)"
        controller = try await browser.open("about:blank")
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
        try await expectNotes()
        // The store alone: no tab is connected, and the next one opens paused.
        try await call("pause", on: 0)
        for tab in tabs { try await browser.close(tab.page) }
        tabs = [Tab(page: try await open())]
        try await expectCopy(of: tabs[0].page, "the store")
        // Nothing was sent twice since.
        try await expectNotes()
    }

    /// Closes the pages and deletes the store.
    func end() async {
        for tab in tabs { try? await browser.close(tab.page) }
        try? await browser.setQuota(nil, of: origin, on: controller)
        try? await browser.clearDatabases(of: origin, on: controller)
        try? await browser.close(controller)
        phone.client.shutDown()
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
        case 0..<32: try await write(on: index)
        case 32..<37: try await writeOnBothTabs()
        case 37..<40: try await writeElsewhere(on: index)
        case 40..<48: try await writeByOtherDevice()
        case 48..<54: try await replaceTab(index)
        case 54..<59: try await closeDuringWrites(index)
        case 59..<64: try await reload(index)
        case 64..<71:
            let isOffline = !tabs[0].isOffline
            steps.append(isOffline ? "network off" : "network on")
            for index in tabs.indices { try await setOffline(isOffline, of: index) }
        case 71..<74:
            steps.append("kill the gateway")
            await gateway.kill(for: .milliseconds(Int.random(in: 0..<1_500, using: &random)))
        case 74..<79:
            let name = random.happens(50) ? "pause" : "resume"
            steps.append("\(name) in tab \(index)")
            try await call(name, on: index)
            if witnesses?.contains(index) == true { witnesses = nil }
        case 79..<84: try await waitUntilIdle()
        case 84..<92: try await evict(index)
        case 92..<95: try await fillStorage(index)
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
            try await write(.put, id ?? random.id().text, ["title": uniqueText(), "body": uniqueText()], on: index)
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
        let write = NoteModel.Write(operation: operation, realm: realm, id: id, fields: fields)
        try await take(send(write, on: index), of: write, on: index)
    }

    /// A write that the server rejects.
    private mutating func writeElsewhere(on index: Int) async throws {
        let write = NoteModel.Write(
            operation: .put, realm: "/users/other@example.com", id: random.id().text, fields: ["title": uniqueText()])
        try await take(send(write, on: index), of: write, on: index)
    }

    private mutating func writeOnBothTabs() async throws {
        let writes = [0, 1].map { _ in
            NoteModel.Write(operation: .put, realm: realm, id: random.id().text, fields: ["title": uniqueText()])
        }
        let tabs = self
        async let first = tabs.send(writes[0], on: 0)
        async let second = tabs.send(writes[1], on: 1)
        let reports = (try await first, try await second)
        try await take(reports.0, of: writes[0], on: 0)
        try await take(reports.1, of: writes[1], on: 1)
    }

    private func send(_ write: NoteModel.Write, on index: Int) async throws -> (report: String, time: Duration) {
        let start = ContinuousClock.now
        let report = try await call("write", write.operation.rawValue, write.realm, write.id, write.fields, on: index)
        return (report, .now - start)
    }

    /// Records what a tab reported of a write. A tab that was opened after the storage was cleared may have no login.
    private mutating func take(
        _ sent: (report: String, time: Duration), of write: NoteModel.Write, on index: Int
    ) async throws {
        steps.append("tab \(index): \(write.operation) \(write.id) \(write.fields): \(sent.report) \(sent.time)")
        writeTimeMax = max(writeTimeMax, sent.time)
        guard sent.time < Self.writeMax else { throw Failure(description: "a write took \(sent.time)") }
        switch sent.report {
        case "stored":
            model.add(write, isAllowed: write.realm == realm)
            if witnesses?.contains(index) == true { witnesses = nil }
        case "storage-full": model.addRefused(write)
        case "signed-out": try await signIn()
        default: throw Failure(description: "a write failed: \(sent.report)")
        }
    }

    /// Writes as another device of the person, at once.
    private mutating func writeByOtherDevice() async throws {
        let existing = random.happens(60) ? model.notes.randomElement(using: &random) : nil
        let isPatch = existing != nil && random.happens(50)
        let write = NoteModel.Write(
            operation: isPatch ? .patch : .put, realm: realm, id: existing ?? random.id().text,
            fields: isPatch ? ["title": uniqueText()] : ["title": uniqueText(), "body": uniqueText()])
        steps.append("other device: \(write)")
        let sequence = model.addOfOtherDevice(write)
        let body = """
            {"clientId":"\(model.otherClient.text)","mutations":[{"sequence":\(sequence),"realm":"\(realm)",
            "op":"\(write.operation)","kind":"Note","id":"\(write.id)","fields":\(try json(write.fields))}]}
            """
        try await eventually("the gateway takes a write", within: .seconds(60)) {
            let request = Request(
                "POST", cluster.gatewayURL + "/v1/mutations", headers: phone.headers, body: Array(body.utf8))
            do {
                let response = try await phone.client.send(request)
                return response.status == 200 ? nil : String(decoding: response.body, as: UTF8.self)
            } catch {
                return "\(error)"
            }
        }
    }

    private mutating func replaceTab(_ index: Int) async throws {
        steps.append("close tab \(index), open another")
        try loseMemory(of: index)
        try await close(tabs[index].page)
        tabs[index] = Tab(page: try await open())
    }

    /// Closes a tab while it writes new notes: each may be lost, because the tab did not report it as stored.
    private mutating func closeDuringWrites(_ index: Int) async throws {
        let ids = (0..<3).map { _ in random.id().text }
        let title = uniqueText()
        steps.append("close tab \(index) while it writes \(ids)")
        model.addUnreported(
            ids.map { .init(operation: .put, realm: realm, id: $0, fields: ["title": "\(title) \($0)"]) })
        _ = try await call("start", realm, ids, title, on: index)
        try loseMemory(of: index)
        try await close(tabs[index].page)
        tabs[index] = Tab(page: try await open())
    }

    private mutating func reload(_ index: Int) async throws {
        steps.append("reload tab \(index)")
        try await setOffline(false, of: index)
        try loseMemory(of: index)
        _ = try await browser.value("globalThis.harness = undefined", on: tabs[index].page)
        try await browser.go(to: url, on: tabs[index].page)
        try await waitUntilOpened(tabs[index].page)
    }

    // MARK: Steps with the storage

    /// Deletes the database while tabs are open: they restore what they have in memory.
    private mutating func evict(_ index: Int) async throws {
        let isDuringWrites = random.happens(40)
        steps.append("evict the storage of open tabs\(isDuringWrites ? " while tab \(index) writes" : "")")
        if isDuringWrites {
            let ids = (0..<3).map { _ in random.id().text }
            let title = uniqueText()
            model.addUnreported(
                ids.map { .init(operation: .put, realm: realm, id: $0, fields: ["title": "\(title) \($0)"]) })
            _ = try await call("start", realm, ids, title, on: index)
        }
        witnesses = Set(tabs.indices)
        try await browser.clearDatabases(of: origin, on: controller)
        if random.happens(30) { try await browser.clearDatabases(of: origin, on: controller) }
    }

    /// Writes while the storage is full.
    private mutating func fillStorage(_ index: Int) async throws {
        steps.append("the storage is full")
        try await browser.setQuota(1, of: origin, on: controller)
        for _ in 0..<2 {
            try await write(.put, random.id().text, ["title": uniqueText()], on: index)
        }
        if random.happens(30) { try await replaceTab(1 - index) }
        try await browser.setQuota(nil, of: origin, on: controller)
        steps.append("the storage has space")
    }

    /// Deletes the database when no tab is left.
    private mutating func clearStorage() async throws {
        if random.happens(50) { try await waitUntilIdle() }
        steps.append("clear the storage, tabs closed")
        for tab in tabs { try await close(tab.page) }
        try await browser.clearDatabases(of: origin, on: controller)
        model.clear(try results())
        witnesses = nil
        for index in tabs.indices { tabs[index] = Tab(page: try await open()) }
        try await signIn()
    }

    /// Notes that a tab loses its memory. Without the last one, nobody restores the evicted store.
    private mutating func loseMemory(of index: Int) throws {
        guard witnesses?.remove(index) != nil, witnesses?.isEmpty == true else { return }
        witnesses = nil
        steps.append("no tab remembers the evicted store")
        model.clear(try results())
    }

    // MARK: Tabs

    private func open() async throws -> Browser.Page {
        let interception = Browser.Interception("*/v1/mutations") { [log] in log.record($0) }
        let page = try await browser.open(url, isInOwnWindow: true, intercepting: interception)
        try await waitUntilOpened(page)
        return page
    }

    /// Closes a tab. Without a network before, it could send a last request that is not recorded.
    private func close(_ page: Browser.Page) async throws {
        try await browser.setOffline(true, of: page)
        try await browser.close(page)
    }

    private func waitUntilOpened(_ page: Browser.Page) async throws {
        try await browser.wait("globalThis.harness", on: page)
        _ = try await browser.result(of: "harness.opened", on: page)
    }

    private mutating func setOffline(_ isOffline: Bool, of index: Int) async throws {
        guard tabs[index].isOffline != isOffline else { return }
        try await browser.setOffline(isOffline, of: tabs[index].page)
        tabs[index].isOffline = isOffline
    }

    /// Signs the person in, in one tab; the other follows. A tab that remembers the login restores it by itself.
    private mutating func signIn() async throws {
        await gateway.waitUntilUp()
        for index in tabs.indices { try await setOffline(false, of: index) }
        if try await call("isSignedIn", witnesses == nil ? 0 : 5_000, on: 0) != "true" {
            steps.append("sign in")
            _ = try await call("signIn", on: 0)
        }
        for index in tabs.indices {
            guard try await call("isSignedIn", 20_000, on: index) == "true" else {
                throw Failure(description: "tab \(index) is not signed in")
            }
        }
    }

    /// Ends all faults, and waits until each tab is live and has sent everything.
    private mutating func waitUntilIdle() async throws {
        steps.append("wait until idle")
        let start = ContinuousClock.now
        try await signIn()
        try await call("resume", on: 0)
        for index in tabs.indices {
            try await eventually("tab \(index) is idle", within: Self.idleMax) {
                await gateway.waitUntilUp()
                let status = try await call("idle", 2_000, on: index)
                return status == "idle" ? nil : status
            }
        }
        witnesses = nil
        idleTimeMax = max(idleTimeMax, .now - start)
        try await expectRejections()
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

    /// Waits until each tab shows the rejected mutations, and dismisses them.
    private mutating func expectRejections() async throws {
        struct Shown: Decodable {
            let realm, op, id: String
            let fields: [String: String]
        }
        let (expected, possible) = (model.rejected, model.rejected.union(model.losableRejected))
        for index in tabs.indices {
            try await eventually("tab \(index) shows the rejected mutations", within: Self.idleMax) {
                let text = try await call("rejected", on: index)
                let shown = try JSONDecoder().decode([Shown].self, from: Data(text.utf8))
                let ids = Set(shown.map(\.id))
                let isComplete = expected.allSatisfy { ids.contains($0.id) } && ids.isSubset(of: possible.map(\.id))
                return isComplete && ids.count == shown.count ? nil : "\(text), expected \(expected)"
            }
        }
        try await call("dismissAll", on: 0)
        model.dismiss()
    }

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
        let results = try results()
        let problems = model.problems(of: results) + model.problems(of: found, results: results)
        guard problems.isEmpty else { throw Failure(description: problems.joined(separator: "\n")) }
    }

    private func results() throws -> [NoteModel.Result] {
        try NoteModel.Result.all(of: model.otherClient, cluster.conninfo)
    }
}

/// The gateway that all seeds share. Each kill affects all of them.
actor GatewayFaults {
    let cluster: LocalCluster
    private var restart: Task<Void, Never>?

    init(_ cluster: LocalCluster) { self.cluster = cluster }

    /// Kills the gateway and restarts it after a while, unless it is being restarted.
    func kill(for time: Duration) {
        guard restart == nil else { return }
        restart = Task {
            await cluster.kill9(.gateway)
            try? await Task.sleep(for: time)
            do {
                try await cluster.restart(.gateway)
                try await cluster.waitUntilReady(.gateway)
            } catch {
                Issue.record("the gateway cannot be restarted: \(error)")
            }
            restart = nil
        }
    }

    func waitUntilUp() async { await restart?.value }
}
