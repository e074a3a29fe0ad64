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
    /// What would run as a script if a page took it for markup; each marks the page when it runs.
    static let hostile =
        #"<img src=x onerror="window.caught=1"><script>window.caught=2</script>'"><svg onload=caught=3>"#

    private func withBrowser(
        _ body: @Sendable (ConsoleFixture, Browser, Browser.Page) async throws -> Void
    ) async throws {
        try await withConsole { fixture in
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
        #expect(try await browser.value("document.body.innerText.includes('Parked')", on: page) == "false")
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
        try await browser.wait("document.querySelector('[data-view=picture] .facts b')", on: page)
    }

    private func click(_ selector: String, _ browser: Browser, _ page: Browser.Page) async throws {
        try await browser.wait("document.querySelector('\(selector)')", on: page)
        _ = try await browser.value("document.querySelector('\(selector)').click()", on: page)
    }

    private func text(_ selector: String, _ browser: Browser, _ page: Browser.Page) async throws -> String {
        try await browser.value("document.querySelector('\(selector)').textContent", on: page)
    }

    private func visit(_ hash: String, _ browser: Browser, _ page: Browser.Page, until found: String) async throws {
        _ = try await browser.value("(location.hash = '\(hash)')", on: page)
        try await browser.wait(found, on: page)
    }

    @Test func aDeadKeyIsFoundUnderstoodAndTriedAgain() async throws {
        try await withBrowser { fixture, browser, page in
            try fixture.park("key-1", reason: "the project is closed")
            var look = Look()
            look.parked = [
                MonitorStore.Parked(
                    group: "entry-submitter", topic: "entry.events", dueCount: 0, waitingCount: 0, circuitCount: 0,
                    deadCount: 1)
            ]
            // What was unfolded stays so when the page is brought up to date.
            try await click("[data-view=picture] summary", browser, page)
            fixture.board.publish(look)
            try await browser.wait("document.querySelector('#dead-entry-submitter')", on: page)
            #expect(try await browser.value("document.querySelector('main details').open", on: page) == "true")
            try await click("#dead-entry-submitter", browser, page)
            try await click(".skip", browser, page)
            let place = "document.activeElement.id + location.hash.slice(0, 7)"
            #expect(try await browser.value(place, on: page) == "main#parked")
            try await click("button[data-key=key-1]", browser, page)
            try await browser.wait("document.querySelector('dialog[open] [data-line=reason]')", on: page)
            #expect(try await text("[data-line=reason]", browser, page) == "the project is closed")
            #expect(try fixture.acts("payload.viewed") == ["console:ana@example.com key-1"])
            // It has an address of its own: Back closes it, and Forward comes back to it.
            #expect(try await browser.value("location.hash.includes('open=')", on: page) == "true")
            _ = try await browser.value("history.back()", on: page)
            try await browser.wait("!document.querySelector('dialog') && !location.hash.includes('open=')", on: page)
            _ = try await browser.value("history.forward()", on: page)
            try await browser.wait("document.querySelector('dialog[open] [data-line=reason]')", on: page)
            try await click("#close", browser, page)
            try await browser.wait("!document.querySelector('dialog') && !location.hash.includes('open=')", on: page)
            // How long ago it was parked goes on, though the list waits for the person.
            _ = try await browser.value("(Date.now = ((now) => () => now() + 7200000)(Date.now), '')", on: page)
            try await browser.wait("document.querySelector('time').textContent === '2 h ago'", on: page)
            try await click("button[data-key=key-1]", browser, page)
            try await click("#retry", browser, page)
            #expect(try fixture.acts("parked.retried").isEmpty, "it asks first")
            try await click("#confirm", browser, page)
            try await browser.wait("document.getElementById('notice').textContent === 'It is tried again.'", on: page)
            #expect(try fixture.acts("parked.retried") == ["console:ana@example.com key-1"])
            let dead = try fixture.withDatabase {
                try $0.run("SELECT is_dead, attempts FROM pipeline.parked").decode(Bool.self, Int32.self)
            }
            #expect(dead.count == 1 && !dead[0].0 && dead[0].1 == 0)
            // A worker has taken it, and it died again: the page says so, whatever it lists.
            try fixture.withDatabase {
                _ = try $0.run("UPDATE pipeline.parked SET is_dead = true, attempts = 3, reason = 'it is still closed'")
            }
            let told = "document.querySelector('#notice.bad')?.textContent"
            try await browser.wait("\(told).startsWith('key-1: it is parked again: it is still closed')", on: page)
            _ = try await browser.value("document.getElementById('sign-out').click()", on: page)
            try await browser.wait("document.getElementById('sign-in')", on: page)
            #expect(try await browser.value("document.body.innerText.includes('key-1')", on: page) == "false")
        }
    }

    /// A browser with the cookie of a session that is over, in a network whose attempts are used up.
    @Test func tooManyAttemptsShowTheSignInPageWithTheRetryTime() async throws {
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
            #expect(reason.hasPrefix("Too many attempts; try again in a minute. The next attempt is at "))
            #expect(reason.contains(":"))
            #expect(try await browser.value("document.getElementById('banner').hidden", on: page) == "true")
            try await browser.wait("document.getElementById('sign-in')", on: page)
        }
    }

    /// Handled is not well: an entry may have become invalid.
    @Test func whatCameOfAKeyIsTold() async throws {
        try await withBrowser { fixture, browser, page in
            let id = UUID()
            let subject = "/users/x@example.com/TimeEntry/\(id.text)"
            try fixture.addEntries([id], of: "x@example.com", fields: #"{"status": "invalid"}"#)
            try fixture.park("key-1", reason: "the project is closed", subject: subject)
            try await visit("#parked", browser, page, until: "document.querySelector('button[data-key=key-1]')")
            try await click("button[data-key=key-1]", browser, page)
            try await click("#retry", browser, page)
            try await click("#confirm", browser, page)
            try await browser.wait("document.getElementById('notice').textContent === 'It is tried again.'", on: page)
            try fixture.withDatabase { _ = try $0.run("DELETE FROM pipeline.parked") }
            try await browser.wait("document.querySelector('#notice a')", on: page)
            let told = try await text("#notice", browser, page)
            #expect(told.contains("handled") && told.contains("position 1, status invalid"), "\(told)")
            try await click("#notice a", browser, page)
            try await browser.wait("document.querySelector('#stories h3')", on: page)
            #expect(try await text("#stories h3", browser, page) == subject)
            // The key as it was opened, how its object is, and the time line.
            #expect(try fixture.acts("payload.viewed").count == 3)
        }
    }

    @Test func whatComesFromOutsideIsTextWhateverItLooksLike() async throws {
        try await withBrowser { fixture, browser, page in
            let bad = Self.hostile
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
            var looks = MadeLooks(topics: [bad], partitionCount: 1)
            looks.groups = [bad]
            var look = looks.look(at: 1_800_000_000_000)
            look.at = Timestamp(millisecondsSinceEpoch: 1_800_000_000_000)
            look.problems = [bad: bad]
            look.reasons = [MonitorStore.Reason(group: bad, text: bad, isDead: true, count: 1)]
            fixture.board.publish(look)
            let name = "acme"
            let shows = "document.getElementById('main').textContent.includes(\(quoted(bad)))"
            try await browser.wait(shows, on: page)
            for hash in ["#charts", "#parked"] {
                try await visit(hash, browser, page, until: "location.hash.length > 3 && \(shows)")
            }
            try await visit("#parked", browser, page, until: "document.querySelector('button[data-key]')")
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
            // Every field that the views show, which others write.
            try await visit(
                "#environments", browser, page,
                until: "document.querySelectorAll('[data-view=environments] tbody tr').length === 1")
            let script = "<script>window.caught=2</script>"
            #expect(try await cells(holding: script, browser, page) == "Back end")
            try await visit("#acts", browser, page, until: "document.querySelector('[data-view=acts] tbody tr')")
            #expect(try await cells(holding: script, browser, page) == "Detail,From,Of,What,Who")
            try await click("[data-view=acts] form button", browser, page)
            try await visit("#realms?environment=\(name)", browser, page, until: shows)
            try await visit(
                "#realms?environment=\(name)&path=/users/x@y.z", browser, page,
                until: "document.querySelector('[data-kind]')")
            try await click("#realm .buttons button", browser, page)
            try await browser.wait("document.querySelector('#realm caption + thead')", on: page)
            #expect(try await browser.value("window.caught", on: page) == "undefined")
            let markup = "document.querySelectorAll('main img, main script, dialog img, dialog script').length"
            #expect(try await browser.value(markup, on: page) == "0")
            // The policy holds even where a fault would write markup.
            let written = """
                (() => { try { document.body.innerHTML = '<img src=x onerror=caught=9>'; return 'written' }
                catch { return 'refused' } })()
                """
            #expect(try await browser.value(written, on: page) == "refused")
        }
    }

    /// The heads of the columns in which a table of the view shows a text.
    private func cells(holding text: String, _ browser: Browser, _ page: Browser.Page) async throws -> String {
        try await browser.value(
            """
            [...new Set([...document.querySelectorAll('main td')]
                .filter(cell => cell.textContent.includes(\(quoted(text))))
                .map(cell => cell.dataset.label))].sort()
            """, on: page)
    }

    /// A text as a literal of JavaScript.
    private func quoted(_ text: String) -> String {
        (try? JSONEncoder().encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    @Test func anHourOfTwoHundredPartitionsDoesNotGrowThePageOrTheService() async throws {
        try await withBrowser { fixture, browser, page in
            var looks = MadeLooks(
                topics: (0..<10).map { "topic-\($0).events" }, partitionCount: 20)
            var at: Int64 = 1_800_000_000_000
            func pass(_ seconds: Int64) {
                for _ in 0..<(seconds / 10) {
                    at += 10_000
                    var look = looks.look(at: at)
                    look.at = Timestamp(millisecondsSinceEpoch: at)
                    fixture.board.publish(look)
                }
            }
            pass(600)
            try await visit("#charts", browser, page, until: "document.querySelectorAll('[data-chart]').length === 10")
            let loaded = "performance.getEntriesByType('resource').reduce((sum, one) => sum + one.transferSize, 0)"
            let byteCount = try #require(Double(try await browser.value(loaded, on: page)))
            #expect(byteCount < 200_000, "\(byteCount) bytes were loaded")
            pass(3_600)
            let (heap, memory) = (try await heap(browser, page), residentBytes())
            for _ in 0..<12 {
                pass(3_600)
                try await visit("#picture", browser, page, until: "document.querySelector('[data-topic]')")
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

    /// Of this process, which the service is in.
    private func residentBytes() -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 4_096 } ?? 0
    }
}
