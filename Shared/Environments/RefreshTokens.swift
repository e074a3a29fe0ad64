package import Model

/// Where refresh tokens are kept.
package enum RefreshTokens {
    /// What a person's refresh tokens are sealed for.
    package static func secretPlace(_ environment: EnvironmentID, person: Int32) -> String {
        "refresh-token/\(environment)/\(person)"
    }
}
