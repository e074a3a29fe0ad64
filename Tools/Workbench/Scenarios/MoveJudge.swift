import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import Postgres
import TenantMigration

/// The comparisons after a move: of tables, of responses to mutations, and of devices, realms and the back end.
struct MoveJudge: Sendable {
    /// Of the new installation.
    let pool: Pool
    let environment: EnvironmentID
    let backend: SandboxSAP
    let gateway: GatewayClient
    let tokens: DeviceTokens

    /// Number of responses per device that are requested again.
    private static let repeatedCountMax = 20

    // MARK: Tables

    /// Compares the write-blocked tables with those that arrived.
    static func compare(_ old: [String: MoveDigest], _ new: [String: MoveDigest], _ report: inout ScenarioReport) {
        for table in MovedTable.all.map(\.name) where table != MovedTable.objects.name {
            let (before, after) = (old[table], new[table])
            if let count = after?.count, count > 0 { report.add("rows of \(table)", count) }
            guard before != after else { continue }
            report.differences.append(
                "\(table): \(before?.description ?? "no rows") at the old installation, "
                    + "\(after?.description ?? "no rows") arrived")
        }
    }

    /// Compares the objects that have not been written at the new installation.
    static func compareObjects(
        _ old: EnvironmentID, at oldPool: Pool, _ new: EnvironmentID, at newPool: Pool, _ report: inout ScenarioReport
    ) async throws {
        let (position, changed, after) = try await newPool.run { connection in
            let position = try connection.run(
                "SELECT position FROM realm.move WHERE environment_id = \(new.rawValue)"
            )[0].decode(Int64.self)
            // One snapshot: no write falls between the two queries.
            return try connection.transaction(.snapshot) { transaction in
                (
                    position, try MoveDigest.written(after: position, in: new, in: &transaction),
                    try MoveDigest.ofObjects(new, upTo: position, in: &transaction)
                )
            }
        }
        let (total, before) = try await oldPool.run { connection in
            let total = try connection.run(
                "SELECT count(*) FROM store.object WHERE environment_id = \(old.rawValue)")[0].decode(Int64.self)
            return (total, try MoveDigest.ofObjects(old, without: changed, on: &connection))
        }
        report.add("rows of \(MovedTable.objects.name)", total)
        report.add("objects unchanged since the move", after.count)
        if before != after {
            report.differences.append(
                "objects not written since \(position): \(before) at the old installation, \(after) at the new one")
        }
    }

    // MARK: Responses

    /// Checks that each response is stored, is the only one, and is returned again.
    func compareResponses(
        _ authors: [Author], answeredAtOld: [Int64], _ report: inout ScenarioReport
    ) async throws {
        let allStored = try await storedResponses()
        var (acceptedCount, rejectedCount, repeatedCount) = (0, 0, 0)
        for (author, last) in zip(authors, answeredAtOld) {
            let (email, queue) = (author.device.person.email, await author.device.queue)
            for sequence in author.conflictingResponses {
                report.differences.append("\(email): mutation \(sequence) got two different responses")
            }
            let stored = allStored[queue.clientID] ?? [:]
            for (sequence, result) in author.answers.sorted(by: { $0.key < $1.key }) {
                switch result {
                case .accepted: acceptedCount += 1
                case .rejected, .expired: rejectedCount += 1
                }
                guard let position = stored[sequence] else {
                    report.differences.append("\(email): the response to mutation \(sequence) is not stored")
                    continue
                }
                if position != result.position {
                    report.differences.append("\(email): the stored response to mutation \(sequence) differs")
                }
            }
            if stored.count != author.answers.count {
                report.differences.append(
                    "\(email): \(stored.count) responses are stored, the device got \(author.answers.count)")
            }
            let repeated = queue.storedMutations.filter { $0.sequence <= last && $0.outcome != nil }.suffix(
                Self.repeatedCountMax)
            repeatedCount += repeated.count
            report.differences += try await requestAgain(
                Array(repeated), of: author.device.person, client: queue.clientID)
        }
        report.add("mutations accepted", acceptedCount)
        report.add("mutations rejected", rejectedCount)
        report.add("responses requested again", repeatedCount)
    }

    /// Positions of accepted mutations, `nil` for rejected ones, by client and number.
    private func storedResponses() async throws -> [UUID: [Int64: Int64?]] {
        try await pool.run { [environment] connection in
            try connection.run(
                """
                SELECT client_id, sequence, position FROM device.mutation
                WHERE environment_id = \(environment.rawValue)
                """
            ).decode(UUID.self, Int64.self, Int64?.self).reduce(into: [:]) { answers, row in
                answers[row.0, default: [:]][row.1] = row.2
            }
        }
    }

    private func requestAgain(
        _ mutations: [QueuedMutation], of person: Organisation.Person, client: UUID
    ) async throws -> [String] {
        if mutations.isEmpty { return [] }
        let list = mutations.map { item in
            let mutation = item.mutation
            var json = "{\"sequence\":\(item.sequence),\"realm\":\"\(item.realm)\","
            json += "\"op\":\"\(mutation.operation.rawValue)\",\"kind\":\"\(mutation.kind.rawValue)\","
            json += "\"id\":\"\(mutation.id.text)\""
            if let fields = mutation.fields { json += ",\"fields\":" + String(decoding: fields, as: UTF8.self) }
            return json + "}"
        }
        let body = "{\"clientId\":\"\(client.text)\",\"mutations\":[\(list.joined(separator: ","))]}"
        let token = try await tokens.tokens(for: [person]).first ?? ""
        let response = try await gateway.send(Array(body.utf8), token: token)
        guard case .results(let outcomes, _) = try QueueResponse.read(status: response.status, body: response.body)
        else {
            return ["\(person.email): the repeated request got \(response.status)"]
        }
        return mutations.filter { outcomes[$0.sequence] != $0.outcome }.map {
            "\(person.email): mutation \($0.sequence) was \($0.outcome.map { "\($0)" } ?? ""), and the repeated "
                + "request got \(outcomes[$0.sequence].map { "\($0)" } ?? "no response")"
        }
    }

    // MARK: Devices, realms and the back end

    /// Compares until there are no differences, or until they no longer change.
    func compare(_ authors: [Author], settle: Duration, _ report: inout ScenarioReport) async throws {
        let fleet = Fleet(members: authors.map { .init(device: $0.device, plans: $0.begun) })
        let verdict = try await Verdict.settled(within: settle) {
            try await fleet.refresh()
            var verdict = Verdict(of: authors.map(\.device.person), records: try await backend.recorded())
            let snapshot = try await pool.run { [environment] connection in
                try EnvironmentSnapshot.read(environment, except: MoveSeed.realms, on: &connection)
            }
            let reading = FieldworkReading(snapshot)
            await verdict.compare(fleet.members, reading)
            for author in authors {
                try await compareRealms(of: author.device, reading, &verdict)
                if await author.device.gatewayURL != gateway.url {
                    verdict.note(author.device.person.email, "device", "still uses the old installation")
                }
                verdict.add(failures: author.failures)
            }
            verdict.finish()
            return verdict
        }
        report.differences += verdict.differences.map(\.description)
        report.add("realms of devices compared", verdict.realmCount)
        report.add("entries compared", verdict.rightEntries.count + verdict.goneCount)
    }

    /// Compares the realms that the gateway lists for a person with those that the database grants. The people of this
    /// scenario are no managers, who also get other teams' realms.
    private func compareRealms(
        of device: Device, _ reading: FieldworkReading, _ verdict: inout Verdict
    ) async throws {
        let token = try await tokens.tokens(for: [device.person]).first ?? ""
        let listed = try await gateway.realms(token: token)
        let contents = await device.contents
        let expected = reading.person(of: device.realm).map { reading.realms(of: $0, device: contents) } ?? []
        for path in listed.symmetricDifference(expected).sorted() {
            let detail = listed.contains(path) ? "is listed, but not granted" : "is granted, but not listed"
            verdict.note(device.person.email, "\(path)", detail)
        }
    }
}

extension MutationOutcome {
    /// The object's position, if the mutation was accepted.
    fileprivate var position: Int64? {
        if case .accepted(let position) = self { position } else { nil }
    }
}
