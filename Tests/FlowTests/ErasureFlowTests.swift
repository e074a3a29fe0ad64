import Essentials
import Foundation
import LocalCluster
import Model
import Postgres
import Testing

extension FlowTests {
    /// A person is erased while the services run: no table has them, and their record in SAP stays.
    @Test(.timeLimit(.minutes(20))) func erasedPersonLeavesTheBackEndAlone() async throws {
        var options = LocalCluster.Options.quick
        options.services.append(.poller)
        try await withCluster("erasure", options) { cluster in
            let organisation = SmallOrganisation(peopleCount: 2)
            try await organisation.load(into: cluster)
            let (erased, other) = (organisation.people[0].email, organisation.people[1].email)
            let phone = try await IntegrationPhone(cluster, erased)
            try await Self.expectReleased(try await Self.submit(phone), on: phone)
            let before = try await cluster.recorded()
            try #require(before.count == 1)

            let report = try await Self.erase(erased, on: cluster)
            #expect(report.contains("\"\(before[0].record)\""), "\(report)")
            // Services read all that is published again, after what they were processing.
            try await cluster.restart(.broker)
            let otherPhone = try await IntegrationPhone(cluster, other)
            try await Self.expectReleased(try await Self.submit(otherPhone), on: otherPhone)
            try await eventually("nothing is left to erase") {
                let report = try await Self.erase(erased, on: cluster)
                return report.contains("\"deleted\"") || report.contains("\"changed\"") ? report : nil
            }
            #expect(try Self.tables(with: erased, on: cluster) == [])
            let after = try await cluster.recorded()
            #expect(after.count == 2 && after.contains { $0.record == before[0].record && $0.isLive }, "\(after)")
        }
    }

    private static func erase(_ email: String, on cluster: LocalCluster) async throws -> String {
        try await cluster.runCommand(["environment", "erase", SmallOrganisation.environment, email, "--yes", "--json"])
    }

    /// Submits an entry on the first project when the person's choices have arrived.
    ///
    /// - Returns: Its id.
    private static func submit(_ phone: IntegrationPhone) async throws -> String {
        try await eventually("\(phone.email) has choices") {
            let status = try await phone.status()
            guard status == 200 else { return "\(status)" }
            let kinds = try await phone.read().map(\.kind)
            return kinds.contains("ReportingTemplate") ? nil : "\(kinds)"
        }
        let objects = try await phone.read()
        let template = try #require(objects.first { $0.kind == "ReportingTemplate" }).id
        let choices = [("Customer", "1"), ("Project", "P1"), ("Accounting code", "P1.1")]
        let reporting = try choices.map { name, reference in
            let context = try #require(
                objects.first { $0.kind == "ReportingContext" && $0.fields["name"] as? String == name })
            let node = try #require(
                objects.first {
                    $0.realm.hasPrefix("/catalogues/") && $0.fields["referenceId"] as? String == reference
                })
            return #"{"context":"\#(context.id)","node":"\#(node.id)"}"#
        }
        let day = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000)).day.adding(days: -1)
        let id = UUID().text
        try await phone.write(
            "put", id,
            """
            {"reportingTemplate":"\(template)","entryDate":"\(day)","durationSeconds":3600,"text":"roof",
             "reporting":[\(reporting.joined(separator: ","))],"submitRequested":true}
            """)
        return id
    }

    private static func expectReleased(_ entry: String, on phone: IntegrationPhone) async throws {
        try await eventually("the entry of \(phone.email) is released") {
            let fields = try await phone.read().first { $0.id == entry }?.fields
            return fields?["status"] as? String == "released" ? nil : "\(fields ?? [:])"
        }
    }

    /// The tables with a text in any column.
    private static func tables(with text: String, on cluster: LocalCluster) throws -> [String] {
        var connection = try Connection(cluster.conninfo)
        let tables = try connection.run(
            """
            SELECT table_schema || '.' || table_name FROM information_schema.tables
            WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')
            """
        ).decode(String.self)
        var found: [String] = []
        for table in tables {
            let name = Statement(stringLiteral: table)
            let rows = try connection.run(
                "SELECT count(*) FROM \(name) t WHERE strpos(lower(to_jsonb(t)::text), \(text)) > 0")
            if try rows[0].decode(Int64.self) > 0 { found.append(table) }
        }
        return found
    }
}
