import Essentials
import Foundation
import LocalCluster
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import LagMonitor

/// The console in a real browser.
@Suite(.ownThreads, .serialized) struct ConsoleBrowserTests {
    /// Markup that would run a script; each part marks the page when it runs.
    static let hostile =
        #"<img src=x onerror="window.caught=1"><script>window.caught=2</script>'"><svg onload=caught=3>"#

    func withBrowser(
        brokers: String = "127.0.0.1:1",
        _ body: @Sendable (ConsoleFixture, Browser, Browser.Page) async throws -> Void
    ) async throws {
        try await withConsole(brokers: brokers) { fixture in
            let folder = try ClusterFolder("console-browser")
            defer { folder.remove() }
            let browser = try await Browser(in: folder)
            let outcome: Result<Void, any Error>
            do {
                let page = try await browser.open(fixture.url + "/")
                try await signIn(browser, page)
                try await body(fixture, browser, page)
                outcome = .success(())
            } catch {
                outcome = .failure(error)
            }
            await browser.end()
            try outcome.get()
        }
    }

    private func signIn(_ browser: Browser, _ page: Browser.Page) async throws {
        try await browser.wait("document.getElementById('sign-in')", on: page)
        #expect(try await browser.value("document.body.innerText.includes('Deferred')", on: page) == "false")
        _ = try await browser.value("document.getElementById('sign-in').click()", on: page)
        try await browser.wait("document.querySelector('input[name=password]')", on: page)
        _ = try await browser.value(
            """
            (document.querySelector('input[name=email]').value = '\(ConsoleFixture.administrator)',
                document.querySelector('input[name=password]').value = '\(ConsoleFixture.password)',
                document.querySelector('form button').click())
            """, on: page)
        try await browser.wait("document.querySelector('button[value=allow]')", on: page)
        _ = try await browser.value("document.querySelector('button[value=allow]').click()", on: page)
        try await browser.wait("document.querySelector('[data-view=overview] .facts b')", on: page)
    }

    func click(_ selector: String, _ browser: Browser, _ page: Browser.Page) async throws {
        try await browser.wait("document.querySelector('\(selector)')", on: page)
        _ = try await browser.value("document.querySelector('\(selector)').click()", on: page)
    }

    func text(_ selector: String, _ browser: Browser, _ page: Browser.Page) async throws -> String {
        try await browser.value("document.querySelector('\(selector)').textContent", on: page)
    }

    func visit(_ hash: String, _ browser: Browser, _ page: Browser.Page, until condition: String) async throws {
        _ = try await browser.value("(location.hash = '\(hash)')", on: page)
        try await browser.wait(condition, on: page)
    }

    @Test func deadLetteredKeyCanBeInspectedAndRetried() async throws {
        try await withBrowser { fixture, browser, page in
            try fixture.park("key-1", reason: "the project is closed")
            var snapshot = MonitorSnapshot()
            snapshot.parked = [
                MonitorStore.Parked(
                    group: "entry-submitter", topic: "entry.events", dueCount: 0, waitingCount: 0, circuitCount: 0,
                    deadCount: 1)
            ]
            // Unfolded details stay open after a refresh.
            try await click("[data-view=overview] summary", browser, page)
            fixture.board.publish(snapshot)
            try await browser.wait("document.querySelector('#dead-entry-submitter')", on: page)
            #expect(try await browser.value("document.querySelector('main details').open", on: page) == "true")
            try await click("#dead-entry-submitter", browser, page)
            try await click(".skip", browser, page)
            let focus = "document.activeElement.id + location.hash.slice(0, 9)"
            #expect(try await browser.value(focus, on: page) == "main#deferred")
            try await click("button[data-key=key-1]", browser, page)
            try await browser.wait("document.querySelector('dialog[open] [data-line=reason]')", on: page)
            #expect(try await text("[data-line=reason]", browser, page) == "the project is closed")
            #expect(try fixture.acts("payload.viewed") == ["console:ana@example.com key-1"])
            // An open key has an address: Back closes it, Forward reopens it.
            #expect(try await browser.value("location.hash.includes('open=')", on: page) == "true")
            _ = try await browser.value("history.back()", on: page)
            try await browser.wait("!document.querySelector('dialog') && !location.hash.includes('open=')", on: page)
            _ = try await browser.value("history.forward()", on: page)
            try await browser.wait("document.querySelector('dialog[open] [data-line=reason]')", on: page)
            try await click("#close", browser, page)
            try await browser.wait("!document.querySelector('dialog') && !location.hash.includes('open=')", on: page)
            // Relative times are updated, although the list is not refreshed.
            _ = try await browser.value("(Date.now = ((now) => () => now() + 7200000)(Date.now), '')", on: page)
            try await browser.wait("document.querySelector('time').textContent === '2 h ago'", on: page)
            try await click("button[data-key=key-1]", browser, page)
            try await click("#retry", browser, page)
            #expect(try fixture.acts("parked.retried").isEmpty, "confirmation is required")
            try await click("#confirm", browser, page)
            try await browser.wait("document.getElementById('notice').textContent === 'Retry requested.'", on: page)
            #expect(try fixture.acts("parked.retried") == ["console:ana@example.com key-1"])
            let dead = try fixture.withDatabase {
                try $0.run("SELECT is_dead, attempts FROM pipeline.parked").decode(Bool.self, Int32.self)
            }
            #expect(dead.count == 1 && !dead[0].0 && dead[0].1 == 0)
            // A worker dead-letters it again: the page displays it regardless of the list's filter.
            try fixture.withDatabase {
                _ = try $0.run("UPDATE pipeline.parked SET is_dead = true, attempts = 3, reason = 'still closed'")
            }
            let notice = "document.querySelector('#notice.bad')?.textContent"
            try await browser.wait("\(notice).startsWith('key-1: deferred again: still closed')", on: page)
            _ = try await browser.value("document.getElementById('sign-out').click()", on: page)
            try await browser.wait("document.getElementById('sign-in')", on: page)
            #expect(try await browser.value("document.body.innerText.includes('key-1')", on: page) == "false")
        }
    }

    /// The browser has the cookie of an expired session, in a network whose attempts are exhausted.
    @Test func rateLimitedPageShowsSignInAndRetryTime() async throws {
        try await withBrowser { _, browser, page in
            _ = try await browser.value("document.getElementById('sign-out').click()", on: page)
            try await browser.wait("document.getElementById('sign-in')", on: page)
            _ = try await browser.value("document.cookie = 'fieldpost-console=over; path=/'", on: page)
            _ = try await browser.value(
                """
                (async () => {
                  let status = 0;
                  for (let count = 0; count < 1000 && status !== 429; count += 1) {
                    status = (await fetch('/api/session')).status;
                  }
                  window.isLimited = status === 429;
                })()
                """, on: page)
            try await browser.wait("window.isLimited", on: page)
            _ = try await browser.value("location.reload()", on: page)
            try await browser.wait("!window.isLimited && document.querySelector('main [role=status]')", on: page)
            let reason = try await text("main [role=status]", browser, page)
            #expect(reason.hasPrefix("Too many attempts; retry in one minute. The next attempt is at "))
            #expect(reason.contains(":"))
            #expect(try await browser.value("document.getElementById('banner').hidden", on: page) == "true")
            try await browser.wait("document.getElementById('sign-in')", on: page)
        }
    }

    /// A processed key is not necessarily a success: an entry may have become invalid.
    @Test func retryReportsOutcome() async throws {
        try await withBrowser { fixture, browser, page in
            let id = UUID()
            let subject = "/users/x@example.com/TimeEntry/\(id.text)"
            try fixture.addEntries([id], of: "x@example.com", fields: #"{"status": "invalid"}"#)
            try fixture.park("key-1", reason: "the project is closed", subject: subject)
            try await visit("#deferred", browser, page, until: "document.querySelector('button[data-key=key-1]')")
            try await click("button[data-key=key-1]", browser, page)
            try await click("#retry", browser, page)
            try await click("#confirm", browser, page)
            try await browser.wait("document.getElementById('notice').textContent === 'Retry requested.'", on: page)
            try fixture.withDatabase { _ = try $0.run("DELETE FROM pipeline.parked") }
            try await browser.wait("document.querySelector('#notice a')", on: page)
            let notice = try await text("#notice", browser, page)
            #expect(notice.contains("processed") && notice.contains("position 1, status invalid"), "\(notice)")
            try await click("#notice a", browser, page)
            try await browser.wait("document.querySelector('#timelines h3')", on: page)
            #expect(try await text("#timelines h3", browser, page) == subject)
            // The opened key, its object's state, and the timeline.
            #expect(try fixture.acts("payload.viewed").count == 3)
        }
    }

    /// Stores a text in all external fields that the views display.
    ///
    /// - Returns: The ID of the entry.
    private func store(_ bad: String, _ fixture: ConsoleFixture) async throws -> UUID {
        let json = String(decoding: try JSONEncoder().encode(["text": bad, bad: "x"]), as: UTF8.self)
        let id = UUID()
        try await withOwnThread {
            try fixture.addEntries([id], of: "x@y.z", fields: json)
            var connection = try Connection(fixture.database)
            try connection.run(
                """
                INSERT INTO store.change (environment_id, realm_id, position, kind, id, traceparent)
                SELECT id, 77, 1, \(Kind.timeEntry), \(id), \(bad) FROM realm.environment
                """)
        }
        try fixture.withDatabase { connection in
            _ = try connection.run(
                "UPDATE backend.connection SET url = \(bad)")
            _ = try connection.run(
                "INSERT INTO realm.realm (environment_id, path) SELECT id, '/x' || \(bad) FROM realm.environment")
            _ = try connection.run(
                """
                INSERT INTO access.audit (environment_id, actor, action, subject, detail, address)
                SELECT id, \(bad), \(bad), \(bad), jsonb_build_object(\(bad)::text, 'x', 'y', \(bad)::text), \(bad)
                FROM realm.environment
                """)
        }
        try fixture.park(
            bad, group: bad, topic: bad, reason: bad,
            subject: "/users/x@y.z/TimeEntry/\(id.uuidString.lowercased())")
        var generator = SnapshotGenerator(topics: [bad], partitionCount: 1)
        generator.groups = [bad]
        var snapshot = generator.snapshot(at: 1_800_000_000_000)
        snapshot.at = Timestamp(millisecondsSinceEpoch: 1_800_000_000_000)
        snapshot.problems = [bad: bad]
        snapshot.reasons = [MonitorStore.Reason(group: bad, text: bad, isDead: true, count: 1)]
        fixture.board.publish(snapshot)
        return id
    }

    @Test func externalContentIsDisplayedAsText() async throws {
        try await withBrowser { fixture, browser, page in
            let bad = Self.hostile
            let id = try await store(bad, fixture)
            let name = "acme"
            let shows = "document.getElementById('main').textContent.includes(\(quoted(bad)))"
            try await browser.wait(shows, on: page)
            for hash in ["#charts", "#deferred"] {
                try await visit(hash, browser, page, until: "location.hash.length > 3 && \(shows)")
            }
            try await visit(
                "#topic?name=' + encodeURIComponent(\(quoted(bad))) + '", browser, page,
                until: "document.querySelector('[data-view=topic] caption + thead') && \(shows)")
            try await visit("#deferred", browser, page, until: "document.querySelector('button[data-key]')")
            try await click("button[data-key]", browser, page)
            try await browser.wait("document.getElementById('payload')?.textContent.includes('onerror')", on: page)
            #expect(try await text("[data-line=reason]", browser, page) == bad)
            try await visit(
                "#realms?environment=\(name)&path=/users/x@y.z", browser, page,
                until: "document.querySelector('[data-kind]')")
            try await click("[data-kind]", browser, page)
            try await browser.wait(
                "document.querySelector('[data-object] pre')?.textContent.includes('onerror')", on: page)
            try await visit(
                "#trace?environment=\(name)&id=\(id.uuidString)", browser, page,
                until: "document.querySelector('.line li') && \(shows)")
            // All external fields that the views display.
            try await visit(
                "#environments", browser, page,
                until: "document.querySelectorAll('[data-view=environments] tbody tr').length === 1")
            let script = "<script>window.caught=2</script>"
            #expect(try await cells(holding: script, browser, page) == "Back end")
            try await visit("#audit", browser, page, until: "document.querySelector('[data-view=audit] tbody tr')")
            #expect(try await cells(holding: script, browser, page) == "Action,Address,Detail,Principal,Subject")
            try await click("[data-view=audit] form button", browser, page)
            try await visit("#realms?environment=\(name)", browser, page, until: shows)
            try await visit(
                "#realms?environment=\(name)&path=/users/x@y.z", browser, page,
                until: "document.querySelector('[data-kind]')")
            try await click("#realm .buttons button", browser, page)
            try await browser.wait("document.querySelector('#realm caption + thead')", on: page)
            #expect(try await browser.value("window.caught", on: page) == "undefined")
            let markup = "document.querySelectorAll('main img, main script, dialog img, dialog script').length"
            #expect(try await browser.value(markup, on: page) == "0")
            // The policy also prevents a faulty script from inserting markup.
            let insertion = """
                (() => { try { document.body.innerHTML = '<img src=x onerror=caught=9>'; return 'inserted' }
                catch { return 'blocked' } })()
                """
            #expect(try await browser.value(insertion, on: page) == "blocked")
        }
    }

    /// Returns the headings of the table columns that contain a text.
    private func cells(holding text: String, _ browser: Browser, _ page: Browser.Page) async throws -> String {
        try await browser.value(
            """
            [...new Set([...document.querySelectorAll('main td')]
                .filter(cell => cell.textContent.includes(\(quoted(text))))
                .map(cell => cell.dataset.label))].sort()
            """, on: page)
    }

    /// Returns a JavaScript string literal.
    private func quoted(_ text: String) -> String {
        (try? JSONEncoder().encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    @Test func memoryIsStableWith200Partitions() async throws {
        try await withBrowser { fixture, browser, page in
            var generator = SnapshotGenerator(
                topics: (0..<10).map { "topic-\($0).events" }, partitionCount: 20)
            var at: Int64 = 1_800_000_000_000
            func advance(_ seconds: Int64) {
                for _ in 0..<(seconds / 10) {
                    at += 10_000
                    var snapshot = generator.snapshot(at: at)
                    snapshot.at = Timestamp(millisecondsSinceEpoch: at)
                    fixture.board.publish(snapshot)
                }
            }
            advance(600)
            try await visit("#charts", browser, page, until: "document.querySelectorAll('[data-chart]').length === 10")
            let drawn = "[...document.querySelectorAll('.chart path')].filter(path => path.getAttribute('d')).length"
            #expect(try await browser.value(drawn, on: page) == "30", "lag, in and out of each chart")
            let loaded = "performance.getEntriesByType('resource').reduce((sum, one) => sum + one.transferSize, 0)"
            let byteCount = try #require(Double(try await browser.value(loaded, on: page)))
            #expect(byteCount < 200_000, "\(byteCount) bytes were loaded")
            advance(3_600)
            let (heap, memory) = (try await heap(browser, page), residentBytes())
            for _ in 0..<12 {
                advance(3_600)
                try await visit("#overview", browser, page, until: "document.querySelector('[data-topic]')")
                try await visit(
                    "#charts", browser, page, until: "document.querySelectorAll('[data-chart]').length === 10")
            }
            let (laterHeap, laterMemory) = (try await self.heap(browser, page), residentBytes())
            print("loaded \(byteCount) B; heap \(heap) → \(laterHeap) B; service \(memory) → \(laterMemory) B")
            #expect(laterHeap < heap + 1_500_000, "\(heap) → \(laterHeap)")
            #expect(laterMemory < memory + 64 << 20, "\(memory) → \(laterMemory)")
        }
    }

    private func heap(_ browser: Browser, _ page: Browser.Page) async throws -> Double {
        try await browser.heapBytes(of: page)
    }

    /// The resident memory of this process, which contains the service.
    private func residentBytes() -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 4_096 } ?? 0
    }
}
