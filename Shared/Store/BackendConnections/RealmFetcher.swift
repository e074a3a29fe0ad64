package import BackendProtocol
package import Essentials
import FoundationEssentials
import Model

/// Asks a back end for all that a person's realm holds of it.
package struct RealmFetcher: Sendable {
    package let adapters: BackendRegistry
    /// How many days back, and ahead, entries are fetched.
    package let entryDays: Int
    package let aheadDays: Int

    /// What a back end told of a person.
    package struct Observation: Sendable {
        /// What may be reported on.
        package let data: ReportingData
        package let records: [BackendEntry]
        /// Records that are there as well: nothing is concluded from what is missing.
        package let unreadable: [UnreadableRecord]
        /// The days that these are all the records of.
        package let days: ClosedRange<Day>
        /// When it was asked.
        package let readAt: Timestamp

        package init(
            data: ReportingData, records: [BackendEntry], unreadable: [UnreadableRecord] = [], days: ClosedRange<Day>,
            readAt: Timestamp
        ) {
            self.data = data
            self.records = records
            self.unreadable = unreadable
            self.days = days
            self.readAt = readAt
        }
    }

    package init(_ adapters: BackendRegistry, entryDays: Int, aheadDays: Int = 1) {
        self.adapters = adapters
        self.entryDays = entryDays
        self.aheadDays = aheadDays
    }

    /// The days whose entries are followed.
    package func followedDays() -> ClosedRange<Day> {
        let today = Timestamp.now().day
        return today.adding(days: -entryDays)...today.adding(days: aheadDays)
    }

    package func fetch(
        _ person: BackendPerson, from backend: any TimeBackend
    ) async -> Result<Observation, BackendError> {
        let (days, readAt) = (followedDays(), Timestamp.now())
        do throws(BackendError) {
            let data = try await backend.reportingData(of: person)
            let records = try await backend.records(of: person, from: days.lowerBound, through: days.upperBound)
            return .success(
                Observation(
                    data: data, records: records.entries, unreadable: records.unreadable, days: days, readAt: readAt))
        } catch {
            return .failure(error)
        }
    }
}
