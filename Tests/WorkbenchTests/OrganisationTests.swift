import DataFiles
import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import Workbench

@Suite(.ownThreads) struct GeneratedOrganisationTests {
    @Test func theSameSeedMakesTheSameOrganisation() {
        #expect(GeneratedOrganisation.make(people: 10, seed: 7) == GeneratedOrganisation.make(people: 10, seed: 7))
        #expect(GeneratedOrganisation.make(people: 10, seed: 7) != GeneratedOrganisation.make(people: 10, seed: 8))
    }

    @Test func generatedOrganisationResemblesTheRealOne() {
        let organisation = GeneratedOrganisation.make()
        #expect(organisation.people.count == 40)
        #expect((1200...1800).contains(organisation.entries.count), "\(organisation.entries.count)")
        #expect(organisation.expectationCounts.count == 3, "released, without duration and not active all occur")
        expectWhole(organisation)
        expectEmployedToday(organisation)
    }
}

@Suite(.ownThreads) struct EnvironmentsOrganisationTests {
    @Test func twoEnvironmentsHaveNothingInCommon() {
        let base = GeneratedOrganisation.make(people: 8, seed: 1)
        let (first, second) = (base.placed(in: "demo"), base.placed(in: "tock"))
        #expect(first == base.placed(in: "demo"))
        expectWhole(first)
        #expect(first.expectationCounts == base.expectationCounts)
        #expect(first.people.allSatisfy { $0.companyCode.utf8.count == 4 && $0.email.hasSuffix("@demo.example") })
        for ids: (Organisation) -> [String] in [
            { $0.customers.map(\.id) }, { $0.projects.map(\.id) }, { $0.elements.map(\.id) },
            { $0.people.map(\.personWorkAgreementExternalId) }, { $0.people.map(\.companyCode) },
            { $0.people.map(\.businessPartnerUuid.text) }, { $0.people.map(\.email) }, { $0.entries.map(\.id.text) },
        ] {
            #expect(Set(ids(first)).isDisjoint(with: ids(second)))
        }
    }
}

/// Needs the folder with the time sheets of 18F in the environment variable `FIELDPOST_TEST_DATA`; otherwise these
/// tests are disabled with a message.
@Suite(
    .enabled(
        if: ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"] != nil,
        "FIELDPOST_TEST_DATA does not name the folder with timesheets-tock.csv.gz"))
struct TockDataTests {
    @Test func everyRowOfTheTimeSheetsIsAccountedFor() throws {
        let organisation = try load()
        #expect(organisation.rowsTotal == 11_047)
        #expect(organisation.people.count == 150)
        #expect(organisation.customers.count == 20)
        #expect(organisation.projects.count == 114)
        #expect(Set(organisation.teamMembers.map(\.project)).count == 98)
        #expect(organisation.people.count { $0.active == nil } == 13)
        #expect(Hours(seconds: organisation.entries.reduce(0) { $0 + $1.durationSeconds }).description == "171624.72")
        expectWhole(organisation)
        expectWhole(organisation.placed(in: "tock"))
        expectEmployedToday(organisation)
        let counts = organisation.expectationCounts
        #expect(counts[.invalid(.noDuration)] == 15)
        print("18F: \(organisation.entries.count) entries, \(counts)")
    }

    @Test func aMissingFileIsNamed() {
        let problem = #expect(throws: DataFile.Problem.self) { try TockData.load("/nonexistent") }
        #expect(problem?.description == "/nonexistent has neither tree-tock-projects.csv nor tree-tock-projects.csv.gz")
    }

    private func load() throws -> Organisation {
        try TockData.load(try #require(ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"]))
    }
}

/// The invariants of every organisation: ids are unique and valid, references exist, all rows have entries, and no
/// entry violates a device's limit except the duration.
private func expectWhole(_ organisation: Organisation) {
    let people = Dictionary(organisation.people.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    let customers = Set(organisation.customers.map(\.id))
    let projects = Dictionary(organisation.projects.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    let elements = Dictionary(organisation.elements.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    let members = Set(organisation.teamMembers)
    #expect(people.count == organisation.people.count)
    #expect(projects.count == organisation.projects.count)
    #expect(elements.count == organisation.elements.count)
    #expect(Set(organisation.people.map(\.businessPartnerUuid)).count == people.count)
    #expect(Set(organisation.entries.map(\.id)).count == organisation.entries.count)
    #expect(Set(organisation.entries.map(\.sourceRow)).count == organisation.rowsTotal)
    #expect(organisation.projects.allSatisfy { customers.contains($0.customer) })
    #expect(organisation.elements.allSatisfy { projects[$0.project] != nil && $0.id.utf8.count <= 24 })
    for entry in organisation.entries {
        let isActive = people[entry.person]?.isActive(on: entry.day) ?? false
        let expected: PlannedEntry.Expectation =
            entry.durationSeconds == 0 ? .invalid(.noDuration) : isActive ? .released : .invalid(.notActive)
        let isWhole =
            entry.expectation == expected && entry.text.count <= TimeEntry.submittedTextLengthMax && !entry.text.isEmpty
            && elements[entry.accountingCode]?.project == entry.project && people[entry.person] != nil
            && members.contains(.init(project: entry.project, person: entry.person))
            && (0...EntryRules.durationSecondsMax).contains(entry.durationSeconds)
        if !isWhole { Issue.record("\(entry)") }
    }
}

/// All people are employed today, and for a year before and after, so that entries of these days can be tried on them.
private func expectEmployedToday(_ organisation: Organisation) {
    let today = Timestamp.now().day
    for day in [-365, 0, 365].map(today.adding(days:)) {
        #expect(organisation.people.allSatisfy { $0.isActive(on: day) }, "\(day)")
    }
}

extension Organisation {
    /// The number of entries by expectation; entries expected invalid are counted by reason.
    fileprivate var expectationCounts: [PlannedEntry.Expectation: Int] {
        entries.reduce(into: [:]) { $0[$1.expectation, default: 0] += 1 }
    }
}
