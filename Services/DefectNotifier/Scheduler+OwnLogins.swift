import BackendConnections
import Essentials
import KeyedWorker
import Logging
import Metrics
import Model
import ObjectStore
import Postgres

/// Starts the polls of people who are notified with their own logins.
extension Scheduler {
    /// The scheduler's state of an environment that polls with people's own logins.
    struct OwnLoginState {
        var steppedAt: Timestamp
        var countedAt: Timestamp?
        /// Whether late polls were logged.
        var isLate = false
        let late: Gauge
        /// By the status of their logins.
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

        /// Removes the metrics of an environment that no longer polls with people's own logins.
        func destroyMetrics() {
            late.destroy()
            for gauge in people.values { gauge.destroy() }
        }
    }

    /// Minimum interval between two schedules, and between two counts of people.
    private static let stepMin = Duration.seconds(1)
    private static let countMin = Duration.seconds(60)
    /// Limit of the time since the last schedule that counts for the number of new runs.
    private static let elapsedMax = Duration.seconds(10)

    mutating func removeOwnLoginStates(except environments: Set<EnvironmentID>) {
        for (environment, state) in own where !environments.contains(environment) {
            state.destroyMetrics()
            own[environment] = nil
        }
    }

    /// Starts the due runs of an environment's people.
    mutating func stepOwnLogins(in environment: EnvironmentID, interval: Duration, now: Timestamp) throws {
        guard let elapsed = elapsed(in: environment, now) else { return }
        let results = try session.connection.run([
            OwnDefectLogin.realms(in: environment), OwnLoginStore.runs(in: environment),
        ])
        let people = try results[0].decode(Int32.self)
        let lastRuns = try Self.lastRuns(results[1])
        let late = people.filter { OwnLoginScheduleRule.isLate(lastRuns[.changes]?[$0], interval: interval) }
        let scopes = [(scope: DefectPoll.Scope.changes, interval: interval), (.comparison, comparisonInterval)]
        let due = scopes.map { scope, interval in
            OwnLoginScheduleRule.due(people, lastRuns[scope] ?? [:], interval: interval, staleMax: staleMax)
        }
        let good = try goodPeople(Set(late + due.joined().map(\.realm)).sorted(), in: environment)
        report(late: late.count { good[$0] != nil }, in: environment)
        try count(in: environment, now: now)
        var starts: [RunStart] = []
        for ((scope, interval), due) in zip(scopes, due) {
            let countMax = OwnLoginScheduleRule.countMax(people: people.count, elapsed: elapsed, interval: interval)
            let ready = due.filter { good[$0.realm] != nil }
            starts += OwnLoginScheduleRule.selected(ready, countMax: countMax).map { due in
                RunStart(scope: scope, run: due.run, person: good[due.realm])
            }
        }
        if !starts.isEmpty { try start(starts, in: environment, now) }
    }

    /// Returns the time since the last schedule; `nil`: `stepMin` is not over.
    private mutating func elapsed(in environment: EnvironmentID, _ now: Timestamp) -> Duration? {
        guard var state = own[environment] else {
            own[environment] = OwnLoginState(environment, now: now)
            return Self.stepMin
        }
        let elapsed = Duration.milliseconds(now.millisecondsSinceEpoch - state.steppedAt.millisecondsSinceEpoch)
        guard elapsed >= Self.stepMin else { return nil }
        state.steppedAt = now
        own[environment] = state
        return min(elapsed, Self.elapsedMax)
    }

    private static func lastRuns(_ rows: Rows) throws -> [DefectPoll.Scope: [Int32: OwnLoginScheduleRule.LastRun]] {
        var lastRuns: [DefectPoll.Scope: [Int32: OwnLoginScheduleRule.LastRun]] = [:]
        for (realm, scope, run, finishedRun, age, isNextRequested) in try rows.decode(
            Int32.self, String.self, Int64.self, Int64.self, Int64.self, Bool.self)
        {
            guard let scope = DefectPoll.Scope(rawValue: scope) else { continue }
            lastRuns[scope, default: [:]][realm] = OwnLoginScheduleRule.LastRun(
                run: run, finishedRun: finishedRun, age: .milliseconds(age), isNextRequested: isNextRequested)
        }
        return lastRuns
    }

    /// Returns the people whose login the tracker accepts.
    private mutating func goodPeople(
        _ realms: [Int32], in environment: EnvironmentID
    ) throws -> [Int32: TrackerPerson] {
        if realms.isEmpty { return [:] }
        var people: [Int32: TrackerPerson] = [:]
        for (realm, path) in try session.connection.run(OwnDefectLogin.good(realms, in: environment)).decode(
            Int32.self, String.self)
        {
            guard let email = try? RealmPath(validating: path).email else { continue }
            people[realm] = TrackerPerson(email: email, realm: realm)
        }
        return people
    }

    /// Logs when people's polls become late, and when they recover.
    private mutating func report(late count: Int, in environment: EnvironmentID) {
        own[environment]?.late.record(count)
        guard let wasLate = own[environment]?.isLate, wasLate != (count > 0) else { return }
        own[environment]?.isLate = count > 0
        if count > 0 {
            logger.warning(
                "polls with personal logins are late",
                metadata: ["environment": "\(environment)", "people": "\(count)"])
        } else {
            logger.notice("polls with personal logins are on time again", metadata: ["environment": "\(environment)"])
        }
    }

    /// Records the number of people by login status.
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
