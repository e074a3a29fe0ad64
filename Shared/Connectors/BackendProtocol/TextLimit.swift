/// The maximum length of a text in a back end, in the unit that the back end counts.
///
/// One character on a screen may be several units: an accent may be a Unicode scalar of its own, an emoji is often a
/// sequence of scalars, and each scalar above U+FFFF is two UTF-16 code units and four bytes of UTF-8.
public struct TextLimit: Equatable, Sendable {
    /// The unit of a length.
    public enum Unit: String, CaseIterable, Sendable {
        /// UTF-16 code units, as in ABAP, Java, .NET and SQL Server's `nvarchar`.
        case utf16
        /// Unicode scalars (code points), as in PostgreSQL.
        case scalars
        /// Bytes of UTF-8, as in Oracle's `VARCHAR2(n BYTE)`.
        case utf8
    }

    /// The maximum number of units.
    public var lengthMax: Int
    /// The unit of ``lengthMax``.
    public var unit: Unit

    /// Creates a limit of `lengthMax` units.
    public init(_ lengthMax: Int, _ unit: Unit) {
        self.lengthMax = lengthMax
        self.unit = unit
    }

    /// Returns the length of a text in ``unit``.
    public func length(of text: String) -> Int {
        switch unit {
        case .utf16: text.utf16.count
        case .scalars: text.unicodeScalars.count
        case .utf8: text.utf8.count
        }
    }

    /// Returns a message for the author of a text that is too long; `nil` if the text is within the limit.
    ///
    /// The message explains the unit if the number of units differs from the number of characters.
    package func problem(with text: String) -> String? {
        let length = length(of: text)
        if length <= lengthMax { return nil }
        if length == text.count { return "Text has \(length) characters; at most \(lengthMax) are allowed" }
        let explanation =
            switch unit {
            case .utf16, .scalars: "characters as the back end counts them (an emoji or an accent may count as several)"
            case .utf8: "bytes (a letter other than a to z has two or more, an emoji four or more)"
            }
        return "Text has \(length) \(explanation); at most \(lengthMax) are allowed"
    }
}
