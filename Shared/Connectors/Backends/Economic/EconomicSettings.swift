package import BackendProtocol

/// The address, credentials and limits of e-conomic.
package struct EconomicSettings: Sendable, CustomStringConvertible {
    /// Scheme, host and port without a path: `https://apis.e-conomic.com`.
    package var baseURL: String
    /// Header `X-AppSecretToken`: identifies the calling application.
    package var appSecretToken: String
    /// Header `X-AgreementGrantToken`: grants access to an agreement. The roles ProjectEmployee or SuperUser suffice.
    package var agreementGrantToken: String
    package var connectMax: Duration = .seconds(5)
    package var totalMax: Duration = .seconds(30)
    /// Maximum number of pages of a listing, of at most 1,000 rows each; a longer listing fails instead of being
    /// truncated.
    package var pagesMax = 200
    /// Past days whose records determine suggestions.
    package var suggestionDays = 60
    package var suggestionsMax = 20
    /// The overlap of successive reads of changes: longer than the difference of e-conomic's clocks, the delay until a
    /// change is visible, and the time to read all pages of a listing.
    package var changesOverlap: Duration = .seconds(15 * 60)
    /// Maximum age of cached listings that are equal for all people.
    package var listingAgeMax: Duration = .seconds(10)
    /// The maximum length of an entry's text. The vendor's OpenAPI document states no limit; the first model's apps
    /// allow 40 characters, and truncation of a longer text would remove the marker.
    ///
    /// The unit is undocumented too. UTF-16 code units are assumed, as in .NET and SQL Server's `nvarchar`. A text
    /// never has more scalars than code units, so the limit also holds if scalars are counted.
    package var textLimit = TextLimit(40, .utf16)

    package init(baseURL: String, appSecretToken: String, agreementGrantToken: String) {
        self.baseURL = baseURL.hasSuffix("/") ? String(baseURL.dropLast()) : baseURL
        self.appSecretToken = appSecretToken
        self.agreementGrantToken = agreementGrantToken
    }

    /// Creates settings from a stored password.
    ///
    /// - Parameter password: Both tokens: `appSecretToken:agreementGrantToken`.
    /// - Returns: `nil` if the password does not consist of two tokens.
    package init?(baseURL: String, password: String) {
        let tokens = password.split(separator: ":", omittingEmptySubsequences: false)
        guard tokens.count == 2, !tokens[0].isEmpty, !tokens[1].isEmpty else { return nil }
        self.init(baseURL: baseURL, appSecretToken: String(tokens[0]), agreementGrantToken: String(tokens[1]))
    }

    static let all: [BackendSetting] = [
        .suggestionDays, .suggestionsMax, .pagesMax, changesOverlapSetting, .textLengthMax, .textUnit,
    ]
    private static let changesOverlapSetting = BackendSetting(
        name: "changesOverlapSeconds", help: "overlap of successive reads of changes in seconds",
        values: .number(60...86_400))

    /// Applies an environment's settings, which were validated when they were stored.
    mutating func apply(_ settings: BackendSettingValues) {
        settings.apply(.suggestionDays, to: &suggestionDays)
        settings.apply(.suggestionsMax, to: &suggestionsMax)
        settings.apply(.pagesMax, to: &pagesMax)
        settings.apply(to: &textLimit)
        var seconds = Int(changesOverlap.components.seconds)
        settings.apply(Self.changesOverlapSetting, to: &seconds)
        changesOverlap = .seconds(seconds)
    }

    /// A description without the tokens, because settings are logged.
    package var description: String { "e-conomic at \(baseURL)" }
}
