import Essentials
import LocalCluster
import TestSupport
import Testing

extension FlowTests {
    /// A person is erased while the services run. Afterwards no table, topic or log has them, except as the report
    /// states, and their record in SAP stays.
    @Test(.timeLimit(.minutes(20))) func erasedPersonLeavesNothingThatIsNotReported() async throws {
        let receivers = try NoticeReceivers()
        var options = LocalCluster.Options.quick
        options.services += [.poller, .noticeDeliverer]
        options.variables[.noticeDeliverer, default: [:]]["FIELDPOST_DELIVERER_CA_FILE"] = receivers.certificateFile
        try await withCluster("erasure", options) { cluster in
            let organisation = SmallOrganisation(peopleCount: 2)
            try await organisation.load(into: cluster)
            try await ErasureFlow.deliver(to: receivers, from: cluster)
            var flow = try await ErasureFlow(cluster, organisation)
            try await flow.writeObjects()
            try await flow.waitForCopies(receivers)
            let recorded = try await cluster.recorded()
            try #require(recorded.count == 1)
            for text in flow.texts { try #require(try !flow.tables(with: text).isEmpty, "\(text)") }
            let topics = try await flow.topics(with: flow.texts)
            try #require(topics.count > 3, "\(topics)")

            let report = try await flow.erase()
            #expect(report.contains("\"\(recorded[0].record)\""), "\(report)")
            // The services read all that is published again, after what they were processing.
            try await cluster.restart(.broker)
            try await flow.submitForOther()
            try await eventually("nothing is left to erase") {
                let report = try await flow.erase()
                return report.contains("\"deleted\"") || report.contains("\"changed\"") ? report : nil
            }
            let texts = flow.texts.filter { $0 != flow.personID.text }
            for text in texts { #expect(try flow.tables(with: text) == [], "\(text)") }

            // Tombstones, messages and logs are named in the report.
            for content in ["ids of deleted objects", "logs and traces"] + topics {
                #expect(report.contains(content), "\(content)")
            }
            #expect(Set(try flow.tables(with: flow.personID.text)).isSubset(of: ["store.object", "store.change"]))
            try await eventually("the tombstones are removed") {
                try flow.compact()
                let left = try flow.tables(with: flow.personID.text)
                return left.isEmpty ? nil : "\(left)"
            }
            // An empty broker gets the remaining objects, before the entry.
            try await cluster.restart(.broker)
            try await flow.submitForOther()
            #expect(try await flow.topics(with: flow.texts) == [])
            // Logs have addresses, and no content.
            #expect(try flow.logs(with: texts.filter { $0 != flow.email }) == [])

            let after = try await cluster.recorded()
            #expect(after.count == 3)
            #expect(after.contains { $0.record == recorded[0].record && $0.isLive }, "\(after)")
        }
    }
}
