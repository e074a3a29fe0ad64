package import Model

/// The associated data of each stored secret: a sealed secret opens only with the context that it was sealed for.
package enum SecretContext {
    /// The secret of an environment's client at its identity provider.
    package static func clientSecret(_ environment: EnvironmentID) -> String {
        "provider/\(environment)/client-secret"
    }

    /// The password of an environment's account at its back end.
    package static func backendPassword(_ environment: EnvironmentID) -> String { "backend/\(environment)/password" }

    /// The secret of an environment's account at its defect tracker.
    package static func defectAccount(_ environment: EnvironmentID) -> String { "defects/\(environment)/secret" }

    /// A person's own login at the defect tracker.
    ///
    /// - Parameter realm: The number of the person's realm.
    package static func personalDefectLogin(_ environment: EnvironmentID, realm: Int32) -> String {
        "defects/\(environment)/own/\(realm)"
    }

    /// A secret for the delivery of notices; the raw value is part of the context of stored secrets.
    package enum DeliverySecret: String, Sendable, CaseIterable {
        /// The key that signs webhooks.
        case webhook
        /// The password at the mail server.
        case mail
        /// The private key that identifies the sender to push services (VAPID), 32 bytes.
        case push
        /// The private key of authentication tokens for APNs, a PEM text.
        case apns
        /// The key of the service account for FCM, a JSON text.
        case fcm
    }

    package static func delivery(_ secret: DeliverySecret, in environment: EnvironmentID) -> String {
        "deliveries/\(environment)/\(secret.rawValue)"
    }

    /// The refresh tokens of a person.
    package static func refreshToken(_ environment: EnvironmentID, person: Int32) -> String {
        "refresh-token/\(environment)/\(person)"
    }
}
