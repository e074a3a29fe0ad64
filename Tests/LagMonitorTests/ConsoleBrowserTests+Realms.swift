import Essentials
import Foundation
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

@testable import LagMonitor

extension ConsoleBrowserTests {
    /// The accessible names of the elements that can be activated and occur more than once.
    private static let repeatedNames = """
        [...document.querySelectorAll('main button, main a, main summary')]
            .map(element => element.getAttribute('aria-label') || element.textContent.trim())
            .filter((name, index, names) => names.indexOf(name) !== index).join()
        """

    /// Objects have titles, and the view moves to the objects of the selected kind.
    @Test func objectsOfAKindAreShown() async throws {
        try await withBrowser { fixture, browser, page in
            let fields = #"{"status": "released", "text": "Survey", "entryDate": "2026-03-30"}"#
            let ids = [UUID(), UUID()]
            try fixture.addEntries(ids, of: "x@example.com", fields: fields)
            try await visit(
                "#realms?environment=acme&path=/users/x@example.com", browser, page,
                until: "document.querySelector('[data-kind=TimeEntry]')")
            // The objects are outside of the window, as below many kinds.
            _ = try await browser.value("(document.getElementById('objects').style.marginTop = '4000px')", on: page)
            try await click("[data-kind=TimeEntry]", browser, page)
            try await browser.wait("document.querySelectorAll('[data-object]').length === 2", on: page)
            let summary = try await text("[data-object] summary", browser, page)
            #expect(["2026-03-30", "released", "Survey"].allSatisfy(summary.contains), "\(summary)")
            let isVisible = """
                (() => {
                    const { top, bottom } = document.activeElement.getBoundingClientRect();
                    return document.activeElement.textContent === 'TimeEntry' && top >= 0 && bottom <= innerHeight;
                })()
                """
            #expect(try await browser.value(isVisible, on: page) == "true")
            #expect(try await browser.value(Self.repeatedNames, on: page) == "")
        }
    }

    /// Messages are displayed like objects, and only on request.
    @Test func messagesOfATopicAreShown() async throws {
        let cluster = try MockCluster(topics: ["entry.events": 1])
        let id = UUID()
        let fields = #"{"status": "released", "text": "Survey", "entryDate": "2026-03-30"}"#
        try EntryMessage.write(
            [
                EntryMessage(id: id, position: 1, fields: fields), EntryMessage(id: id, position: 2, fields: fields),
                EntryMessage(id: id, position: 3, fields: nil),
            ], to: cluster.address)
        try await withBrowser(brokers: cluster.address) { fixture, browser, page in
            try await visit(
                "#topic?name=entry.events", browser, page, until: "document.querySelector('#messages form button')")
            #expect(try fixture.acts("payload.viewed").isEmpty)
            try await click("#messages form button", browser, page)
            try await browser.wait("document.querySelectorAll('#messages [data-object]').length === 3", on: page)
            let summaries = "[...document.querySelectorAll('#messages summary')].map(one => one.textContent).join('|')"
            let text = try await browser.value(summaries, on: page)
            let lines = text.split(separator: "|")
            #expect(["0/2", "deleted", id.text].allSatisfy { lines[0].contains($0) }, "\(text)")
            #expect(["0/1", "2026-03-30", "released", "Survey"].allSatisfy { lines[1].contains($0) }, "\(text)")
            #expect(try await browser.value(Self.repeatedNames, on: page) == "")
            #expect(try fixture.acts("payload.viewed") == ["console:ana@example.com entry.events"])
        }
        withExtendedLifetime(cluster) {}
    }

    /// The picture has the kinds of back ends, with their open circuits and the flows of their callers.
    @Test func backEndsAreDrawnWithTheirCircuits() async throws {
        try await withBrowser { fixture, browser, page in
            let state = "document.querySelector('[data-back-end=sap] .state')?.textContent"
            try await browser.wait("\(state) === 'unknown'", on: page)
            var snapshot = MonitorSnapshot()
            snapshot.circuits = []
            fixture.board.publish(snapshot)
            try await browser.wait("\(state) === 'closed'", on: page)
            snapshot.circuits = [
                MonitorStore.OpenCircuit(environment: "acme", group: "entry-submitter", keyCount: 7),
                MonitorStore.OpenCircuit(environment: "acme", group: "defect-submitter", keyCount: 2),
            ]
            fixture.board.publish(snapshot)
            try await browser.wait("\(state) === '1 open'", on: page)
            #expect(try await text("[data-back-end=sap] li", browser, page) == "acme: 7 waiting in entry-submitter")
            // Also in a narrow window, which has no drawing.
            let rule = "document.styleSheets[0].insertRule('.overview > svg { display: block !important; }')"
            _ = try await browser.value(rule, on: page)
            try await browser.wait("document.querySelectorAll('.overview .pipe.bad').length === 1", on: page)
        }
    }

    @Test func displayedKeysAreRetriedAfterConfirmation() async throws {
        try await withBrowser { fixture, browser, page in
            for number in 1...30 { try fixture.park("key-\(number)", reason: "the project is closed") }
            try await visit(
                "#deferred", browser, page, until: "document.querySelectorAll('button[data-key]').length === 30")
            try await click("#retry-all", browser, page)
            #expect(try fixture.acts("parked.retried").isEmpty, "confirmation is required")
            try await click("#confirm-all", browser, page)
            let result = "document.getElementById('notice').textContent"
            try await browser.wait("\(result) === 'Retry requested for 30 of 30 keys.'", on: page)
            #expect(try fixture.acts("parked.retried").count == 30)
        }
    }

    @Test func controlsHaveUniqueNames() async throws {
        try await withBrowser { fixture, browser, page in
            var generator = SnapshotGenerator(topics: ["a.events", "b.events"], partitionCount: 1)
            var snapshot = generator.snapshot(at: 1_800_000_000_000)
            snapshot.at = Timestamp(millisecondsSinceEpoch: 1_800_000_000_000)
            snapshot.parked = ["entry-submitter", "task-fan-out"].map { group in
                MonitorStore.Parked(
                    group: group, topic: "entry.events", dueCount: 0, waitingCount: 0, circuitCount: 0, deadCount: 1)
            }
            fixture.board.publish(snapshot)
            for key in ["key-1", "key-2"] { try fixture.park(key, reason: "the project is closed") }
            try fixture.withDatabase {
                _ = try $0.run("INSERT INTO realm.environment (name) VALUES ('second'), ('third')")
            }
            let views = [
                ("#overview", "document.querySelector('#dead-task-fan-out')"),
                ("#charts", "document.querySelectorAll('[data-chart]').length === 2"),
                ("#deferred", "document.querySelectorAll('button[data-key]').length === 2"),
                ("#environments", "document.querySelectorAll('[data-view=environments] tbody tr').length === 3"),
            ]
            for (hash, condition) in views {
                try await visit(hash, browser, page, until: condition)
                #expect(try await browser.value(Self.repeatedNames, on: page) == "", "\(hash)")
            }
        }
    }
}
