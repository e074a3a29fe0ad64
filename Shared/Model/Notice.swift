public import Essentials
public import FoundationEssentials

/// Fields of a `Notice` object: something a person is to know of. In the person's own realm.
///
/// The server makes it; its person says that they have read it, or deletes it. One that was deleted does not come back.
public struct Notice: Codable, Equatable, Sendable {
    /// What a notice tells, for programs. Others may be added: who does not know one shows the text.
    public struct Code: RawRepresentable, Codable, Hashable, Sendable {
        /// The word in JSON.
        public let rawValue: String
        /// Any word is a code.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A ``Defect`` was assigned to the person.
        public static let defectAssigned = Code(rawValue: "defect-assigned")
        /// A ``Defect`` that is assigned to the person was changed by somebody else.
        public static let defectModified = Code(rawValue: "defect-modified")

        /// Those that the server writes.
        public static let all = [defectAssigned, defectModified]
    }

    /// The id of the object that it is about, in the same realm; it may be gone by now. `nil`: of none.
    public var about: UUID?
    /// What it tells, for programs.
    public var code: Code
    /// What it tells, for its person.
    public var text: String
    /// When the server heard of it.
    public var timestamp: Timestamp
    /// Whether its person has read it.
    public var isRead: Bool

    /// A notice.
    public init(about: UUID?, code: Code, text: String, timestamp: Timestamp, isRead: Bool = false) {
        self.about = about
        self.code = code
        self.text = text
        self.timestamp = timestamp
        self.isRead = isRead
    }

    /// Reads the fields; without `isRead` it is not read.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        about = try container.decodeIfPresent(UUID.self, forKey: .about)
        code = try container.decode(Code.self, forKey: .code)
        text = try container.decode(String.self, forKey: .text)
        timestamp = try container.decode(Timestamp.self, forKey: .timestamp)
        isRead = try container.decodeIfPresent(Bool.self, forKey: .isRead) ?? false
    }
}

extension Notice: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case about, code, text, timestamp, isRead
    }

    /// The names of the fields that its person writes.
    package static let ownerNames = [CodingKeys.isRead.stringValue]

    /// The row of ``Kind/notice``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user], bytesMax: Kind.commonBytesMax,
        route: Route(to: Topics.notice, from: [.user]))
}
