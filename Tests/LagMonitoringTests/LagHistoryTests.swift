import Kafka
import LagMonitoring
import Testing

struct LagHistoryTests {
    private static let place = TopicPartition(topic: "t", partition: 0)

    /// - Parameter second: When it is looked.
    private func look(
        _ second: Int64, committed: Int64?, _ available: Range<Int64>, members: Int? = 1, isKnown: Bool = true
    ) -> LagLook {
        LagLook(
            milliseconds: second * 1_000, available: [Self.place: available],
            groups: [
                LagLook.Group(
                    name: "g", isKnown: isKnown, offsets: [Self.place: committed], memberCount: members)
            ])
    }

    private func lag(_ looks: [LagLook]) throws -> PartitionLag {
        var history = LagHistory()
        for look in looks { history.take(look) }
        return try #require(history.lags.first)
    }

    @Test func messagesAreCountedFromWhereTheGroupGoesOn() throws {
        #expect(try lag([look(0, committed: 3, 0..<10)]).count == 7)
        #expect(try lag([look(0, committed: nil, 2..<10)]).count == 8)
        let expired = try lag([look(0, committed: 3, 5..<10)])
        #expect(expired.count == 5 && expired.expiredCount == 2)
        // What was committed in content that the broker has lost says nothing.
        #expect(try lag([look(0, committed: 30, 0..<10)]).count == 10)
    }

    @Test func anAgeIsEstimatedByWhenThePartitionGrew() throws {
        let looks = [
            look(0, committed: 0, 0..<10), look(10, committed: 10, 0..<10), look(20, committed: 10, 0..<20),
            look(30, committed: 15, 0..<20),
        ]
        // The sixth of ten messages that came in ten seconds.
        #expect(try lag(looks).age == .estimated(seconds: 14))
        // The first of them came after a tenth of the time.
        #expect(try lag(Array(looks.prefix(3))).age == .estimated(seconds: 9))
        // Nothing is known of what was there from the beginning on.
        #expect(try lag([look(0, committed: 4, 0..<10), look(10, committed: 4, 0..<10)]).age == .atLeast(seconds: 10))
        #expect(try lag([look(0, committed: 10, 0..<10)]).age == nil)
    }

    /// However long it is looked.
    @Test func theAgeOfWhatStandsStillGoesOnGrowing() throws {
        let looks = (0..<500).map { look($0 * 10, committed: min($0 * 7, 70), 0..<(1 + $0 * 7), isKnown: false) }
        // The message after the one at 70 came with the look at 110.
        let age = try lag(looks).age
        guard case .estimated(let seconds) = age else {
            Issue.record("\(String(describing: age))")
            return
        }
        #expect(abs(seconds - Double(4_990 - 110)) <= 10)
    }

    @Test func theAgeOfWhatIsFarBehindIsAboutRight() throws {
        // It does what came two thousand looks before: at each look ten messages come and go.
        for distance in [30, 300, 2_000] as [Int64] {
            let looks = (0...(distance + 500)).map {
                look($0 * 10, committed: max(0, ($0 - distance) * 10), 0..<(1 + $0 * 10), isKnown: false)
            }
            let age = try #require(try lag(looks).age)
            guard case .estimated = age else {
                Issue.record("\(distance): \(age)")
                continue
            }
            #expect(abs(age.seconds / Double(distance * 10) - 1) < 0.2, "\(distance): \(age)")
        }
    }

    @Test func aProblemThatStaysDoesNotKeepAllThatEverWas() throws {
        var history = LagHistory()
        for number in 0..<10 { history.take(look(Int64(number) * 10, committed: 7, 0..<100)) }
        func missed(_ second: Int64) -> LagLook {
            LagLook(milliseconds: second * 1_000, available: [:], groups: [], problems: ["x": KafkaError(timeout: "x")])
        }
        history.take(missed(3_600))
        history.take(look(3_610, committed: 7, 0..<100))
        #expect(history.lags.first?.status == .stall, "it is remembered")
        history.take(missed(7_300))
        history.take(look(7_310, committed: 7, 0..<100))
        #expect(history.lags.first?.status == nil, "it was forgotten")
    }

    @Test func whatTheMessageItselfSaysGoesBeforeThat() throws {
        var history = LagHistory()
        history.take(look(100, committed: 4, 0..<10))
        #expect(history.unknownAges(of: "g") == [Self.place: 4])
        history.learn([Self.place: 58_000], of: "g")
        #expect(history.unknownAges(of: "g").isEmpty)
        #expect(history.lags.first?.age == .exact(seconds: 42))
        // It is remembered while the group stays there.
        history.take(look(110, committed: 4, 0..<11))
        #expect(history.unknownAges(of: "g").isEmpty && history.lags.first?.age == .exact(seconds: 52))
        history.take(look(120, committed: 5, 0..<11))
        #expect(history.unknownAges(of: "g") == [Self.place: 5])
    }

    @Test func contentThatWasLostIsNotEstimatedBy() throws {
        let looks = [
            look(0, committed: 0, 0..<10), look(10, committed: 0, 0..<20), look(20, committed: nil, 0..<5),
        ]
        #expect(try lag(looks).age == .atLeast(seconds: 0))
    }

    @Test func aGroupIsJudgedWhenItWasSeenForLongEnough() throws {
        func status(_ count: Int64, members: Int?, _ committed: (Int64) -> Int64) throws -> LagStatus? {
            try lag((0..<count).map { look($0 * 10, committed: committed($0), 0..<(100 + $0 * 10), members: members) })
                .status
        }
        // It is there and does not go on: stalled. Nobody is there: stopped.
        #expect(try status(9, members: 1, { _ in 7 }) == nil)
        #expect(try status(10, members: 1, { _ in 7 }) == .stall)
        #expect(try status(10, members: 0, { _ in 7 }) == .stop)
        // Who is not told by the brokers to be there is known by its commits alone.
        #expect(try status(10, members: nil, { _ in 7 }) == .stop)
        #expect(try status(10, members: nil, { 7 + $0 }) == .warn)
        #expect(try status(10, members: 1, { 7 + $0 * 20 }) == .ok)
        #expect(try status(10, members: 1, { $0 == 8 ? 3 : 7 + $0 }) == .rewind)
    }

    @Test func nothingIsExpectedOfAGroupThatIsOver() throws {
        func lag(members: Int?, isKnown: Bool, _ committed: (Int64) -> Int64?) throws -> PartitionLag {
            try self.lag(
                (0..<10).map {
                    look($0 * 10, committed: committed($0), 0..<(100 + $0), members: members, isKnown: isKnown)
                })
        }
        // Somebody else's reader that ended long ago; one that was seen at work.
        #expect(try lag(members: 0, isKnown: false) { _ in 7 }.status == nil)
        #expect(try lag(members: 0, isKnown: false) { _ in 7 }.isFollowed == false)
        #expect(try lag(members: 0, isKnown: false) { $0 < 2 ? 7 + $0 : 8 }.status == .stop)
        // A service that is not there, and was not; one that hangs on its first message.
        #expect(try lag(members: 0, isKnown: true) { _ in nil }.status == nil)
        #expect(try lag(members: 1, isKnown: true) { _ in nil }.status == .stall)
        // One that was there, and ended before it had finished anything.
        let ended = try self.lag(
            (0..<10).map {
                look($0 * 10, committed: nil, 0..<(100 + $0), members: $0 < 2 ? 1 : 0, isKnown: true)
            })
        #expect(ended.status == .stop && ended.isFollowed)
    }

    @Test func whatWasCommittedInLostContentIsNoSignOfLife() throws {
        // It was at the end; then the broker came back empty, and nobody reads what is written since.
        let looks = (0..<10).map { look($0 * 10, committed: 1_000, 0..<1_000) }
        let after = (10..<25).map { look($0 * 10, committed: 1_000, 0..<(10 + $0)) }
        #expect(try lag(looks + after).status == .stall)
    }

    @Test func aLookThatCouldNotTellAllForgetsNothing() throws {
        var history = LagHistory()
        for number in 0..<10 { history.take(look(Int64(number) * 10, committed: 7, 0..<100)) }
        #expect(history.lags.first?.status == .stall)
        history.take(
            LagLook(milliseconds: 100_000, available: [:], groups: [], problems: ["g": KafkaError(timeout: "x")]))
        #expect(history.lags.isEmpty)
        history.take(look(110, committed: 7, 0..<100))
        #expect(history.lags.first?.status == .stall)
    }

    @Test func aGroupThatIsGoneIsForgotten() {
        var history = LagHistory()
        history.take(look(0, committed: 3, 0..<10))
        history.take(LagLook(milliseconds: 10_000, available: [:], groups: []))
        #expect(history.lags.isEmpty)
    }
}
