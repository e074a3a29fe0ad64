package import BackendProtocol

/// Where e-conomic is and how to talk to it.
package struct EconomicSettings: Sendable, CustomStringConvertible {
    /// Scheme, host and port without a path: `https://apis.e-conomic.com`.
    package var baseURL: String
    /// Header `X-AppSecretToken`: which application calls.
    package var appSecretToken: String
    /// Header `X-AgreementGrantToken`: whose books it may see. The roles ProjectEmployee or SuperUser suffice.
    package var agreementGrantToken: String
    package var connectMax: Duration = .seconds(5)
    package var totalMax: Duration = .seconds(30)
    /// Pages of one listing, of at most 1,000 rows each; a listing that is longer fails rather than being cut.
    package var pagesMax = 200
    /// How far back a person's records are read for suggestions.
    package var suggestionDays = 60
    package var suggestionsMax = 20
    /// How far back changes are read again: more than e-conomic's clocks differ, than a change takes to become visible,
    /// and than all pages of a listing take to be read.
    package var changesOverlap: Duration = .seconds(15 * 60)
    /// How long the listings that are the same for everybody serve all calls.
    package var listingAgeMax: Duration = .seconds(10)
    /// The longest text of an entry. The vendor's OpenAPI document states no limit; the first model's apps allow 40
    /// characters, and what is cut off a longer text would be the marker.
    ///
    /// The unit is not documented either. UTF-16 code units are assumed, as .NET and SQL Server's `nvarchar` count: a
    /// text has never more scalars than these, so that the limit holds where scalars are counted too.
    package var textLimit = TextLimit(40, .utf16)

    package init(baseURL: String, appSecretToken: String, agreementGrantToken: String) {
        self.baseURL = baseURL.hasSuffix("/") ? String(baseURL.dropLast()) : baseURL
        self.appSecretToken = appSecretToken
        self.agreementGrantToken = agreementGrantToken
    }

    /// - Parameter password: Both tokens, as they are stored: `appSecretToken:agreementGrantToken`.
    /// - Returns: `nil` when these are not two tokens.
    package init?(baseURL: String, password: String) {
        let tokens = password.split(separator: ":", omittingEmptySubsequences: false)
        guard tokens.count == 2, !tokens[0].isEmpty, !tokens[1].isEmpty else { return nil }
        self.init(baseURL: baseURL, appSecretToken: String(tokens[0]), agreementGrantToken: String(tokens[1]))
    }

    static let all: [BackendSetting] = [
        .suggestionDays, .suggestionsMax, .pagesMax, changesOverlapSetting, .textLengthMax, .textUnit,
    ]
    private static let changesOverlapSetting = BackendSetting(
        name: "changesOverlapSeconds", help: "seconds of changes that are read again each time",
        values: .number(60...86_400))

    /// Takes an environment's settings over; they were checked when they were stored.
    mutating func apply(_ settings: BackendSettingValues) {
        settings.apply(.suggestionDays, to: &suggestionDays)
        settings.apply(.suggestionsMax, to: &suggestionsMax)
        settings.apply(.pagesMax, to: &pagesMax)
        settings.apply(to: &textLimit)
        var seconds = Int(changesOverlap.components.seconds)
        settings.apply(Self.changesOverlapSetting, to: &seconds)
        changesOverlap = .seconds(seconds)
    }

    /// Without the tokens, because settings end up in logs.
    package var description: String { "e-conomic at \(baseURL)" }
}
