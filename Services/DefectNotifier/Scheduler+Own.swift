import BackendConnections
import Essentials
import KeyedWorker
import Logging
import Metrics
import Model
import ObjectStore
import Postgres

/// The polls of people who are told by their own logins.
extension Scheduler {
    /// What is known of an environment whose people are.
    struct OwnBeat {
        var steppedAt: Timestamp
        var countedAt: Timestamp?
        /// Whether it was said that rounds are late.
        var isLate = false
        let late: Gauge
        /// By what is known of their logins.
        let people: [String: Gauge]

        init(_ environment: EnvironmentID, now: Timestamp) {
            steppedAt = now
            late = Gauge(label: "fieldpost.defects.late_people", dimensions: [("environment", "\(environment)")])
            let states = DefectAccount.Status.allCases.map(\.rawValue) + ["none"]
            people = Dictionary(
                uniqueKeysWithValues: states.map { state in
                    let dimensions = [("environment", "\(environment)"), ("login", state)]
                    return (state, Gauge(label: "fieldpost.defects.people", dimensions: dimensions))
                })
        }

        /// Nothing is said of an environment any more whose people are told by its account.
        func end() {
            late.destroy()
            for gauge in people.values { gauge.destroy() }
        }
    }

    /// How often people are looked through, and counted.
    private static let stepMin = Duration.seconds(1)
    private static let countMin = Duration.seconds(60)
    /// The longest standstill after which more than at other times are begun.
    private static let elapsedMax = Duration.seconds(10)

    mutating func forgetOwn(but environments: Set<EnvironmentID>) {
        for (environment, beat) in own where !environments.contains(environment) {
            beat.end()
            own[environment] = nil
        }
    }

    /// Begins the runs that are due of an environment's people.
    mutating func stepOwn(in environment: EnvironmentID, interval: Duration, now: Timestamp) throws {
        guard let elapsed = elapsed(in: environment, now) else { return }
        let answers = try session.connection.run([
            OwnDefectLogin.realms(in: environment), OwnStore.runs(in: environment),
        ])
        let people = try answers[0].decode(Int32.self)
        let begun = try Self.begun(answers[1])
        let late = people.filter { OwnScheduleRule.isLate(begun[.changes]?[$0], interval: interval) }
        let scopes = [(scope: DefectPoll.Scope.changes, interval: interval), (.comparison, comparisonInterval)]
        let due = scopes.map { scope, interval in
            OwnScheduleRule.due(people, begun[scope] ?? [:], interval: interval, staleMax: staleMax)
        }
        let good = try goodPeople(Set(late + due.joined().map(\.realm)).sorted(), in: environment)
        tell(late: late.count { good[$0] != nil }, in: environment)
        try count(in: environment, now: now)
        var beginnings: [Beginning] = []
        for ((scope, interval), due) in zip(scopes, due) {
            let countMax = OwnScheduleRule.countMax(people: people.count, elapsed: elapsed, interval: interval)
            let ready = due.filter { good[$0.realm] != nil }
            beginnings += OwnScheduleRule.chosen(ready, countMax: countMax).map { due in
                Beginning(scope: scope, run: due.run, person: good[due.realm])
            }
        }
        if !beginnings.isEmpty { try begin(beginnings, in: environment, now) }
    }

    /// How long people were not looked through; `nil`: it is too early to do so.
    private mutating func elapsed(in environment: EnvironmentID, _ now: Timestamp) -> Duration? {
        guard var beat = own[environment] else {
            own[environment] = OwnBeat(environment, now: now)
            return Self.stepMin
        }
        let elapsed = Duration.milliseconds(now.millisecondsSinceEpoch - beat.steppedAt.millisecondsSinceEpoch)
        guard elapsed >= Self.stepMin else { return nil }
        beat.steppedAt = now
        own[environment] = beat
        return min(elapsed, Self.elapsedMax)
    }

    private static func begun(_ rows: Rows) throws -> [DefectPoll.Scope: [Int32: OwnScheduleRule.Begun]] {
        var begun: [DefectPoll.Scope: [Int32: OwnScheduleRule.Begun]] = [:]
        for (realm, scope, run, finishedRun, age, isNextAskedFor) in try rows.decode(
            Int32.self, String.self, Int64.self, Int64.self, Int64.self, Bool.self)
        {
            guard let scope = DefectPoll.Scope(rawValue: scope) else { continue }
            begun[scope, default: [:]][realm] = OwnScheduleRule.Begun(
                run: run, finishedRun: finishedRun, age: .milliseconds(age), isNextAskedFor: isNextAskedFor)
        }
        return begun
    }

    /// Those of some people whose login the tracker lets in.
    private mutating func goodPeople(
        _ realms: [Int32], in environment: EnvironmentID
    ) throws -> [Int32: KnownPeople.Person] {
        if realms.isEmpty { return [:] }
        var people: [Int32: KnownPeople.Person] = [:]
        for (realm, path) in try session.connection.run(OwnDefectLogin.good(realms, in: environment)).decode(
            Int32.self, String.self)
        {
            guard let email = try? RealmPath(validating: path).email else { continue }
            people[realm] = KnownPeople.Person(email: email, realm: realm)
        }
        return people
    }

    /// Says when people are told late, and when they are not any more.
    private mutating func tell(late count: Int, in environment: EnvironmentID) {
        own[environment]?.late.record(count)
        guard let wasLate = own[environment]?.isLate, wasLate != (count > 0) else { return }
        own[environment]?.isLate = count > 0
        if count > 0 {
            logger.warning(
                "people's own rounds are late; those who have waited longest come first",
                metadata: ["environment": "\(environment)", "people": "\(count)"])
        } else {
            logger.notice(
                "people's own rounds are in time again", metadata: ["environment": "\(environment)"])
        }
    }

    /// Counts who is told, and who is not.
    private mutating func count(in environment: EnvironmentID, now: Timestamp) throws {
        if let last = own[environment]?.countedAt,
            now.millisecondsSinceEpoch - last.millisecondsSinceEpoch < Self.countMin.milliseconds
        {
            return
        }
        own[environment]?.countedAt = now
        let rows = try session.connection.run(OwnDefectLogin.counts(in: environment)).decode(String.self, Int64.self)
        let counts = Dictionary(rows.map { ($0.0, $0.1) }) { first, _ in first }
        for (state, gauge) in own[environment]?.people ?? [:] { gauge.record(counts[state] ?? 0) }
    }
}
