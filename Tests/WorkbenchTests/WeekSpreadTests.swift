import Essentials
import Model
import TestSupport
import Testing

@testable import Workbench

@Suite(.ownThreads) struct WeekSpreadTests {
    /// A Sunday.
    private static let sunday = Day(daysSinceEpoch: 16_523)

    private func row(_ id: Int, _ hundredths: Int, days: ClosedRange<Int> = 0...6) -> WeekRow {
        let period = Self.sunday.adding(days: days.lowerBound)...Self.sunday.adding(days: days.upperBound)
        return WeekRow(
            id: id, person: "e", period: period, project: "p", element: "w", hours: Hours(hundredths: hundredths))
    }

    private func spread(_ rows: [WeekRow]) -> [[Int]] {
        WeekSpread.spread(rows, over: rows[0].period).map { part in
            [part.row.id, Self.sunday.days(until: part.day), part.durationSeconds / 36]
        }
    }

    @Test func anOrdinaryWeekFillsDaysOfEightHours() {
        #expect(
            spread([row(1, 3600), row(2, 400)]) == [
                [1, 1, 800], [1, 2, 800], [1, 3, 800], [1, 4, 800], [1, 5, 400],
                [2, 5, 400],
            ])
    }

    @Test func aLongWeekFillsLongerDays() {
        #expect(spread([row(1, 4110)]) == [[1, 1, 825], [1, 2, 825], [1, 3, 825], [1, 4, 825], [1, 5, 810]])
    }

    @Test func aRowWithoutHoursIsOneEntry() {
        #expect(spread([row(1, 800), row(2, 0), row(3, 100)]) == [[1, 1, 800], [2, 2, 0], [3, 2, 100]])
        #expect(spread([row(1, 4000), row(2, 0)]).last == [2, 5, 0])
    }

    @Test func aPeriodWithoutWorkingDaysUsesAllItsDays() {
        #expect(spread([row(1, 1000, days: 6...7)]) == [[1, 6, 800], [1, 7, 200]])
    }

    @Test(arguments: [UInt64(1), 2, 3, 4]) func everyRowsPartsSumUpToItsHours(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<2000 {
            let start = Int.random(in: 0...6, using: &random)
            let days = start...start + Int.random(in: 0...6, using: &random)
            let rows = (0..<Int.random(in: 1...6, using: &random)).map {
                row($0, Int.random(in: 0...4000, using: &random) * Int.random(in: 0...1, using: &random), days: days)
            }
            let parts = WeekSpread.spread(rows, over: rows[0].period)
            for row in rows {
                let own = parts.filter { $0.row == row }
                #expect(own.reduce(0) { $0 + $1.durationSeconds } == row.hours.seconds, "seed \(seed)")
                #expect(!own.isEmpty && (row.hours.hundredths == 0 || own.allSatisfy { $0.durationSeconds > 0 }))
                #expect(Set(own.map(\.day)).count == own.count, "seed \(seed): a row has one entry a day")
            }
            #expect(parts.allSatisfy { rows[0].period.contains($0.day) && $0.durationSeconds % 36 == 0 })
            #expect(zip(parts, parts.dropFirst()).allSatisfy { $0.day <= $1.day }, "seed \(seed)")
        }
    }
}
