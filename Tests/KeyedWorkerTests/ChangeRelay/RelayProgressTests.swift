import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

@Suite(.ownThreads) struct RelayProgressTests {
    private func task(
        counter: Int64, relayed: Int64 = 0, generation: Int64 = 1, epoch: Int64 = 1, isRepublishing: Bool = false
    ) -> RelayTask {
        RelayTask(
            environment: EnvironmentID(rawValue: 1), generation: generation, counterPosition: counter,
            relayedPosition: relayed, epoch: epoch, isRepublishing: isRepublishing)
    }

    @Test func onlyContiguousConfirmationsAreStored() throws {
        var progress = RelayProgress(task(counter: 30))
        for last in [Int64(10), 20, 30] { progress.readChanges(through: last, sendCount: 2) }
        progress.confirm(2, page: 1)
        progress.confirm(2, page: 2)
        var early = [progress.takeConfirmed()]
        progress.confirm(1, page: 0)
        early.append(progress.takeConfirmed())
        #expect(early.allSatisfy { $0 == nil })
        progress.confirm(1, page: 0)
        let reached = progress.takeConfirmed()
        let confirmed = try #require(reached)
        #expect(confirmed.from == 0 && confirmed.to == 30 && !confirmed.isRepublished)
        #expect(!progress.isInFlight)
    }

    @Test func emptyPageExtendsToItsCounter() throws {
        var progress = RelayProgress(task(counter: 7))
        progress.readChanges(through: nil, sendCount: 0)
        let reached = progress.takeConfirmed()
        let confirmed = try #require(reached)
        #expect(confirmed.to == 7)
        #expect(progress.request == nil)
        progress.update(task(counter: 9, relayed: 7))
        #expect(progress.request?.start == .changes(after: 7))
    }

    @Test func pagesInFlightAreLimited() {
        var progress = RelayProgress(task(counter: 1_000))
        for page in 1...RelayProgress.pagesMax {
            #expect(progress.request != nil)
            progress.readChanges(through: Int64(page), sendCount: 1)
        }
        #expect(progress.request == nil)
        progress.confirm(1, page: 0)
        _ = progress.takeConfirmed()
        #expect(progress.request?.start == .changes(after: Int64(RelayProgress.pagesMax)))
    }

    /// Also while another generation was being republished.
    @Test func newGenerationResetsProgress() throws {
        var progress = RelayProgress(task(counter: 30, isRepublishing: true))
        progress.readObjects(through: nil, sendCount: 1)
        progress.update(task(counter: 40, generation: 2, isRepublishing: true))
        progress.confirm(1, page: 0)
        #expect(progress.takeConfirmed() == nil)
        #expect(progress.request?.start == .objects(after: .first))
        progress.readObjects(through: nil, sendCount: 0)
        let confirmed = progress.takeConfirmed()
        #expect(confirmed?.generation == 2 && confirmed?.to == 40 && confirmed?.isRepublished == true)
    }

    @Test func newEpochResetsProgressAndIgnoresEarlierReports() throws {
        var progress = RelayProgress(task(counter: 30, relayed: 5))
        progress.readChanges(through: 30, sendCount: 1)
        progress.update(task(counter: 40, relayed: 5, epoch: 2, isRepublishing: true))
        progress.confirm(1, page: 0)
        let early = progress.takeConfirmed()
        #expect(early == nil)
        let page = progress.nextPage
        progress.readObjects(through: nil, sendCount: 1)
        // The counter stays as it was when the republication began: later changes follow from the change log.
        progress.update(task(counter: 50, relayed: 5, epoch: 2, isRepublishing: true))
        progress.confirm(1, page: page)
        let reached = progress.takeConfirmed()
        let confirmed = try #require(reached)
        #expect(confirmed.to == 40 && confirmed.epoch == 2 && confirmed.isRepublished)
        progress.update(task(counter: 50, relayed: 40, epoch: 2))
        #expect(progress.request?.start == .changes(after: 40))
    }
}
