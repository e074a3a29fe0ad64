import Essentials
import FoundationEssentials
import Model

/// An employer whose people register time: the master data of the back end, and the plans of the devices.
struct Organisation: Equatable, Sendable {
    /// A customer of projects.
    struct Customer: Equatable, Sendable {
        /// The customer's number in the back end.
        let id: String
        let name: String
    }

    struct Project: Equatable, Sendable {
        /// The project's number in the back end.
        let id: String
        let name: String
        /// The ``Customer/id``.
        let customer: String
    }

    /// An accounting code within a project: a WBS element. The same code under two projects is two elements.
    struct Element: Equatable, Sendable {
        /// The element's number in the back end, unique over all projects; at most 24 characters (SAP's `WBSElement`).
        let id: String
        let name: String
        /// The ``Project/id``.
        let project: String
    }

    struct Person: Equatable, Sendable {
        let id: String
        let name: String
        var email: String
        /// The days on which the back end takes time for the person; `nil` without dates: always.
        var active: ClosedRange<Day>?
        /// At most 20 characters (SAP's `PersonWorkAgreementExternalID`).
        var personWorkAgreementExternalId: String
        /// 4 characters (SAP's `CompanyCode`).
        var companyCode: String
        var businessPartnerUuid: UUID

        func isActive(on day: Day) -> Bool { active?.contains(day) ?? true }
    }

    /// A person may report on a project.
    struct TeamMember: Hashable, Sendable {
        /// The ``Project/id``.
        let project: String
        /// The ``Person/id``.
        let person: String
    }

    var customers: [Customer]
    var projects: [Project]
    var elements: [Element]
    var people: [Person]
    var teamMembers: [TeamMember]
    /// Every entry the devices will draft; a source row's entries stand together, in the order of their days.
    var entries: [PlannedEntry]
    /// The number of source rows. Every row has at least one entry.
    var rowsTotal: Int
}

/// Time that a person will register on a day, and how that should end.
struct PlannedEntry: Equatable, Sendable {
    enum Expectation: Hashable, Sendable {
        case released
        case invalid(InvalidReason)
    }

    /// Why an entry cannot be recorded.
    enum InvalidReason: String, Hashable, CaseIterable, Sendable {
        /// ``EntryRules`` finds it: the source has a row of 0 hours.
        case noDuration = "Duration must be more than 0"
        /// The back end finds it: the day is before the person's first or after the last day.
        case notActive = "not active on"
    }

    /// The entry's id; the same for the same source and day, so that a second run meets the same entries.
    var id: UUID
    /// The ``Organisation/Person/id``.
    let person: String
    var day: Day
    let durationSeconds: Int
    /// The ``Organisation/Project/id``.
    var project: String
    /// The ``Organisation/Element/id``.
    var accountingCode: String
    /// At most ``TimeEntry/submittedTextLengthMax`` characters.
    let text: String
    /// The id of the source row.
    let sourceRow: Int
    var expectation: Expectation
}
