/// The longest text that a back end keeps, in the unit in which that back end counts.
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

    /// The number of units.
    public var lengthMax: Int
    /// The unit.
    public var unit: Unit

    /// A limit of `lengthMax` units.
    public init(_ lengthMax: Int, _ unit: Unit) {
        self.lengthMax = lengthMax
        self.unit = unit
    }

    /// The length of a text in the unit.
    public func length(of text: String) -> Int {
        switch unit {
        case .utf16: text.utf16.count
        case .scalars: text.unicodeScalars.count
        case .utf8: text.utf8.count
        }
    }

    /// Returns a sentence for the person who wrote the text; `nil` for a text within the limit.
    ///
    /// The sentence explains the unit where the person would count another number.
    package func problem(with text: String) -> String? {
        let length = length(of: text)
        if length <= lengthMax { return nil }
        if length == text.count { return "Text has \(length) characters; at most \(lengthMax) are allowed" }
        let explanation =
            switch unit {
            case .utf16, .scalars: "characters as the back end counts them (an emoji or an accent may count as several)"
            case .utf8: "bytes (a letter that is not in a to z is two or more, an emoji four or more)"
            }
        return "Text has \(length) \(explanation); at most \(lengthMax) are allowed"
    }
}
