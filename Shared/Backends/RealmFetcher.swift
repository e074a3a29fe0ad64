import FoundationEssentials
package import HTTP
package import Model
package import Postgres
package import Secrets

/// Asks a back end for all that a person's realm holds of it.
package struct RealmFetcher: Sendable {
    package let client: Client
    package let callMax: Duration
    package let secrets: SecretBox
    /// How many days back, and ahead, entries are fetched.
    package let entryDays: Int
    package let aheadDays: Int

    package enum Found: Sendable {
        /// What may be reported on, the records, and the days they are all the records of.
        case data(ReportingData, [BackendEntry], ClosedRange<Day>)
        case failed(BackendError)
    }

    package init(client: Client, callMax: Duration, secrets: SecretBox, entryDays: Int, aheadDays: Int = 1) {
        self.client = client
        self.callMax = callMax
        self.secrets = secrets
        self.entryDays = entryDays
        self.aheadDays = aheadDays
    }

    /// How an environment's back end is called.
    ///
    /// - Throws: `MissingBackend` or `PostgresError`.
    package func backend(of environment: EnvironmentID, on connection: inout Connection) throws -> any TimeBackend {
        try BackendConnection.backend(
            of: environment, client: client, secrets: secrets, callMax: callMax, on: &connection)
    }

    package func fetch(_ person: BackendPerson, from backend: any TimeBackend) async -> Found {
        let today = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000)).day
        let days = today.adding(days: -entryDays)...today.adding(days: aheadDays)
        do throws(BackendError) {
            let data = try await backend.reportingData(of: person)
            let entries = try await backend.entries(of: person, from: days.lowerBound, through: days.upperBound)
            return .data(data, entries, days)
        } catch {
            return .failed(error)
        }
    }
}

extension BackendError {
    /// When a read that failed like that is tried again.
    ///
    /// - Returns: `nil` when the back end refuses it: no repetition helps. `isAsked`: it is the back end that asks for
    ///   the wait.
    package func retry(afterAttempts attemptCount: Int) -> (reason: String, wait: Duration, isAsked: Bool)? {
        let wait = min(Duration.seconds(1) * (1 << min(attemptCount, 6)), .seconds(60))
        return switch self {
        case .refused: nil
        case .notProcessed(let reason, let retryAfter), .outcomeUnknown(let reason, let retryAfter):
            (reason, max(wait, retryAfter ?? .zero), retryAfter != nil)
        case .unauthorized(let reason): (reason, wait, false)
        }
    }
}
