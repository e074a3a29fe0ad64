import BackendProtocol
import Backends
import Model

/// The people that a back end proposes, compared with those that an environment has.
struct PersonProposals {
    enum State: String, Encodable {
        case new
        /// The stored reference is the same.
        case unchanged
        /// The stored reference differs.
        case differs
        case unusable
        /// Added or updated by this command.
        case accepted
    }

    struct Row: Encodable {
        /// Normalised, if it is an address.
        let email: String?
        let name: String
        let reference: [String: String]
        var state: State
        var detail: String?
    }

    private(set) var rows: [Row]

    init(
        _ proposals: [BackendPersonProposal], stored: [String: [String: String]], domains: [String], addresses: [String]
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
            guard let email else { return row(.unusable, "'\(text)' is not a usable e-mail address") }
            guard !proposal.isBarred else { return row(.unusable, "barred in the back end") }
            guard domains.contains(email.domain) || addresses.contains(email.description) else {
                return row(.unusable, "not in the environment's domains and addresses")
            }
            // Its owner is ambiguous.
            guard counts[email.description] == 1 else { return row(.unusable, "the address occurs twice") }
            guard let reference = stored[email.description] else { return row(.new) }
            return reference == proposal.reference
                ? row(.unchanged) : row(.differs, "stored reference: \(Self.text(reference))")
        }
    }

    /// Accepts all new people.
    mutating func acceptAll() -> [BackendPerson] { accept { $0.state == .new } }

    /// Accepts the named people, who are new or have a different reference.
    ///
    /// - Throws: `CommandFailure` if one of them cannot be accepted; then none is.
    mutating func accept(_ emails: [String]) throws -> [BackendPerson] {
        let requested = Set(emails.map(EmailAddress.lowered))
        for email in requested.sorted() {
            let matches = rows.filter { $0.email == email }
            if matches.isEmpty { throw CommandFailure("the back end has no person with the address \(email)") }
            if let row = matches.first(where: { $0.state == .unusable }) {
                throw CommandFailure("\(email) cannot be accepted: \(row.detail ?? "")")
            }
        }
        return accept { row in
            (row.state == .new || row.state == .differs) && row.email.map(requested.contains) ?? false
        }
    }

    private mutating func accept(where isAccepted: (Row) -> Bool) -> [BackendPerson] {
        var accepted: [BackendPerson] = []
        for index in rows.indices where isAccepted(rows[index]) {
            guard let email = rows[index].email else { continue }
            accepted.append(BackendPerson(email: email, reference: rows[index].reference))
            rows[index].state = .accepted
        }
        return accepted
    }

    /// The reference as one line of text.
    static func text(_ reference: [String: String]) -> String {
        reference.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    }
}
