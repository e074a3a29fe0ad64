import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import Postgres
import TenantMigration

/// Compares after a move: what was moved with what arrived, what devices were answered with what is kept, and devices,
/// realms and the back end with each other.
struct MoveJudge: Sendable {
    let reader: RealmReader
    let backend: SandboxSAP
    let gateway: GatewayClient
    let tokens: DeviceTokens

    /// Answers of each device that are asked for again.
    private static let askedCountMax = 20

    // MARK: What was moved

    /// Tables as they were at the hold, and as they arrived.
    static func compare(_ old: [String: MoveDigest], _ new: [String: MoveDigest], _ report: inout MoveReport) {
        for table in MovedTable.all.map(\.name) where table != MovedTable.objects.name {
            let (before, after) = (old[table], new[table])
            report.tables.append(.init(table: table, rows: Int(after?.count ?? 0)))
            guard before != after else { continue }
            report.differences.append(
                "\(table): \(before?.description ?? "nothing") at the old place, "
                    + "\(after?.description ?? "nothing") arrived")
        }
    }

    /// Objects that nobody has written at the new place are as the old place has them.
    static func compareObjects(
        _ old: EnvironmentID, at oldPool: Pool, _ new: EnvironmentID, at newPool: Pool, _ report: inout MoveReport
    ) async throws {
        let (position, changed, after) = try await newPool.run { connection in
            let position = try connection.run(
                "SELECT position FROM realm.move WHERE environment_id = \(new.rawValue)"
            )[0].decode(Int64.self)
            // One snapshot: what is written between is not missed by both.
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
        report.tables.insert(.init(table: MovedTable.objects.name, rows: Int(total)), at: 0)
        report.sameCount = Int(after.count)
        if before != after {
            report.differences.append(
                "objects that were not written since \(position): \(before) at the old place, \(after) at the new one")
        }
    }

    // MARK: Answers

    /// Every answer that a device got is kept, is the only one, and is given again.
    func compareAnswers(
        _ works: [MoveFleet.Work], answeredAtOld: [Int64], _ report: inout MoveReport
    ) async throws {
        let kept = try await keptAnswers()
        for (work, last) in zip(works, answeredAtOld) {
            let (who, queue) = (work.device.person.email, await work.device.queue)
            for sequence in work.changedAnswers {
                report.differences.append("\(who): mutation \(sequence) was answered anew, and otherwise")
            }
            let stored = kept[queue.clientID] ?? [:]
            for (sequence, outcome) in work.answers.sorted(by: { $0.key < $1.key }) {
                switch outcome {
                case .accepted: report.acceptedCount += 1
                case .rejected, .forgotten: report.rejectedCount += 1
                }
                guard let position = stored[sequence] else {
                    report.differences.append("\(who): the answer to mutation \(sequence) is not kept")
                    continue
                }
                if position != outcome.position {
                    report.differences.append("\(who): the answer to mutation \(sequence) is kept otherwise")
                }
            }
            if stored.count != work.answers.count {
                report.differences.append(
                    "\(who): \(stored.count) answers are kept, and the device was given \(work.answers.count)")
            }
            let asked = queue.remembered.filter { $0.sequence <= last && $0.outcome != nil }.suffix(Self.askedCountMax)
            report.askedAgainCount += asked.count
            report.differences += try await askAgain(Array(asked), of: work.device.person, client: queue.clientID)
        }
    }

    /// Positions of accepted mutations, `nil` for refused ones, by client and number.
    private func keptAnswers() async throws -> [UUID: [Int64: Int64?]] {
        let environment = reader.environment
        return try await reader.pool.run { connection in
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

    private func askAgain(
        _ mutations: [QueuedMutation], of person: Organisation.Person, client: UUID
    ) async throws -> [String] {
        if mutations.isEmpty { return [] }
        let list = mutations.map { item in
            let mutation = item.mutation
            var json = "{\"sequence\":\(item.sequence),\"realm\":\(JSON.string(item.realm.description)),"
            json += "\"op\":\"\(mutation.operation.rawValue)\",\"kind\":\"\(mutation.kind.rawValue)\","
            json += "\"id\":\"\(mutation.id.text)\""
            if let fields = mutation.fields { json += ",\"fields\":" + String(decoding: fields, as: UTF8.self) }
            return json + "}"
        }
        let body = "{\"clientId\":\"\(client.text)\",\"mutations\":[\(list.joined(separator: ","))]}"
        let token = try await tokens.tokens(for: [person]).first ?? ""
        let response = try await gateway.send(Array(body.utf8), token: token)
        guard case .results(let outcomes, _) = try QueueAnswer.read(status: response.status, body: response.body) else {
            return ["\(person.email): asked again, the gateway answers \(response.status)"]
        }
        return mutations.filter { outcomes[$0.sequence] != $0.outcome }.map {
            "\(person.email): mutation \($0.sequence) was \($0.outcome.map { "\($0)" } ?? ""), and asked again it is "
                + "\(outcomes[$0.sequence].map { "\($0)" } ?? "not answered")"
        }
    }

    // MARK: Devices, realms and the back end

    /// Looks until nothing differs, or differences stay.
    func compare(_ works: [MoveFleet.Work], settle: Duration, _ report: inout MoveReport) async throws {
        let fleet = DemoFleet(members: works.map { .init(device: $0.device, plans: $0.plans, absence: nil) })
        var looks = VerdictLooks(settleMax: settle)
        while true {
            try await fleet.refresh()
            let (verdict, realmCount) = try await look(works)
            if looks.areEnough(verdict.differences, now: .now) {
                report.differences += verdict.differences.map(\.description)
                (report.realmCount, report.entryCount) = (realmCount, verdict.rightEntries.count + verdict.goneCount)
                return
            }
            try await Task.sleep(for: .seconds(1))
        }
    }

    private func look(_ works: [MoveFleet.Work]) async throws -> (Verdict, Int) {
        let records = try await backend.recorded()
        var verdict = Verdict(of: works.map(\.device.person), records: records)
        var (others, realmCount): ([RealmPath: RealmContent], Int) = ([:], 0)
        for work in works {
            let (device, person) = (work.device, work.device.person)
            let token = try await tokens.tokens(for: [person]).first ?? ""
            let contents = await device.contents
            for path in try await gateway.realms(token: token).union(contents.keys).sorted() {
                var stored = path == device.realm ? nil : others[path]
                if stored == nil { stored = try await reader.content(of: path) }
                if path != device.realm { others[path] = stored }
                verdict.compare(person.email, path, device: contents[path] ?? [:], stored: stored ?? [:])
                if path == device.realm { verdict.compare(person, work.plans, realm: stored ?? [:]) }
                realmCount += 1
            }
            if await device.gatewayURL != gateway.url { verdict.note(person.email, "device", "is at the old place") }
            for (id, reason) in work.failures.sorted(by: { $0.key.text < $1.key.text }) {
                verdict.note(person.email, "entry \(id.text)", reason)
            }
        }
        verdict.finish()
        return (verdict, realmCount)
    }
}

extension MutationOutcome {
    /// Where the object is, of one that was accepted.
    fileprivate var position: Int64? {
        if case .accepted(let position) = self { position } else { nil }
    }
}
