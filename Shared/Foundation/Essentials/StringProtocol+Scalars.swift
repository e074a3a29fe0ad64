extension StringProtocol {
    /// The beginning of a text of a caller, a file or another system, as problems quote it: at most 64 Unicode scalars,
    /// and so 256 bytes.
    package var excerpt: String { prefix(scalars: 64) }

    /// Returns the beginning of a text, cut by Unicode scalars: a `Character` may be of any number of them.
    package func prefix(scalars countMax: Int) -> String {
        String(String.UnicodeScalarView(unicodeScalars.prefix(countMax)))
    }
}
