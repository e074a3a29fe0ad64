extension StringProtocol {
    /// The beginning of an external text, for error messages: at most 64 Unicode scalars, hence 256 bytes.
    package var excerpt: String { prefix(scalars: 64) }

    /// Returns the beginning of a text, truncated by Unicode scalars: a `Character` can consist of any number of them.
    package func prefix(scalars countMax: Int) -> String {
        String(String.UnicodeScalarView(unicodeScalars.prefix(countMax)))
    }
}
