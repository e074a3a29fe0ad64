import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ChangeRelay

/// Removal of deleted objects, ended shares and notices.
@Suite(.ownThreads) struct HistorySweepTests {
    private typealias DatedObject = HistorySweep.DatedObject

    private static let now = Timestamp(millisecondsSinceEpoch: 1_400_000_000_000)

    private static func dated(_ kind: Kind, daysAgo: Int, _ position: Int64) -> DatedObject {
        DatedObject(
            key: ObjectKey(realm: 1, kind: kind, id: UUID()), position: position,
            time: now.adding(.seconds(-86_400 * daysAgo)))
    }

    @Test func objectsBeyondAgeOrNumberAreExcess() {
        let limits: [Kind: HistorySweep.Limit] = [
            .endedShare: .init(days: 30, countMax: 10), .notice: .init(days: 90, countMax: 2),
        ]
        let objects = [
            Self.dated(.endedShare, daysAgo: 30, 1), Self.dated(.endedShare, daysAgo: 31, 2),
            Self.dated(.notice, daysAgo: 31, 3), Self.dated(.notice, daysAgo: 1, 4),
            Self.dated(.notice, daysAgo: 1, 5), Self.dated(.note, daysAgo: 900, 6),
            DatedObject(
                key: ObjectKey(realm: 1, kind: .endedShare, id: UUID()), position: 7,
                time: Timestamp(millisecondsSinceEpoch: .min)),
        ]
        for order in [objects, objects.reversed()] {
            let excess = HistorySweep.excess(order, limits, now: Self.now).map(\.position).sorted()
            #expect(excess == [2, 3, 7])
        }
        let equal = (1...4).map { Self.dated(.notice, daysAgo: 1, $0) }
        #expect(HistorySweep.excess(equal, limits, now: Self.now).map(\.position).sorted() == [1, 2])
    }

    /// Many notices of one sort displace no other: a person keeps the rejection of an entry in spite of a busy team.
    @Test func eachSortOfNoticesHasItsLimit() {
        let codes: [Notice.Code] = [
            .taskAssigned, .taskChanged, .taskOverdue, .entryRejected, .itemShared, .shareCancelled, .defectAssigned,
            Notice.Code(rawValue: "of-later"), Notice.Code(rawValue: "another"),
        ]
        let notices = codes.enumerated().map { number, code in
            var notice = Self.dated(.notice, daysAgo: 10 - number, Int64(number))
            notice.sort = code.sort
            return notice
        }
        let excess = HistorySweep.excess(notices, [.notice: .init(days: 90, countMax: 1)], now: Self.now)
        #expect(excess.map(\.position).sorted() == [0, 1, 4, 7])
    }

    /// A page holds more objects than the limits of all kinds allow, so that a full page always has an excess.
    @Test func pageExceedsAllLimits() {
        let sum = HistorySweep.limits(days: 30).reduce(0) { sum, limit in
            sum + Int64(limit.value.countMax * (limit.key == .notice ? Notice.Code.Sort.allCases.count : 1))
        }
        #expect(sum < HistorySweep.pageCountMax)
    }

    @Test(arguments: [nil, 7, 60] as [Int32?]) func environmentSetsTheRetention(days: Int32?) throws {
        var acme = try TestEnvironment()
        if let days {
            try acme.connection.run(
                """
                INSERT INTO access.provider (environment_id, issuer, audience, jwks_url, deleted_days)
                VALUES (\(acme.id.rawValue), 'https://login.example', 'a', 'https://login.example/keys', \(days))
                """)
        }
        let path = try RealmPath.user("ana@example.com")
        func time(_ daysAgo: Int) -> Timestamp { Timestamp.now().adding(.seconds(-86_400 * daysAgo)) }
        try acme.put(
            [5, 10, 40].map { (UUID(), #"{"kind":"Note","title":"\#($0)","deletedAt":"\#(time($0))"}"#) },
            .deletedObject, into: path)
        let ended = [5, 10, 40].map { days in
            (
                UUID(),
                #"{"owner":"\#(UUID().text)","kind":"Note","item":"\#(UUID().text)","title":"\#(days)","#
                    + #""endedAt":"\#(time(days))","reason":"cancelled"}"#
            )
        }
        try acme.put(ended, .endedShare, into: path)
        try acme.put(
            [40, 91].map { (UUID(), #"{"code":"c","text":"\#($0)","timestamp":"\#(time($0))"}"#) }, .notice, into: path)
        let before: Int64 = try acme.connection.run("SELECT position FROM realm.environment")[0].value(0)
        var sweep = HistorySweep()
        var removedCount = 0
        while true {
            let result = try sweep.step(on: &acme.connection)
            removedCount += result.removedCount
            if result.isLast { break }
        }
        let left = try acme.connection.run(
            "SELECT coalesce(fields->>'title', fields->>'text') FROM realm.object WHERE NOT deleted ORDER BY 1"
        ).decode(String.self)
        switch days {
        case 7: #expect(left == ["40", "5", "5"] && removedCount == 5)
        case 60: #expect(left == ["10", "10", "40", "40", "40", "5", "5"] && removedCount == 1)
        default: #expect(left == ["10", "10", "40", "5", "5"] && removedCount == 3)
        }
        // Devices receive the tombstones.
        let tombstones: Int64 = try acme.connection.run(
            "SELECT count(*) FROM realm.object WHERE deleted AND position > \(before)")[0].value(0)
        #expect(tombstones == Int64(removedCount))
    }
}
