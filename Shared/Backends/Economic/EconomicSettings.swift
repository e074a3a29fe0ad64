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

    /// Without the tokens, because settings end up in logs.
    package var description: String { "e-conomic at \(baseURL)" }
}
