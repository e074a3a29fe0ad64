import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import LocationFanOut

/// Two workers, and late, duplicate and reordered events: the copies converge to those computed from all objects.
@Suite(.ownThreads) struct LocationSimulationTests {
    @Test(arguments: Seeds.random(6, for: "location-fan-out")) func eventsInAnyOrderConverge(seed: UInt64) throws {
        var simulation = try LocationSimulation(seed: seed)
        for _ in 0..<30 {
            for _ in 0..<15 { try simulation.step() }
            try simulation.settle()
            try simulation.world.expectReferenceCopies()
        }
        // All events are published again, as with a new topic incarnation.
        let before = try simulation.world.position()
        try simulation.republish()
        try simulation.settle()
        #expect(try simulation.world.position() == before, "seed \(seed)")
        #expect(simulation.missedCount > 0, "seed \(seed) had no conflict")
    }
}

private struct LocationSimulation: ~Copyable {
    private struct Pending {
        let subjects: [EventSubject]
        let batch: WriteBatch
    }

    var world: LocationWorld
    private(set) var missedCount = 0
    private var random: SplitMix64
    private let people: [UUID]
    private let teams = (0..<3).map { _ in UUID() }
    private let foreignIDs = [UUID(), UUID()]
    private var handlers = [LocationHandler(), LocationHandler()]
    private var pending: [Pending?] = [nil, nil]
    /// Unprocessed events, in arbitrary order.
    private var inbox: [EventSubject] = []
    private var everything: Set<EventSubject> = []
    private var latitude = 0

    init(seed: UInt64) throws {
        var world = try LocationWorld()
        people = [try world.person("ana"), try world.person("ben"), try world.person("cora")]
        self.world = world
        random = SplitMix64(seed: seed)
        for person in people { publish(.common, .person, person) }
    }

    mutating func step() throws {
        switch Int.random(in: 0..<10, using: &random) {
        case 0...3: try change()
        case 4...6: try load(Int.random(in: 0...1, using: &random), countMax: Int.random(in: 1...6, using: &random))
        case 7, 8: try commit(Int.random(in: 0...1, using: &random))
        default: try takeDue()
        }
    }

    mutating func settle() throws {
        while try !inbox.isEmpty || pending.contains(where: { $0 != nil }) || takeDue() {
            for number in 0...1 {
                try load(number, countMax: 20)
                try commit(number)
            }
        }
    }

    mutating func republish() throws { inbox += everything.shuffled(using: &random) }

    // MARK: Changes

    private mutating func publish(_ realm: RealmPath, _ kind: Kind, _ id: UUID) {
        let subject = EventSubject(realm: realm, kind: kind, id: id)
        everything.insert(subject)
        inbox.append(subject)
        // At least once.
        if Int.random(in: 0..<4, using: &random) == 0 { inbox.append(subject) }
    }

    private mutating func change() throws {
        let person = people[Int.random(in: 0..<people.count, using: &random)]
        let team = teams[Int.random(in: 0..<teams.count, using: &random)]
        let exists = Int.random(in: 0..<3, using: &random) > 0
        let membership = Membership.id(of: person, in: team)
        switch Int.random(in: 0..<10, using: &random) {
        case 0...3:
            latitude += 1
            if exists { try world.report(person, Double(latitude % 90)) } else { try world.stopReporting(person) }
            publish(try world.own(person), .location, person)
        case 4...6:
            if exists { try world.acme.add(person, to: team) } else { try world.acme.remove(person, from: team) }
            publish(.common, .membership, membership)
        case 7:
            if exists { _ = try world.acme.makeTeam(team) } else { try world.acme.delete(.team, team, in: .common) }
            publish(.common, .team, team)
        case 8:
            if exists {
                try world.put(.person, person, "{\"name\":\"\(latitude)\"}", in: .common)
            } else {
                try world.acme.delete(.person, person, in: .common)
            }
            publish(.common, .person, person)
        default:
            let foreignID = foreignIDs[Int.random(in: 0...1, using: &random)]
            let fields = exists ? #"{"latitude":80,"longitude":8}"# : #"{"latitude":"north"}"#
            try world.put(.location, exists ? foreignID : person, fields, in: try world.own(person))
            publish(try world.own(person), .location, exists ? foreignID : person)
        }
    }

    // MARK: Workers

    private mutating func load(_ number: Int, countMax: Int) throws {
        guard pending[number] == nil, !inbox.isEmpty else { return }
        inbox.shuffle(using: &random)
        var subjects: [EventSubject] = []
        while subjects.count < countMax, let subject = inbox.popLast() {
            // A worker has a key once.
            if !subjects.contains(subject) { subjects.append(subject) }
        }
        let environment = world.acme.id
        let items = subjects.map { subject in
            WorkItem<Never>(environment: environment, subject: subject, origin: .event, attemptCount: 0)
        }
        var batch = WriteBatch(environment: environment)
        _ = try handlers[number].decide(items, in: environment, batch: &batch, on: &world.acme.connection)
        pending[number] = Pending(subjects: subjects, batch: batch)
    }

    private mutating func commit(_ number: Int) throws {
        guard let work = pending[number] else { return }
        pending[number] = nil
        // The worker crashes before or after its commit: its events are redelivered to the next one.
        let fate = Int.random(in: 0..<10, using: &random)
        if fate > 0 {
            let missed = try work.batch.commit(on: &world.acme.connection).conflicts
            missedCount += missed.count
            inbox += missed.map { work.subjects[$0] }
        }
        if fate < 2 {
            handlers[number] = LocationHandler()
            inbox += work.subjects
        }
    }

    @discardableResult
    private mutating func takeDue() throws -> Bool {
        let rows = try world.acme.connection.run("DELETE FROM pipeline.parked WHERE NOT is_dead RETURNING subject")
        let subjects = try rows.decode(String.self).compactMap { EventSubject($0) }
        inbox += subjects
        return !subjects.isEmpty
    }
}
