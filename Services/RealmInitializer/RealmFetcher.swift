import Backends
import FoundationEssentials
import HTTP
import Model
import Secrets

/// Asks a back end for all that a person's realm begins with.
struct RealmFetcher: Sendable {
    let client: Client
    let callMax: Duration
    let secrets: SecretBox
    /// How many days back existing entries are fetched.
    let entryDays: Int

    enum Found: Sendable {
        case data(ReportingData, [BackendEntry])
        case failed(BackendError)
    }

    func fetch(_ person: BackendPerson, from backend: any TimeBackend) async -> Found {
        let today = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000)).day
        do throws(BackendError) {
            let data = try await backend.reportingData(of: person)
            let entries = try await backend.entries(
                of: person, from: today.adding(days: -entryDays), through: today.adding(days: 1))
            return .data(data, entries)
        } catch {
            return .failed(error)
        }
    }
}
