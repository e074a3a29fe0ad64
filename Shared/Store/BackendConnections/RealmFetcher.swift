package import BackendProtocol
package import Essentials
import FoundationEssentials
import Model

/// Reads the content of a person's realm from a back end.
package struct RealmFetcher: Sendable {
    package let adapters: BackendRegistry
    /// The number of past and of future days whose entries are read.
    package let entryDays: Int
    package let aheadDays: Int

    /// A person's reporting data and records, as read from the back end.
    package struct Observation: Sendable {
        /// The person's reporting data.
        package let data: ReportingData
        package let records: [BackendEntry]
        /// Records that could not be decoded: their absence from ``records`` proves nothing.
        package let unreadable: [UnreadableRecord]
        /// The days whose records were read in full.
        package let days: ClosedRange<Day>
        /// The time before the first request.
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

    /// Returns the days whose entries are read.
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
