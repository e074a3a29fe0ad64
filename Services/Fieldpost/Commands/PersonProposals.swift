import BackendProtocol
import Backends
import Model

/// Whom a back end proposes, beside whom an environment has.
struct PersonProposals {
    enum State: String, Encodable {
        case new
        /// The same as is stored.
        case known
        /// Another reference is stored.
        case differs
        case unusable
        /// Taken just now.
        case accepted
    }

    struct Row: Encodable {
        /// As Fieldpost compares it, where it is an address.
        let email: String?
        let name: String
        let reference: [String: String]
        var state: State
        var detail: String?
    }

    private(set) var rows: [Row]

    init(
        _ proposals: [BackendPersonProposal], stored: [String: [String: String]], domains: [String],
        addresses: [String]
    ) {
        let emails = proposals.map { $0.email.flatMap { EmailAddress($0) } }
        let counts = Dictionary(emails.compactMap { $0?.description }.map { ($0, 1) }, uniquingKeysWith: +)
        rows = zip(proposals, emails).map { proposal, email in
            func row(_ state: State, _ detail: String? = nil) -> Row {
                Row(
                    email: email?.description ?? proposal.email, name: proposal.name, reference: proposal.reference,
                    state: state, detail: detail)
            }
            guard let text = proposal.email else { return row(.unusable, "no e-mail address") }
            guard let email else { return row(.unusable, "'\(text)' is not an e-mail address that can be used") }
            guard !proposal.isBarred else { return row(.unusable, "barred in the back end") }
            guard domains.contains(email.domain) || addresses.contains(email.description) else {
                return row(.unusable, "of none of the environment's domains and addresses")
            }
            // Whose it is cannot be told.
            guard counts[email.description] == 1 else { return row(.unusable, "the address is there twice") }
            guard let reference = stored[email.description] else { return row(.new) }
            return reference == proposal.reference
                ? row(.known) : row(.differs, "stored is \(Self.text(reference))")
        }
    }

    /// Takes all who are new.
    mutating func acceptAll() -> [BackendPerson] { take { $0.state == .new } }

    /// Takes those named: who are new, and who have another reference than is stored.
    ///
    /// - Throws: `CommandFailure` when one of them cannot be taken; nobody is, then.
    mutating func accept(_ emails: [String]) throws -> [BackendPerson] {
        let wanted = Set(emails.map(EmailAddress.lowered))
        for email in wanted.sorted() {
            let found = rows.filter { $0.email == email }
            if found.isEmpty { throw CommandFailure("the back end knows nobody with the address \(email)") }
            if let row = found.first(where: { $0.state == .unusable }) {
                throw CommandFailure("\(email) cannot be taken: \(row.detail ?? "")")
            }
        }
        return take { row in
            (row.state == .new || row.state == .differs) && row.email.map(wanted.contains) ?? false
        }
    }

    private mutating func take(_ isTaken: (Row) -> Bool) -> [BackendPerson] {
        var taken: [BackendPerson] = []
        for index in rows.indices where isTaken(rows[index]) {
            guard let email = rows[index].email else { continue }
            taken.append(BackendPerson(email: email, reference: rows[index].reference))
            rows[index].state = .accepted
        }
        return taken
    }

    /// For a person to read.
    static func text(_ reference: [String: String]) -> String {
        reference.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    }
}
